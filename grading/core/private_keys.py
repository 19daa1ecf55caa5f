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
# A line ends at a break, real or written as an escape; around it are the marks of diffs, quotes and lists.
_LINE = re.compile(r"[^\n\r\\]+")
_AROUND = " \t+|>,\"'"
_BODY = re.compile(r"[A-Za-z0-9+/=]{16,}")
_SHORT = re.compile(r"[A-Za-z0-9+/=]{1,76}")
_FIELD = re.compile(r"[A-Z][\w-]{2,20}: .{0,80}")


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
    """Where a key's lines end: header fields, full lines, and one shorter last line."""
    for line in lines:
        said = _said(line)
        if said and not (_BODY.fullmatch(said) or _FIELD.fullmatch(said)):
            return line.end() if _SHORT.fullmatch(said) else end
        end = line.end()
    return end


def _back(text: str, start: int) -> int:
    """Where the lines of a key that ends at `start` begin, as far as they are there."""
    first = start
    for line in reversed(list(_LINE.finditer(text, max(0, start - LONGEST), start))):
        said = _said(line)
        is_last = first == start
        if said and not (_BODY.fullmatch(said) or (is_last and _SHORT.fullmatch(said))):
            return first
        first = line.start()
    return first


def _said(line: re.Match[str]) -> str:
    """A line without the marks around it, and without the n of a `\\n` before it."""
    said = line[0]
    if line.start() and line.string[line.start() - 1] == "\\" and said[0] in "nr":
        said = said[1:]
    return said.strip(_AROUND)
