"""Recognises randomly generated strings, the only sign of a key that has neither a name nor a prefix.

Random strings switch between lower case, upper case and digits at about every other character; words, names and paths
only where a part begins. Hexadecimal strings are never recognised: commits, file hashes and keys look the same.
"""

import re
from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase, digits

MIN_LENGTH, MAX_LENGTH = 32, 512
"""Lengths of a run that counts as a secret in any context; a longer one is a file's bytes, such as an image."""

_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_LENGTH},}}+={{0,2}}")
# Parts that are words, numbers or hexadecimal, as in paths and slugs.
_WORDS = re.compile(
    r"(?<![A-Za-z0-9])(?:0x)?(?:[A-Z]?[a-z]{4,}|[A-Z]{4,}|[0-9]{4,}|[0-9a-f]{6,}|[0-9A-F]{6,})(?![A-Za-z0-9])"
)
# A translation table to character kinds: "a" lower case, "A" upper case, "0" digit, "." other ASCII.
_KINDS = dict.fromkeys(range(128), ".") | {
    ord(char): kind for kind, chars in (("a", ascii_lowercase), ("A", ascii_uppercase), ("0", digits)) for char in chars
}
_KIND_CHANGES, _ALPHANUMERIC = ("aA", "a0", "Aa", "A0", "0a", "0A"), re.compile(r"[aA0]+")
_SPELT = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z][a-z]{2}")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SEPARATOR = re.compile(r"[/_-]")
# The beginnings of runs that aren't secrets: paths, ids of calls, messages, requests and sessions, public keys, images.
_PUBLIC_START = re.compile(
    r"(?:[^ ]*/)?(?:(?:srv)?toolu|tooluse|call|msg|msgbatch|req|resp|chatcmpl|cmpl|gen|rs|fc|ctc|ws|ig|run|thread|asst|"
    r"file|item|step|evt|event|sess|session|agent|task|batch|vm|cse|org|proj|user|wrkspc|exec|id|part|prt|ses)[_-]|"
    r"/[a-z]{2,}/|[a-z]{4,}/|(?:sha[0-9]+|md5|nonce)-|AAAA[A-Z][23][A-Za-z]|iVBORw0KGgo|/9j/4AAQ|R0lGOD|UEsDB|H4sI|JVBERi|PHN2Zy|d09G|AAEAAAA"
)
# Text before runs that aren't secrets: hashes of a lock file, data URLs, fingerprints, checksums.
_PUBLIC_BEFORE = re.compile(
    r"(?:sha(?:1|224|256|384|512)[-:=]|md5[-:=]|[hr]1:|base64,|mappings\":\"|integrity[\"']?[:=] ?[\"']?|"
    r"nonce-|think-sig: )$",
    re.IGNORECASE,
)
_PUBLIC_BEFORE_LENGTH = 24
ENCODED_LINE_LENGTHS = frozenset({60, 64, 70, 72, 76})
_MAX_PREVIOUS_LINE = 200
_NEXT_ENCODED_LINE = re.compile(r"\r?\n[ \t+>|]{0,8}(?:[A-Za-z0-9+/=]{32,}|=[A-Za-z0-9+/]{4}|-----END)")
_MIN_LENGTH_TO_JUDGE = 8
# Thresholds of `is_random`, as shares. Of a run's characters, letters and digits that remain without _WORDS, at least:
_MIN_REMAINDER = 0.5
# Of the pairs of neighbouring characters, those of different kinds, at least: with both cases and digits, with both
# cases but no digits, with digits and one case.
_MIN_CHANGES_MIXED, _MIN_CHANGES_LETTERS, _MIN_CHANGES_ONE_CASE = 0.36, 0.47, 0.06
# Of the remaining characters, those that spell something, less than:
_MAX_SPELT = 0.7


def find(text: str) -> Iterator[tuple[int, int]]:
    """The spans (start, end) of random runs of MIN_LENGTH to MAX_LENGTH characters that aren't public values."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        if end - start > MAX_LENGTH or not is_random(match[0]):
            continue
        if _PUBLIC_START.match(match[0]) or _is_encoded_line(text, start, end):
            continue
        if not _PUBLIC_BEFORE.search(text[max(start - _PUBLIC_BEFORE_LENGTH, 0) : start]):
            yield start, end


def _is_encoded_line(text: str, start: int, end: int) -> bool:
    """Whether the run is one line of an encoded block (base64 file, certificate, signature).

    Then it has one of the usual lengths, and a neighbouring line is encoded too or is the block's BEGIN marker.
    """
    length = end - start
    if length not in ENCODED_LINE_LENGTHS:
        return False
    if _NEXT_ENCODED_LINE.match(text, end):
        return True
    # The line break directly before the run is excluded from the search, so this is the line before it.
    previous_start = text.rfind("\n", max(start - _MAX_PREVIOUS_LINE, 0), max(start - 1, 0)) + 1
    previous_line = text[previous_start:start].strip(" \t\r\n+>|")
    return previous_line.startswith("-----BEGIN") or len(previous_line) == length


def is_random(run: str) -> bool:
    """Whether a run was randomly generated, by how often it switches between lower case, upper case and digits.

    Words, numbers and hexadecimal parts are taken out first; if they are most of it, it isn't random. Nor is a run of
    fewer than eight characters, which can't be judged.
    """
    remainder = _WORDS.sub("", UUID.sub("", run))
    kinds = remainder.translate(_KINDS)
    parts = _ALPHANUMERIC.findall(kinds)
    count = sum(map(len, parts))
    if len(run) < _MIN_LENGTH_TO_JUDGE or count < _MIN_REMAINDER * len(run):
        return False
    changes = sum(map(kinds.count, _KIND_CHANGES))
    neighbouring_pairs = count - len(parts)
    change_rate = changes / max(neighbouring_pairs, 1)
    has_digits = "0" in kinds
    if "a" not in kinds or "A" not in kinds:
        return has_digits and change_rate >= _MIN_CHANGES_ONE_CASE and not _SEPARATOR.search(run)
    # Letters that look like words within a longer part, where _WORDS doesn't match.
    spelt = sum(match.end() - match.start() for match in _SPELT.finditer(remainder))
    min_changes = _MIN_CHANGES_MIXED if has_digits else _MIN_CHANGES_LETTERS
    return change_rate >= min_changes and spelt < _MAX_SPELT * count
