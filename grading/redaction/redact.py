"""Finds and replaces secrets by a library's patterns, our own table of patterns, names, and randomness.

The library (bc-detect-secrets, the maintained fork of detect-secrets) has patterns for many services' keys;
`secret_shapes` has those it lacks. Only its plugins for services are used: its keyword plugin takes seconds on a
hostile line, and its entropy plugins mistake commit hashes for secrets. Nothing is verified over the network.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from grading.redaction import private_keys, random_runs
from grading.redaction.random_runs import UUID, is_random
from grading.redaction.secret_shapes import (
    CUT_TOKEN,
    MIN_TOKEN_LENGTH,
    NAME_LITERALS,
    NEEDED,
    OTHERS,
    TOKENS,
    find_named_values,
)
from grading.redaction.values import WORDS

VERSION = "5"
"""Raised whenever the same text would be redacted differently. It is part of cache keys, but not of grades' inputs."""

MARK = re.compile(r"\[redacted [A-Za-z][\w ]{0,40}\]")
MARGIN = 4096
"""Redact this many characters beyond a cut, more than any key's length, so that no key is cut before it is found."""

# A library's pattern may be quadratic, so it gets long lines in pieces that overlap by more than the length of a key.
PIECE_LENGTH, PIECE_OVERLAP = 2000, 300
MIN_SECRET_LENGTH = 16
MAX_CACHED_LENGTH = 400
# What may stand inside a secret without being part of it: colours, a shell's line continuation (in a diff or a numbered
# listing too), both also as JSON and Python write them, and invisible characters.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]")
# JSON escapes for letters of the languages in which `sentences` finds passwords.
_ESCAPED = re.compile(
    r"\\u(?P<letter>(?:00[c-fC-F]|04[0-9a-fA-F]|201|[3-9][0-9a-fA-F]{2}|[abcABC][0-9a-fA-F]{2}|[fF]{2}[01])[0-9a-fA-F])"
)
_NOISE = re.compile(
    rf"\\{{0,2}}{_ESCAPED.pattern}|"
    r"(?:\x1b|\\{1,2}(?:u001b|x1b|033|e))\[[0-9;?]{0,16}[A-Za-z]|"
    r"(?<=[\w+/=-])(?:\\\r?\n(?:\+|[ ]{0,8}\d{1,6}[\t→])?|\\{3}n)(?=[\w+/=-])|" + _UNSEEN.pattern
)
_NOISY = ("\x1b[", "\\u001b", "\\x1b", "\\033", "\\e[", "\\\n", "\\\r\n", "\\\\\\n")
# The rest of a value at the start of a line, after a terminal wrapped the line before within the value.
_WRAPPED_REST = re.compile(r"\r?\n([A-Za-z0-9+/_=.-]{4,})(?=[\s\"'`,;)}\]]|$)")
MIN_TERMINAL_WIDTH, MAX_TERMINAL_WIDTH, MAX_WRAPPED_LINES = 60, 500, 20

# What follows a key in a text whose line breaks became spaces, and a run without spaces at a text's end.
_JOINED = re.compile(r"(\[redacted (?:secret|private key)\][ \\+]{1,4})([A-Za-z0-9+/]{8,}={0,2})(?=[ …]|$)")
_CUT_RUN = re.compile(r"(?<![\w+/.=:-])(?P<v>[\w+/=.:-]{16,})…?$")


class HiddenSpan(NamedTuple):
    """A secret's span in a text, and its kind."""

    start: int
    end: int
    kind: str

    @property
    def mark(self) -> str:
        return f"[redacted {self.kind}]"


def redact(text: str) -> str:
    """Replace what looks like a key, password or cookie by `[redacted <kind>]`; everything else stays unchanged."""
    # Short texts are cached because titles and reasons are redacted on every page view.
    return _redact_cached(text) if len(text) <= MAX_CACHED_LENGTH else redact_slice(text, 0, len(text))


@lru_cache(maxsize=8192)
def _redact_cached(text: str) -> str:
    return redact_slice(text, 0, len(text))


