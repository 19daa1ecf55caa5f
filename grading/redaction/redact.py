"""Secrets out of a text: detected by a library, by a table of our own, by names, and by how a key looks.

The library (bc-detect-secrets, the kept fork of detect-secrets) knows the shapes of services, our table
(`secret_shapes`) what it lacks. Only its plugins for services are used: its keyword plugin takes seconds on a hostile
line, and its entropy plugins take commit hashes for secrets. Nothing is verified over the network.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from grading.redaction import private_keys, random_runs
from grading.redaction.random_runs import UUID, is_drawn
from grading.redaction.secret_shapes import CUT_TOKEN, LONG, NAME_NEEDS, NEEDED, OTHERS, TOKENS, named
from grading.redaction.values import WORDS

VERSION = "4"
"""Raised whenever the same text would come out otherwise. It is in the names of caches, and in no grade's inputs."""

MARK = re.compile(r"\[redacted [A-Za-z][\w ]{0,40}\]")
MARGIN = 4096
"""Where a text is cut, so much more of it is looked at: longer than any key, so that none is cut before it is told."""

# A library's pattern may be quadratic, so that it is shown a long line in pieces that overlap by more than any key.
PIECE, OVERLAP = 2000, 300
SHORTEST = 16
SHORT_TEXT = 400
# What may stand inside a secret without being part of it: colours, a shell's line continuation (in a diff or a numbered
# listing too), both also as JSON and Python write them, and invisible characters.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]")
# Letters as JSON writes them, of the languages that secrets are spoken of in.
_ESCAPED = re.compile(
    r"\\u(?P<letter>(?:00[c-fC-F]|04[0-9a-fA-F]|201|[3-9][0-9a-fA-F]{2}|[abcABC][0-9a-fA-F]{2}|[fF]{2}[01])[0-9a-fA-F])"
)
_NOISE = re.compile(
    rf"\\{{0,2}}{_ESCAPED.pattern}|"
    r"(?:\x1b|\\{1,2}(?:u001b|x1b|033|e))\[[0-9;?]{0,16}[A-Za-z]|"
    r"(?<=[\w+/=-])(?:\\\r?\n(?:\+|[ ]{0,8}\d{1,6}[\t→])?|\\{3}n)(?=[\w+/=-])|" + _UNSEEN.pattern
)
_NOISY = ("\x1b[", "\\u001b", "\\x1b", "\\033", "\\e[", "\\\n", "\\\r\n", "\\\\\\n")
# Where a terminal broke a line in the middle of a value, the next begins with the rest of it.
_WRAPPED = re.compile(r"\r?\n([A-Za-z0-9+/_=.-]{4,})(?=[\s\"'`,;)}\]]|$)")
WRAPPED_AT, MOST_WRAPS = 60, 20

# What follows a key in a text whose line breaks became spaces, and a run without spaces at a text's end.
_JOINED = re.compile(r"(\[redacted (?:secret|private key)\][ \\+]{1,4})([A-Za-z0-9+/]{8,}={0,2})(?=[ …]|$)")
_CUT_RUN = re.compile(r"(?<![\w+/.=:-])(?P<v>[\w+/=.:-]{16,})…?$")

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenSpan:
    """A secret in a text: where it begins and ends there, and what kind it is."""

    start: int
    end: int
    kind: str

    @property
    def mark(self) -> str:
        return f"[redacted {self.kind}]"


def redact(text: str) -> str:
    """Replace what looks like a key, a password or a cookie by `[redacted <kind>]`; the rest stays byte for byte."""
    return _short(text) if len(text) <= SHORT_TEXT else _redacted(text)


@lru_cache(maxsize=8192)
def _short(text: str) -> str:
    """Titles and reasons are read again on every page."""
    return _redacted(text)


def _redacted(text: str) -> str:
    out, done = [], 0
    for span in hidden(text):
        out += [text[done : span.start], span.mark]
        done = span.end
    return "".join([*out, text[done:]]) if out else text


def redact_line(text: str) -> str:
    """The same of a short text on one line, such as a title: it may be the start of a longer one, cut within a key, and
    lines may have been joined in it, within a key too.
    """
    redacted = redact(text)
    done = None
    while done != redacted:
        done = redacted
        redacted = _JOINED.sub(lambda match: f"{match[1]}[redacted secret]" if is_drawn(match[2]) else match[0], done)
    end = CUT_TOKEN.search(redacted) or _CUT_RUN.search(redacted)
    if end is None or (end.re is _CUT_RUN and (UUID.search(end[0]) or not is_drawn(end["v"]))):
        return redacted
    return f"{redacted[: end.start('v')]}[redacted secret]{redacted[end.end('v') :]}"


