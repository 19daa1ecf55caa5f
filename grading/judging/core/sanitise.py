"""Makes evidence text safe to send: without secrets and invisible characters, quoted, and limited in length."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate, takewhile

from grading.redaction import MARGIN, redact, redact_slice

QUOTE, CUT = "  | ", " … [cut] … "

_SUSPECT = re.compile(r"[^\t\n\x20-\x7e]")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Variation selectors and blank-looking letters are of harmless categories, yet carry text that nobody sees.
_HIDDEN = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u034f\u115f\u1160\u2800\u3164\uffa0]")
_DELIMITER = re.compile(r"[<＜‹](?=\s*/?\s*evidence)", re.IGNORECASE)


def visible(text: str) -> str:
    r"""Write control, bidirectional, zero-width and unassigned characters as `\u{200b}`; tabs and newlines stay."""
    return _SUSPECT.sub(lambda match: _escape(match[0]), text.replace("\r\n", "\n"))


@lru_cache(maxsize=4096)
def _escape(char: str) -> str:
    hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES or _HIDDEN.match(char)
    return f"\\u{{{ord(char):x}}}" if hidden else char


def break_delimiters(text: str) -> str:
    """Break what looks like the evidence delimiter, in any case, spacing, width or style of letters."""
    plain = text if text.isascii() else _SUSPECT.sub(lambda match: _folded(match[0]), text)  # of the same length
    characters = list(text)
    for match in _DELIMITER.finditer(plain):
        characters[match.start()] = "«"
    return "".join(characters)


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    """The plain letter of a styled one (NFKC); any other character as it is."""
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char


def clip(text: str, limit: int) -> str:
    """At most `limit` characters: the head, a mark where it was cut, and the tail."""
    if len(text) <= limit:
        return text
    room = max(limit - len(CUT), 0)
    tail = room // 3
    return f"{text[: room - tail]}{CUT}{text[len(text) - tail :]}"


def clean(text: str, limit: int) -> str:
    """Untrusted text, safe and at most `limit` characters; newlines kept."""
    if len(text) <= 2 * limit:
        redacted = redact(text)  # of a longer text, only the ends are searched for secrets
    else:
        head, tail = text[: limit + MARGIN], text[-limit - MARGIN :]
        redacted = f"{redact_slice(head, 0, limit)}{CUT}{redact_slice(tail, len(tail) - limit, len(tail))}"
    # Clipped twice: an invisible character takes up to ten visible ones.
    return break_delimiters(clip(visible(clip(redacted, limit)), limit))


def ends(text: str, limit: int) -> str:
    """The first and the last `limit` characters of a text, with a mark between; a shorter text as it is."""
    return text if len(text) <= 2 * limit + len(CUT) else f"{text[:limit]}{CUT}{text[-limit:]}"


def inline(text: str, limit: int = 200) -> str:
    """Untrusted text on one line of at most `limit` characters: newlines become visible too."""
    return clip(clean(text, limit).replace("\n", "\\n").replace("\t", " "), limit)


def quoted(text: str, limit: int) -> str:
    """Untrusted text with a bar before every line, so that no line can be taken for one of the prompt's own.

    At most `limit` characters, bars included, however many lines the text has (`limit` ≥ 100).
    """
    lines = clean(text.strip("\n"), limit - len(QUOTE)).split("\n")
    barred = _barred(lines)
    if len(barred) <= limit:
        return barred
    # A few long lines must not take up the room of all others.
    lines = [clip(line, limit // 4) for line in lines]
    room = limit - len(QUOTE) - len(CUT)
    head = _count_fitting(lines, room - room // 3)
    tail = _count_fitting(lines[:head:-1], room // 3)  # from the last line backwards
    cut = [CUT.strip()] if head + tail < len(lines) else []
    return _barred([*lines[:head], *cut, *lines[len(lines) - tail :]])


def _barred(lines: Iterable[str]) -> str:
    return "\n".join(QUOTE + line for line in lines)


def _count_fitting(lines: Iterable[str], room: int) -> int:
    """How many of the first lines fit in `room` characters, each with its bar and its newline."""
    line_ends = accumulate(len(QUOTE) + len(line) + 1 for line in lines)
    return sum(1 for _ in takewhile(lambda end: end <= room, line_ends))
