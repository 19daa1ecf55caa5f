"""Where private keys stand in a text: whole ones, and what is left of one whose beginning or end was cut off.

Written as code, since a pattern that allows for all this backtracks without end on a long base64 line.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

# No key is longer, in characters.
LONGEST = 20_000
_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BEGIN, _END = re.compile(f"-----BEGIN {_LABEL}"), re.compile(f"-----END {_LABEL}")
_PUTTY = re.compile(r"Private-Lines: \d{1,3}")
# A line ends at a break, real or written as an escape; around it are the marks of diffs, quotes, lists and numbering.
_LINE = re.compile(r"[^\n\r\\]+")
_BEFORE, _AFTER = r"[nr]?[ \t+|>,\"']*(?:\d{1,6}[\t→:]\s?)?", r"[ \t+|>,\"'…]*"
_BODY = re.compile(rf"{_BEFORE}[A-Za-z0-9+/=]{{16,}}{_AFTER}")
_SHORT = re.compile(rf"{_BEFORE}[A-Za-z0-9+/=]{{1,76}}")
_ALONE = re.compile(_SHORT.pattern + _AFTER)
_FIELD = re.compile(rf"{_BEFORE}[A-Z][\w-]{{2,20}}: .{{0,80}}")
_EMPTY = re.compile(rf"{_BEFORE}{_AFTER}")
_REST = re.compile(rf"[A-Za-z0-9+/=]{{16,}}{_AFTER}$")


def find(text: str) -> Iterator[tuple[int, int]]:
    """The spans of private keys, as (start, end)."""
    ends = list(_END.finditer(text))
    starts = [match.start() for match in ends]
    whole: set[int] = set()
    for begin in _BEGIN.finditer(text):
        at = bisect_left(starts, begin.end())
        if at < len(ends) and starts[at] - begin.end() <= LONGEST:
            whole.add(at)
            yield begin.start(), ends[at].end()
        else:
            yield begin.start(), _run(_LINE.finditer(text, begin.end(), begin.end() + LONGEST), begin.end())
    for begin in _PUTTY.finditer(text):
        yield begin.start(), _run(_LINE.finditer(text, begin.end(), begin.end() + LONGEST), begin.end())
    for at, end in enumerate(ends):
        if at not in whole:
            yield _back(text, end.start()), end.end()


def _run(lines: Iterable[re.Match[str]], end: int) -> int:
    """Where a key's lines end: header fields, full lines, and a last one that is shorter or has other text behind."""
    for line in lines:
        if not (_BODY.fullmatch(line[0]) or _FIELD.fullmatch(line[0]) or _EMPTY.fullmatch(line[0])):
            last = _SHORT.match(line[0])
            is_key = last is not None and (_ALONE.fullmatch(line[0]) or re.search(r"[\d+/=]", last[0]))
            return line.start() + last.end() if last is not None and is_key else end
        end = line.end()
    return end


def _back(text: str, start: int) -> int:
    """Where the lines of a key that ends at `start` begin, as far as they are there."""
    first = start
    for line in reversed(list(_LINE.finditer(text, max(0, start - LONGEST), start))):
        is_last = first == start
        if not (_BODY.fullmatch(line[0]) or _EMPTY.fullmatch(line[0]) or (is_last and _ALONE.fullmatch(line[0]))):
            rest = _REST.search(line[0])
            return first if rest is None else line.start() + rest.start()
        first = line.start()
    return first