def redact_slice(text: str, start: int, end: int) -> str:
    """Redact `text[start:end]`, also secrets that are only partly in it.

    If `text` is itself cut from a longer text, give it MARGIN more characters on that side than the slice has.
    """
    pieces = []
    for span in find_secrets(text):
        if span.start < end and span.end > start:
            pieces += [text[start : span.start], span.mark]
            start = span.end
    return "".join([*pieces, text[start:end]])


def redact_line(text: str) -> str:
    """Redact a one-line text, such as a title, also if it was cut within a key or its lines were joined within one."""
    redacted = redact(text)
    previous = None  # a replaced run may be followed by another run of the same key
    while previous != redacted:
        previous = redacted
        redacted = _JOINED.sub(lambda run: f"{run[1]}[redacted secret]" if is_random(run[2]) else run[0], redacted)
    cut = CUT_TOKEN.search(redacted)
    if cut is None:
        cut = _CUT_RUN.search(redacted)
        if cut is None or UUID.search(cut[0]) or not is_random(cut["v"]):
            return redacted
    return f"{redacted[: cut.start('v')]}[redacted secret]{redacted[cut.end('v') :]}"


def redact_json(value: Any) -> Any:
    """Redact every string in a JSON value by itself; object keys stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_json(item) for key, item in value.items()}
    return [redact_json(item) for item in value] if isinstance(value, list | tuple) else value


def mark_at(text: str, number: int) -> str | None:
    """The secret behind the `number`-th mark (from 0) of the redacted text; None if there is none.

    A mark that the original text contains is counted too, and has no secret behind it.
    """
    pieces: list[str] = []
    end = length = 0
    secret_by_offset: dict[int, str] = {}
    for span in find_secrets(text):
        before = text[end : span.start]
        secret_by_offset[length + len(before)] = text[span.start : span.end]
        pieces += [before, span.mark]
        length += len(before) + len(span.mark)
        end = span.end
    marks = list(MARK.finditer("".join([*pieces, text[end:]])))
    return secret_by_offset.get(marks[number].start()) if 0 <= number < len(marks) else None


def find_secrets(text: str) -> list[HiddenSpan]:
    """The secrets of a text, in order and without overlaps.

    They are searched in a copy of the text without noise, and the spans are mapped back to the text.
    """
    is_escaped = "\\u" in text and _ESCAPED.search(text) is not None
    is_noisy = any(noise in text for noise in _NOISY) or (not text.isascii() and _UNSEEN.search(text) is not None)
    if not is_escaped and not is_noisy:
        return _merge(_find_all(text))
    copy, runs = _without_noise(text)
    copy_starts = [run.copy_start for run in runs]
    secrets: list[HiddenSpan] = []
    for start, end, kind in _merge(_find_all(copy)):
        first = runs[bisect_right(copy_starts, start) - 1]
        last = runs[bisect_right(copy_starts, end - 1) - 1]
        text_start = first.text_start + start - first.copy_start
        last_character = last.text_start + end - 1 - last.copy_start
        secrets.append(HiddenSpan(text_start, last_character + last.width, kind))
    return secrets


class CopiedRun(NamedTuple):
    """Consecutive characters of a copy that are consecutive in the text too: where they begin in the copy and in the
    text. `width` is how many characters of the text each of them stands for: 1, or an escape's length if the run is one
    letter that was escaped.
    """

    copy_start: int
    text_start: int
    width: int


def _without_noise(text: str) -> tuple[str, list[CopiedRun]]:
    """A copy of the text without colour codes, line continuations and invisible characters, and with letters instead of
    their escapes; and the runs that it consists of, in order.
    """
    pieces, runs = [], [CopiedRun(copy_start=0, text_start=0, width=1)]
    text_end = copy_length = 0
    for match in _NOISE.finditer(text):
        letter = chr(int(match["letter"], 16)) if match["letter"] else ""
        pieces += [text[text_end : match.start()], letter]
        copy_length += match.start() - text_end
        text_end = match.end()
        if letter:
            runs.append(CopiedRun(copy_length, match.start(), text_end - match.start()))
            copy_length += 1
        runs.append(CopiedRun(copy_length, text_end, 1))
    return "".join([*pieces, text[text_end:]]), runs


def _merge(spans: Iterable[HiddenSpan]) -> list[HiddenSpan]:
    """The spans in order; those that touch or overlap become one, of the first one's kind."""
    merged: list[HiddenSpan] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _find_all(text: str) -> Iterator[HiddenSpan]:
    """The spans of private keys and other secrets, with the lines over which a terminal wrapped them."""
    for start, end in private_keys.find(text):
        yield HiddenSpan(start, end, "private key")
    # The same length as the text: "İ" is the only character with two in lower case.
    lowered = text.replace("İ", "i").lower()
    wrapped_end = 0  # the end of the last wrapped line
    for span in sorted(_find_on_lines(text, lowered)):
        yield span
        if span.end >= wrapped_end:
            for rest in _find_wrapped_lines(text, span):
                wrapped_end = rest.end
                yield rest


