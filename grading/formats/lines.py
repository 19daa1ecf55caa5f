"""A bounded reader of JSON lines that survives what real logs contain, and counts it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

MAX_LINE: Final = 32 * 1024 * 1024
CHUNK: Final = 64 * 1024
WHITESPACE: Final = " \t\r\n"

# A pair of surrogates is one character and stays; half a pair and NUL can be stored in no database.
ESCAPES: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}|u0000)|.)", re.DOTALL
)
SUSPECT: Final = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")


class Problems:
    """What was odd in a file, in words, each with how often it was seen. Bounded whatever the file contains."""

    LIMIT: Final = 40

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def note(self, problem: str) -> None:
        if problem not in self._seen and len(self._seen) >= self.LIMIT:
            problem = "other problems"
        self._seen[problem] = self._seen.get(problem, 0) + 1

    def words(self) -> tuple[str, ...]:
        return tuple(problem if n == 1 else f"{problem} ({n} times)" for problem, n in self._seen.items())


@dataclass(slots=True)
class LineTally:
    """What the line reader met. `lines` counts records: a glued line counts once for each of its objects."""

    lines: int = 0
    torn_tail: bool = False
    not_objects: int = 0
    glued: int = 0
    oversized: int = 0
    invalid_utf8: int = 0
    problems: Problems = field(default_factory=Problems)

    def count_not_an_object(self, number: int, what: str) -> None:
        self.lines += 1
        self.not_objects += 1
        self.problems.note(f"{what}, first on line {number}" if self.not_objects == 1 else what)


def read_lines(stream: BinaryIO, tally: LineTally, *, max_line: int = MAX_LINE) -> Iterator[tuple[int, bytes, bool]]:
    """Yields (line number, bytes without the line end, whether the line was ended) for each non-blank line.

    Only LF ends a line, so U+2028 inside a string is text. A line longer than `max_line` bytes is skipped in pieces,
    never held whole, and counted.
    """
    number = 0
    while line := stream.readline(max_line + 1):
        number += 1
        if len(line) > max_line and not line.endswith(b"\n"):
            while (piece := stream.readline(CHUNK)) and not piece.endswith(b"\n"):
                pass
            tally.lines += 1
            tally.oversized += 1
            tally.problems.note(f"line {number} is longer than {max_line} bytes and was skipped")
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line.rstrip(b"\r\n"), line.endswith(b"\n")


def read_objects(
    stream: BinaryIO, tally: LineTally, *, max_line: int = MAX_LINE
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (its JSON text, the object) for each JSON object of a file, glued ones apart; counts all the rest."""
    for number, raw, ended in read_lines(stream, tally, max_line=max_line):
        line = decode_text(raw, tally)
        found = 0
        for source, value in split_json(line, tally):
            if value is BROKEN and not ended:
                tally.lines += 1
                tally.torn_tail = True
            elif value is BROKEN:
                tally.count_not_an_object(number, "text that is not JSON")
            elif not isinstance(value, dict):
                tally.count_not_an_object(number, "JSON that is not an object")
            else:
                found += 1
                tally.lines += 1
                yield source, value
        tally.glued += max(0, found - 1)


def decode_text(raw: bytes, tally: LineTally) -> str:
    """Text of a line with U+FFFD for what no database can hold: broken UTF-8, half surrogates, NUL."""
    try:
        line = raw.decode()
    except UnicodeDecodeError:
        tally.invalid_utf8 += 1
        line = raw.decode(errors="replace")
    clean = storable(line)
    tally.invalid_utf8 += clean != line
    return clean


def storable(source: str) -> str:
    """JSON text whose escapes for half surrogates and NUL are made U+FFFD."""
    if not SUSPECT.search(source):
        return source
    return ESCAPES.sub(lambda match: r"\ufffd" if match[1] else match[0], source)


BROKEN: Final = object()


def split_json(line: str, tally: LineTally) -> Iterator[tuple[str, Any]]:
    """Yields (text, value) for each JSON value of a line in turn; what cannot be read is one `BROKEN` to its end."""

    def not_a_number(name: str) -> None:
        tally.problems.note(f"{name} instead of a number")

    decoder = json.JSONDecoder(parse_constant=not_a_number)
    start = 0
    while start < len(line):
        if line[start] in WHITESPACE:
            start += 1
            continue
        try:
            value, end = decoder.raw_decode(line, start)
        except RecursionError:
            tally.problems.note("JSON nested too deeply")
            yield line[start:], BROKEN
            return
        except ValueError:  # also an integer of more digits than Python will convert
            yield line[start:], BROKEN
            return
        yield line[start:end], value
        start = end


def json_or_none(source: object) -> Any:
    """The value of JSON text inside a field, or None: hostile, so as guarded as a line."""
    if not isinstance(source, str):
        return None
    for _, value in split_json(storable(source), LineTally()):
        return None if value is BROKEN else value
    return None
