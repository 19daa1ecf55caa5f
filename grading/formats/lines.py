"""Reads JSON lines in bounded memory; malformed lines are counted and reported, never raised."""

import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import msgspec

MAX_LINE: Final = 32 * 1024 * 1024
SKIP_CHUNK: Final = 64 * 1024
WHITESPACE: Final = " \t\r\n"

# Group 1 matches an escape that no database can store: half a surrogate pair, or NUL. A whole pair is one character.
ESCAPES: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}|u0000)|.)", re.DOTALL
)
MAYBE_UNSTORABLE: Final = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
NUL: Final = r"\u0000"


class Problems:
    """Descriptions of a file's problems, each with its number of occurrences; at most LIMIT + 1 different ones."""

    LIMIT: Final = 40

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def note(self, problem: str) -> None:
        if problem not in self._counts and len(self._counts) >= self.LIMIT:
            problem = "other problems"
        self._counts[problem] = self._counts.get(problem, 0) + 1

    def as_texts(self) -> tuple[str, ...]:
        return tuple(problem if n == 1 else f"{problem} ({n} times)" for problem, n in self._counts.items())


INVALID_JSON: Final = object()


@dataclass(slots=True)
class LineTally:
    """Counts of what the line reader encountered. `lines` counts a line of several glued objects once per object."""

    lines: int = 0
    torn_tail: bool = False
    not_objects: int = 0
    glued: int = 0
    oversized: int = 0
    invalid_utf8: int = 0
    problems: Problems = field(default_factory=Problems)

    def count_not_an_object(self, line_number: int, problem: str) -> None:
        self.lines += 1
        self.not_objects += 1
        self.problems.note(f"{problem}, first on line {line_number}" if self.not_objects == 1 else problem)


def read_lines(stream: BinaryIO, tally: LineTally, *, max_line: int = MAX_LINE) -> Iterator[tuple[int, bytes, bool]]:
    """Yields (line number from 1, bytes without the line end, whether it has a line end) for each non-blank line.

    Only LF ends a line, so U+2028 inside a string is text. A line longer than `max_line` bytes is skipped in chunks,
    without reading it into memory, and counted.
    """
    number = 0
    while line := stream.readline(max_line + 1):
        number += 1
        if len(line) > max_line and not line.endswith(b"\n"):
            while (piece := stream.readline(SKIP_CHUNK)) and not piece.endswith(b"\n"):
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
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yields (JSON text, object) for each JSON object of a file, also several on a line; counts everything else."""
    nul = NUL.encode()
    # A log is read 1.5 times as fast as with Python's decoder alone, which reads what msgspec refuses.
    for number, raw, has_line_end in read_lines(stream, tally, max_line=max_line):
        value = INVALID_JSON if nul in raw else decode_strict_json(raw)
        if isinstance(value, dict):
            tally.lines += 1
            yield raw.strip(), value
            continue
        object_count = 0
        for source, value in split_json(decode_text(raw, tally), tally):
            if isinstance(value, dict):
                object_count += 1
                tally.lines += 1
                yield source.encode(), value
            elif value is not INVALID_JSON:
                tally.count_not_an_object(number, "JSON that is not an object")
            elif has_line_end:
                tally.count_not_an_object(number, "text that is not JSON")
            else:
                tally.lines += 1
                tally.torn_tail = True
        tally.glued += max(0, object_count - 1)


def decode_strict_json(source: bytes | str) -> Any:
    """The JSON value that a text is, or INVALID_JSON if it isn't exactly one, in UTF-8, without NaN, Infinity, numbers
    beyond a float's range and lone surrogates. NUL is not replaced.
    """
    try:
        return msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return INVALID_JSON


def decode_text(raw: bytes, tally: LineTally) -> str:
    """A line as text, with U+FFFD for what no database can store: invalid UTF-8, lone surrogates, NUL."""
    try:
        line = raw.decode()
    except UnicodeDecodeError:
        tally.invalid_utf8 += 1
        line = raw.decode(errors="replace")
    clean = replace_unstorable(line)
    tally.invalid_utf8 += clean != line
    return clean


def replace_unstorable(source: str) -> str:
    """JSON text with its escapes for lone surrogates and NUL replaced by the escape for U+FFFD."""
    if not MAYBE_UNSTORABLE.search(source):
        return source
    return ESCAPES.sub(lambda match: r"\ufffd" if match[1] else match[0], source)


def split_json(line: str, tally: LineTally) -> Iterator[tuple[str, Any]]:
    """Yields (text, value) for each JSON value of a line; from the first error on, the rest is one INVALID_JSON.

    NaN and Infinity become None and are noted.
    """

    def replace_constant(name: str) -> None:
        tally.problems.note(f"{name} instead of a number")

    decoder = json.JSONDecoder(parse_constant=replace_constant)
    start = 0
    while start < len(line):
        if line[start] in WHITESPACE:
            start += 1
            continue
        try:
            value, end = decoder.raw_decode(line, start)
        except RecursionError:
            tally.problems.note("JSON nested too deeply")
            yield line[start:], INVALID_JSON
            return
        except ValueError:  # also an integer of more digits than Python will convert
            yield line[start:], INVALID_JSON
            return
        yield line[start:end], value
        start = end


def json_or_none(source: object) -> Any:
    """The first JSON value of a field's text, parsed as cautiously as a line; None if it isn't JSON."""
    if not isinstance(source, str):
        return None
    value = INVALID_JSON if NUL in source else decode_strict_json(source)
    if value is INVALID_JSON:
        _text, value = next(split_json(replace_unstorable(source), LineTally()), ("", None))
    return None if value is INVALID_JSON else value


class RecentKeys:
    """The `limit` most recently added keys."""

    def __init__(self, limit: int = 50_000) -> None:
        self._keys: OrderedDict[str | bytes, None] = OrderedDict()
        self._limit = limit

    def __contains__(self, key: str | bytes) -> bool:
        return key in self._keys

    def check_and_add(self, key: str | bytes) -> bool:
        """Add a key, dropping the oldest beyond the limit; return whether it was there already."""
        if key in self._keys:
            self._keys.move_to_end(key)
            return True
        self._keys[key] = None
        if len(self._keys) > self._limit:
            self._keys.popitem(last=False)
        return False

    def discard(self, key: str | bytes) -> None:
        self._keys.pop(key, None)