def _find_on_lines(text: str, lowered: str) -> Iterator[HiddenSpan]:
    """The spans of secrets other than private keys; patterns run only if the text has a literal that they need."""
    long_words = [word for word in text.split() if len(word) >= MIN_TOKEN_LENGTH]
    joined_words = " ".join(long_words)
    literals = [literal for literal in NEEDED if literal in lowered]
    shapes = [shape for shape in TOKENS if any(prefix in joined_words for prefix in shape.prefixes)]
    shapes += [shape for shape in OTHERS if not shape.needs.isdisjoint(literals)]
    for shape in shapes:
        for start, end in shape.find(text, lowered):
            yield HiddenSpan(start, end, shape.kind)
    if not NAME_LITERALS.isdisjoint(literals):
        for start, end in find_named_values(text, lowered):
            yield HiddenSpan(start, end, "secret")
    if any(len(word) >= random_runs.MIN_LENGTH for word in long_words):
        for start, end in random_runs.find(text):
            yield HiddenSpan(start, end, "secret")
    yield from _find_by_library(text, lowered)


def _find_by_library(text: str, lowered: str) -> Iterator[HiddenSpan]:
    """The spans of secrets that the library's patterns match."""
    patterns = [(kind, pattern) for needs, kind, pattern in _library() if any(need in lowered for need in needs)]
    if not patterns:
        return
    for offset, piece in _pieces(text):
        for kind, pattern in patterns:
            for match in pattern.finditer(piece):
                # The key is the longest group, since a pattern may capture other things too. It is the whole match (0)
                # if no group is long enough.
                groups = range(1, len(match.groups()) + 1)
                longest = max(groups, key=lambda group: len(match[group] or ""), default=0)
                key_group = longest if len(match[longest] or "") >= MIN_SECRET_LENGTH else 0
                start, end = match.span(key_group)
                yield HiddenSpan(offset + start, offset + end, kind)


def _find_wrapped_lines(text: str, span: HiddenSpan) -> Iterator[HiddenSpan]:
    """The following lines of a value that a terminal wrapped, one span per line.

    The value must end at the end of a line as wide as a terminal. Each next line is part of it if it begins with a run
    that isn't a word or an assignment. A run that is shorter than the line is the last.
    """
    end = span.end
    line_start = text.rfind("\n", max(end - MAX_TERMINAL_WIDTH, 0), end) + 1  # 0 for a longer line
    width = end - line_start
    if width < MIN_TERMINAL_WIDTH:
        return
    for _line in range(MAX_WRAPPED_LINES):
        rest = _WRAPPED_REST.match(text, end)
        if rest is None or len(rest[1]) > width:
            return
        is_assignment = "=" in rest[1].rstrip("=")  # base64 may end with "="
        if is_assignment or (WORDS.fullmatch(rest[1]) and not is_random(rest[1])):
            return
        yield HiddenSpan(rest.start(1), rest.end(1), span.kind)
        if len(rest[1]) < width:
            return
        end = rest.end(1)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """(offset, piece) of overlapping pieces of each line."""
    line_start = 0
    for line in text.split("\n"):
        for start in range(0, len(line) - MIN_SECRET_LENGTH, PIECE_LENGTH - PIECE_OVERLAP):
            yield line_start + start, line[start : start + PIECE_LENGTH]
        line_start += len(line) + 1


@cache
def _library() -> tuple[tuple[tuple[str, ...], str, re.Pattern[str]], ...]:
    """(literals, kind, pattern) of the library's plugins for services: a match needs one of the literals in lower case.

    Cached, because importing the plugins takes a quarter of a second.
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
