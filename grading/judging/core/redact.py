"""Secrets out of a text before it leaves the machine (L9): detected by a library and by a table of our own.

The library (bc-detect-secrets, the kept fork of detect-secrets) knows the shapes of services, our table
(`secret_shapes`) what it lacks. Only its plugins for services are used: its keyword plugin takes seconds on a hostile
line, and its entropy plugins take commit hashes for secrets. Nothing is verified over the network.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from grading.judging.core import private_keys
from grading.judging.core.secret_shapes import SHAPES

# A library's pattern may be quadratic, so that it is shown a long line in pieces that overlap by more than any key.
PIECE, OVERLAP = 2000, 300
SHORTEST = 16
# What may stand inside a secret without being part of it: colours, a shell's line continuation (in a diff or a numbered
# listing too), both also as JSON and Python write them, and invisible characters.
_NOISE = re.compile(
    r"(?:\x1b|\\{1,2}(?:u001b|x1b|033|e))\[[0-9;?]{0,16}[A-Za-z]|"
    r"(?<=[\w+/=-])(?:\\\r?\n(?:\+|[ ]{0,8}\d{1,6}[\t→])?|\\{3}n)(?=[\w+/=-])|"
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_CAPITALS = re.compile("[A-Z]+")

Span = tuple[int, int, str]


def redact(text: str) -> str:
    """Replace what looks like a key, a password or a cookie by `[redacted <kind>]`; the rest stays byte for byte."""
    # The text without noise, and where each run of it begins there and began here.
    pieces, starts, origins = [], [0], [0]
    done = length = 0
    for match in _NOISE.finditer(text):
        pieces.append(text[done : match.start()])
        length += match.start() - done
        done = match.end()
        starts.append(length)
        origins.append(done)
    plain = "".join([*pieces, text[done:]])

    def origin(index: int) -> int:
        at = bisect_right(starts, index) - 1
        return origins[at] + index - starts[at]

    out: list[str] = []
    done = 0
    merged: list[Span] = []  # two that touch or overlap are one, of the first's kind
    for start, end, kind in sorted(_found(plain)):
        if merged and start <= merged[-1][1]:
            first, reached, as_kind = merged[-1]
            merged[-1] = (first, max(reached, end), as_kind)
        else:
            merged.append((start, end, kind))
    for start, end, kind in merged:
        first, last = origin(start), origin(end - 1) + 1
        out += [text[done:first], f"[redacted {kind}]"]
        done = last
    return "".join([*out, text[done:]])


def _found(text: str) -> Iterator[Span]:
    for start, end in private_keys.find(text):
        yield start, end, "private key"
    lowered = text.lower() if text.isascii() else _CAPITALS.sub(lambda match: match[0].lower(), text)
    for shape in SHAPES:
        for start, end in shape.find(text, lowered):
            yield start, end, shape.kind
    for offset, piece in _pieces(text):
        for kind, pattern in _library():
            for match in pattern.finditer(piece):
                # The longest group, where a pattern names what it is about beside the key; else the whole match.
                groups = range(1, len(match.groups()) + 1)
                longest = max(groups, key=lambda group: len(match[group] or ""), default=0)
                start, end = match.span(longest if len(match[longest] or "") >= SHORTEST else 0)
                yield offset + start, offset + end, kind


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        for start in range(0, len(line) - SHORTEST, PIECE - OVERLAP):
            yield at + start, line[start : start + PIECE]
        at += len(line) + 1


@cache
def _library() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The patterns of the library's plugins for services. Importing them takes a quarter of a second."""
    from detect_secrets.plugins import (
        aws,
        cloudant,
        discord,
        github_token,
        mailchimp,
        npm,
        sendgrid,
        slack,
        square_oauth,
        stripe,
        twilio,
    )

    plugins = (
        aws.AWSKeyDetector,
        cloudant.CloudantDetector,
        discord.DiscordBotTokenDetector,
        github_token.GitHubTokenDetector,
        mailchimp.MailchimpDetector,
        npm.NpmDetector,
        sendgrid.SendGridDetector,
        slack.SlackDetector,
        square_oauth.SquareOAuthDetector,
        stripe.StripeDetector,
        twilio.TwilioKeyDetector,
    )
    return tuple((plugin.secret_type, pattern) for plugin in plugins for pattern in plugin.denylist)
