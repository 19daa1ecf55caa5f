"""Reads a JSON document of any length as a stream of records, and the beginning of one as far as it goes."""

import codecs
import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any, BinaryIO, Final

import ijson
from ijson.common import ObjectBuilder

from grading.formats.lines import LineTally

MAX_DEPTH: Final = 200
CHUNK: Final = 64 * 1024
OPENING, CLOSING = ("start_map", "start_array"), ("end_map", "end_array")
# Python writes these, which are no JSON.
CONSTANT: Final = re.compile(r"([:,\[]\s{0,20})(?:NaN|-?Infinity)(?=\s{0,20}[,\]}])")
LONGEST_CONSTANT: Final = 64


class TooDeep(ValueError):
    """JSON that is nested deeper than MAX_DEPTH."""


class _ValidJson:
    """A stream's JSON as valid UTF-8: other bytes become U+FFFD, and NaN and Infinity null."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._rest = ""

    def read(self, size: int = CHUNK) -> bytes:
        """At least one byte, unless `size` is 0 or the stream has ended."""
        if size == 0:
            return b""
        while piece := self._stream.read(CHUNK):
            text = CONSTANT.sub(r"\1null", self._rest + self._decoder.decode(piece))
            end = max(len(text) - LONGEST_CONSTANT, 0)  # a constant after it may go on in the next piece
            self._rest = text[end:]
            if end > 0:
                return text[:end].encode()
        text = CONSTANT.sub(r"\1null", self._rest + self._decoder.decode(b"", final=True))
        self._rest = ""
        return text.encode()


def read_document(
    stream: BinaryIO, tally: LineTally, paths: frozenset[str], *, max_size: int
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yields (a unique text, {"path", "value"}) for each value at one of the paths of a JSON document, in its order.

    A path has the keys from the document's root, and `item` for a list's items: `messages.item.id`. A value of more
    than `max_size` characters is skipped, and so is what comes after an error; both are counted in `tally`.
    """
    number = 0
    try:
        for path, value in _values(stream, paths, max_size):
            number += 1
            tally.lines += 1
            if value is _OVERSIZED:
                tally.oversized += 1
                tally.problems.note(f"{path} is longer than {max_size} characters and was skipped")
            else:
                yield b"%d" % number, {"path": path, "value": value}
    except ijson.IncompleteJSONError:
        tally.lines += 1
        tally.torn_tail = True
    except (ijson.JSONError, TooDeep) as error:
        tally.count_not_an_object(number + 1, f"text that is not JSON ({str(error)[:60]})")


_OVERSIZED: Final = object()


def _values(stream: BinaryIO, paths: frozenset[str], max_size: int) -> Iterator[tuple[str, Any]]:
    """(path, value) of each value at one of the paths, or _OVERSIZED as the value."""
    max_depth = max(path.count(".") + 1 for path in paths)
    keys: list[str] = []  # of the open containers: "item" for a list, the current key for an object
    builder: ObjectBuilder | None = None  # of the value that is being read, None outside of the paths
    value_depth = size = 0
    for event, value in _events(stream):
        if event in CLOSING:
            keys.pop()
        elif event == "map_key":
            keys[-1] = value
        elif builder is None and len(keys) <= max_depth:  # a value begins
            path = ".".join(keys)
            if path in paths:
                builder, value_depth, size = ObjectBuilder(), len(keys), 0
        if event in OPENING:
            keys.append("item" if event == "start_array" else "")
        if builder is None:
            continue
        size += len(value) if isinstance(value, str) else 1
        if size <= max_size:
            builder.event(event, value)
        if len(keys) == value_depth:  # the value ends
            yield path, builder.value if size <= max_size else _OVERSIZED
            builder = None


def _events(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """The parser's events, with U+FFFD for NUL, which no database can store. Raises JSONError and TooDeep."""
    depth = 0
    try:
        for event, value in ijson.basic_parse(_ValidJson(stream), use_float=True):
            depth += (event in OPENING) - (event in CLOSING)
            if depth > MAX_DEPTH:
                raise TooDeep(f"nested deeper than {MAX_DEPTH}")
            if isinstance(value, str) and "\x00" in value:
                value = value.replace("\x00", "\ufffd")  # noqa: PLW2901
            yield event, value
    except UnicodeDecodeError as error:
        raise ijson.JSONError("the escape of the second half of a surrogate pair alone") from error


def read_beginning(head: bytes) -> Any:
    """What a JSON document holds as far as its beginning goes: an unfinished list or object with its first parts.

    None if it doesn't begin like a JSON object or list.
    """
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return None
    builder = ObjectBuilder()
    try:
        for event, value in _events(BytesIO(head)):
            builder.event(event, value)
    except (ijson.JSONError, TooDeep):
        pass
    return getattr(builder, "value", None)
