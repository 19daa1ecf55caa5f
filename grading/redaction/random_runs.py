"""Telling what a generator drew from what a person wrote: keys without a name or prefix are only told by that.

A draw changes between small letters, capitals and digits at every other character. Words, names and paths do so where
a part begins. Hexadecimal digits are never told: a commit, a file's hash and a key look the same.
"""

import re
from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase, digits

SHORTEST, LONGEST = 32, 512
"""Of a run that is taken for a secret wherever it stands; a longer one is a file's bytes, such as an image."""

_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{SHORTEST},}}+={{0,2}}")
# Parts that are words, numbers or hexadecimal: a path and a slug are made of these.
_WORDS = re.compile(
    r"(?<![A-Za-z0-9])(?:0x)?(?:[A-Z]?[a-z]{4,}|[A-Z]{4,}|[0-9]{4,}|[0-9a-f]{6,}|[0-9A-F]{6,})(?![A-Za-z0-9])"
)
# Each character's kind: small letter, capital, digit, anything else.
_KINDS = dict.fromkeys(range(128), ".") | {
    ord(char): kind for kind, chars in (("a", ascii_lowercase), ("A", ascii_uppercase), ("0", digits)) for char in chars
}
_CHANGES, _PAIRS = ("aA", "a0", "Aa", "A0", "0a", "0A"), re.compile(r"[aA0]+")
_SPELT = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z][a-z]{2}")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SEPARATOR = re.compile(r"[/_-]")
# What a run that begins so is: a path; the id of a call, a message, a request or a session; a public key; an image.
_ID = re.compile(
    r"(?:[^ ]*/)?(?:(?:srv)?toolu|tooluse|call|msg|msgbatch|req|resp|chatcmpl|cmpl|gen|rs|fc|ctc|ws|ig|run|thread|asst|"
    r"file|item|step|evt|event|sess|session|agent|task|batch|vm|cse|org|proj|user|wrkspc|exec|id|part|prt|ses)[_-]|"
    r"/[a-z]{2,}/|[a-z]{4,}/|(?:sha[0-9]+|md5|nonce)-|AAAA[A-Z][23][A-Za-z]|iVBORw0KGgo|/9j/4AAQ|R0lGOD|UEsDB|H4sI|JVBERi|PHN2Zy|d09G|AAEAAAA"
)
# What stands before what is no secret: a lock file's hash, a data address, a fingerprint, a checksum.
_PUBLIC = re.compile(
    r"(?:sha(?:1|224|256|384|512)[-:=]|md5[-:=]|[hr]1:|base64,|mappings\":\"|integrity[\"']?[:=] ?[\"']?|"
    r"nonce-|think-sig: )$",
    re.IGNORECASE,
)
_LOOK_BACK = 24
FILE_LINES = frozenset({60, 64, 70, 72, 76})
_FILE_LINE = re.compile(r"\r?\n[ \t+>|]{0,8}(?:[A-Za-z0-9+/=]{32,}|=[A-Za-z0-9+/]{4}|-----END)")
_DRAWN, _MIXED, _LETTERS, _ONE_CASE, _WRITTEN = 0.5, 0.36, 0.47, 0.06, 0.7


def find(text: str) -> Iterator[tuple[int, int]]:
    """Where runs of at least SHORTEST characters stand that a generator drew, as (start, end)."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        is_long = end - start > LONGEST
        if is_long or not is_drawn(match[0]) or _ID.match(match[0]) or _is_line_of_file(text, start, end):
            continue
        if not _PUBLIC.search(text[max(start - _LOOK_BACK, 0) : start]):
            yield start, end


def _is_line_of_file(text: str, start: int, end: int) -> bool:
    """Whether a run is one of several lines of equal length: a file's bytes, a certificate or a signature."""
    length = end - start
    if length not in FILE_LINES:
        return False
    after = _FILE_LINE.match(text, end)
    line = text[text.rfind("\n", max(start - 200, 0), max(start - 1, 0)) + 1 : start].strip(" \t\r\n+>|")
    return after is not None or line.startswith("-----BEGIN") or len(line) == length


def is_drawn(run: str) -> bool:
    """Whether a generator drew a run: how often it changes between small letters, capitals and digits says so.

    Of at least eight characters; of fewer nothing can be told. Hexadecimal digits are said not to be drawn.
    """
    left = _WORDS.sub("", UUID.sub("", run))
    kinds = left.translate(_KINDS)
    parts = _PAIRS.findall(kinds)
    count = sum(map(len, parts))
    if len(run) < 8 or count < _DRAWN * len(run):  # noqa: PLR2004 - as the docstring says
        return False
    rate = sum(map(kinds.count, _CHANGES)) / max(count - len(parts), 1)
    has_digits = "0" in kinds
    if "a" not in kinds or "A" not in kinds:
        return has_digits and rate >= _ONE_CASE and not _SEPARATOR.search(run)
    spelt = sum(match.end() - match.start() for match in _SPELT.finditer(left))
    return rate >= (_MIXED if has_digits else _LETTERS) and spelt < _WRITTEN * count