def redact_json(value: Any) -> Any:
    """Every text in a JSON value redacted, each by itself; its keys stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_json(item) for key, item in value.items()}
    return [redact_json(item) for item in value] if isinstance(value, list | tuple) else value


def mark_at(text: str, number: int) -> str | None:
    """What stands behind the `number`-th mark (from 0) of the redacted text; None where nothing was hidden there.

    A text may hold such a mark itself: it counts, and nothing is behind it.
    """
    told, done, behind = [], 0, {}
    length = 0
    for span in hidden(text):
        before = text[done : span.start]
        behind[length + len(before)] = text[span.start : span.end]
        told += [before, span.mark]
        length += len(before) + len(span.mark)
        done = span.end
    marks = list(MARK.finditer("".join([*told, text[done:]])))
    return behind.get(marks[number].start()) if 0 <= number < len(marks) else None


def hidden(text: str) -> list[HiddenSpan]:
    """Where the secrets stand in a text, in order and apart from each other."""
    is_escaped = "\\u" in text and _ESCAPED.search(text) is not None
    is_noisy = any(noise in text for noise in _NOISY) or (not text.isascii() and _UNSEEN.search(text) is not None)
    if not is_escaped and not is_noisy:
        return _merged(_found(text), lambda index: index, lambda index: index + 1)
    # The text without noise and with letters for their escapes; where each run of it begins there and began here, and
    # how long the escape was that is one letter there.
    pieces, starts, origins, widths = [], [0], [0], [1]
    done = length = 0
    for match in _NOISE.finditer(text):
        letter = chr(int(match["letter"], 16)) if match["letter"] else ""
        pieces += [text[done : match.start()], letter]
        length += match.start() - done
        done = match.end()
        if letter:
            starts.append(length)
            origins.append(match.start())
            widths.append(done - match.start())
            length += 1
        starts.append(length)
        origins.append(done)
        widths.append(1)

    def origin(index: int) -> int:
        at = bisect_right(starts, index) - 1
        return origins[at] + index - starts[at]

    def end(index: int) -> int:
        return origin(index) + widths[bisect_right(starts, index) - 1]

    return _merged(_found("".join([*pieces, text[done:]])), origin, end)


def _merged(found: Iterable[Span], origin: Callable[[int], int], end_of: Callable[[int], int]) -> list[HiddenSpan]:
    """Two that touch or overlap are one, of the first's kind. Where a character began and ended, the functions say."""
    merged: list[Span] = []
    for start, end, kind in sorted(found):
        if merged and start <= merged[-1][1]:
            first, reached, as_kind = merged[-1]
            merged[-1] = (first, max(reached, end), as_kind)
        else:
            merged.append((start, end, kind))
    return [HiddenSpan(start=origin(start), end=end_of(end - 1), kind=kind) for start, end, kind in merged]


def _found(text: str) -> Iterator[Span]:
    for start, end in private_keys.find(text):
        yield start, end, "private key"
    # Of the same length: no other character becomes two.
    lowered = text.replace("İ", "i").lower()
    done = 0  # as far as the lines were looked at that a terminal may have broken
    for span in sorted(_told(text, lowered)):
        yield span
        if span[1] >= done:
            for rest in _wrapped(text, span):
                done = rest[1]
                yield rest


def _told(text: str, lowered: str) -> Iterator[Span]:
    words = [word for word in text.split() if len(word) >= LONG]
    long_words, needed = " ".join(words), [need for need in NEEDED if need in lowered]
    shapes = [shape for shape in TOKENS if any(map(long_words.__contains__, shape.prefixes))] if words else []
    shapes += [shape for shape in OTHERS if not shape.needs.isdisjoint(needed)]
    for shape in shapes:
        for start, end in shape.find(text, lowered):
            yield start, end, shape.kind
    if not NAME_NEEDS.isdisjoint(needed):
        for start, end in named(text, lowered):
            yield start, end, "secret"
    if any(len(word) >= random_runs.SHORTEST for word in words):
        for start, end in random_runs.find(text):
            yield start, end, "secret"
    patterns = [(kind, pattern) for needs, kind, pattern in _library() if any(need in lowered for need in needs)]
    for offset, piece in _pieces(text) if patterns else ():
        for kind, pattern in patterns:
            for match in pattern.finditer(piece):
                # The longest group, where a pattern names what it is about beside the key; else the whole match.
                groups = range(1, len(match.groups()) + 1)
                longest = max(groups, key=lambda group: len(match[group] or ""), default=0)
                start, end = match.span(longest if len(match[longest] or "") >= SHORTEST else 0)
                yield offset + start, offset + end, kind


def _wrapped(text: str, span: Span) -> Iterator[Span]:
    """The rest of a value that a terminal broke over several lines."""
    _start, end, kind = span
    width = end - (text.rfind("\n", max(end - 500, 0), end) + 1)
    for _line in range(MOST_WRAPS):
        rest = _WRAPPED.match(text, end) if width >= WRAPPED_AT else None
        if rest is None or len(rest[1]) > width:
            return
        if "=" in rest[1].rstrip("=") or (WORDS.fullmatch(rest[1]) and not is_drawn(rest[1])):
            return
        yield rest.start(1), rest.end(1), kind
        is_last, end = len(rest[1]) < width, rest.end(1)
        if is_last:
            return


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        for start in range(0, len(line) - SHORTEST, PIECE - OVERLAP):
            yield at + start, line[start : start + PIECE]
        at += len(line) + 1


@cache
def _library() -> tuple[tuple[tuple[str, ...], str, re.Pattern[str]], ...]:
    """The patterns of the library's plugins for services, each with words of which a text has one where it may match.

    Importing them takes a quarter of a second.
    """
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

    plugins: dict[Any, tuple[str, ...]] = {
        aws.AWSKeyDetector: ("akia", "asia", "a3t", "abia", "acca", "aws"),
        cloudant.CloudantDetector: ("cloudant",),
        discord.DiscordBotTokenDetector: (".",),
        github_token.GitHubTokenDetector: ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        mailchimp.MailchimpDetector: ("-us",),
        npm.NpmDetector: ("npm",),
        sendgrid.SendGridDetector: ("sg.",),
        slack.SlackDetector: ("xox", "hooks.slack"),
        square_oauth.SquareOAuthDetector: ("sq0csp",),
        stripe.StripeDetector: ("k_live_",),
        twilio.TwilioKeyDetector: ("ac", "sk"),
    }
    return tuple(
        (needs, plugin.secret_type, pattern) for plugin, needs in plugins.items() for pattern in plugin.denylist
    )
