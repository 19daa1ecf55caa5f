"""Finds private keys in a text: complete ones, and parts of keys whose beginning or end was cut off.

Written as code because an equivalent pattern backtracks for very long on a long base64 line.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

MAX_KEY_LENGTH = 20_000
_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BEGIN, _END = re.compile(f"-----BEGIN {_LABEL}"), re.compile(f"-----END {_LABEL}")
_PUTTY = re.compile(r"Private-Lines: \d{1,3}")
# Lines end at line breaks, also escaped ones. _BEFORE and _AFTER: marks of diffs, quotes, lists and line numbers.
_LINE = re.compile(r"[^\n\r\\]+")
_BEFORE, _AFTER = r"[nr]?[ \t+|>,\"']*(?:\d{1,6}[\t→:]\s?)?", r"[ \t+|>,\"'…]*"
_BODY = re.compile(rf"{_BEFORE}[A-Za-z0-9+/=]{{16,}}{_AFTER}")
_SHORT = re.compile(rf"{_BEFORE}[A-Za-z0-9+/=]{{1,76}}")
_SHORT_LINE = re.compile(_SHORT.pattern + _AFTER)
_FIELD = re.compile(rf"{_BEFORE}[A-Z][\w-]{{2,20}}: .{{0,80}}")
_EMPTY = re.compile(rf"{_BEFORE}{_AFTER}")
_BODY_AT_END = re.compile(rf"[A-Za-z0-9+/=]{{16,}}{_AFTER}$")


def find(text: str) -> Iterator[tuple[int, int]]:
    """The spans (start, end) of private keys."""
    end_markers = list(_END.finditer(text))
    end_marker_starts = [marker.start() for marker in end_markers]
    matched_ends: set[int] = set()
    for begin in _BEGIN.finditer(text):
        index = bisect_left(end_marker_starts, begin.end())
        if index < len(end_markers) and end_marker_starts[index] - begin.end() <= MAX_KEY_LENGTH:
            matched_ends.add(index)
            yield begin.start(), end_markers[index].end()
        else:
            yield begin.start(), _body_end(text, begin.end())
    for begin in _PUTTY.finditer(text):
        yield begin.start(), _body_end(text, begin.end())
    for index, end_marker in enumerate(end_markers):
        if index not in matched_ends:
            yield _body_start(text, end_marker.start()), end_marker.end()


def _body_end(text: str, start: int) -> int:
    """The end offset of a key's lines from `start`: header fields, full lines, and a last one that is shorter or is
    followed by other text.
    """
    end = start
    for line in _LINE.finditer(text, start, start + MAX_KEY_LENGTH):
        if not (_BODY.fullmatch(line[0]) or _FIELD.fullmatch(line[0]) or _EMPTY.fullmatch(line[0])):
            # Before other text, a short run is part of the key only if it can't be a word.
            last = _SHORT.match(line[0])
            if last is not None and (_SHORT_LINE.fullmatch(line[0]) or re.search(r"[\d+/=]", last[0])):
                return line.start() + last.end()
            return end
        end = line.end()
    return end


def _body_start(text: str, end: int) -> int:
    """The offset at which the key's lines begin that end at `end`. Only the last of them may be short."""
    start = end
    for line in reversed(list(_LINE.finditer(text, max(0, end - MAX_KEY_LENGTH), end))):
        is_short_last = start == end and _SHORT_LINE.fullmatch(line[0])
        if not (_BODY.fullmatch(line[0]) or _EMPTY.fullmatch(line[0]) or is_short_last):
            body = _BODY_AT_END.search(line[0])
            return start if body is None else line.start() + body.start()
        start = line.start()
    return start
