"""Transcripts of agent sessions as one stream of events, whichever harness wrote them. Pure.

In: bytes, hostile and of any length. Out: events in the order of the file, in constant memory, and a report of what
could not be read.
Start with `events`, the shape that all harnesses share; `gptme` is the shortest parser, `reader` the loop around them.

>>> from io import BytesIO
>>> reader = read(BytesIO(b'{"role": "user", "content": "Fix it", "timestamp": "2026-01-01T00:00:00"}'))
>>> [event.text for event in reader], reader.format, reader.report.coverage
(['Fix it'], 'gptme', 1.0)

To add a format:
1. write its module with one subclass of `Parser` (reader.py): `format`, `score`, `feed`, `header`, all bounded;
2. give each record an identity that its copies share (`copied_as`), and `identity` where the log has unique ids;
3. name the class in `PARSERS` (registry.py): detection, reading and the error messages go by that alone;
4. put a short real log into tests/data and make the tests of the other formats for it, the hostile ones first;
5. raise PARSER_VERSION only where logs that are read already would give other events.
"""

from io import BufferedReader, BytesIO, RawIOBase
from typing import BinaryIO, Final

from grading.formats.detection import HEAD, Detection, detect
from grading.formats.faults import EmptyTranscript, UnknownFormat
from grading.formats.lines import MAX_LINE
from grading.formats.reader import TranscriptReader
from grading.formats.registry import FORMATS, PARSERS, titles

__all__ = [
    "FORMATS",
    "PARSER_VERSION",
    "SNIFFED",
    "Detection",
    "EmptyTranscript",
    "TranscriptReader",
    "UnknownFormat",
    "detect",
    "read",
    "recognise",
    "titles",
]

PARSER_VERSION: Final = "2"
"""Raised whenever the same bytes would give other events (L8)."""

MAX_HEAD: Final = 4 * 1024 * 1024
SNIFFED: Final = 64 * 1024


def read(stream: BinaryIO, filename: str = "", *, known: str = "", max_line: int = MAX_LINE) -> TranscriptReader:
    """A reader of the transcript in a binary stream, from where the stream stands; it need not be seekable. Its format
    is the one of that name, where it is `known`; else it is recognised.

    Raises EmptyTranscript where there is nothing, UnknownFormat where no supported format is recognised. Nothing else
    is raised, then or while iterating, whatever the bytes are (the stream's own errors apart). The caller closes the
    stream. Lines over `max_line` bytes are skipped and counted.
    """
    head, is_all = _head(stream)
    if not head.strip():
        if not is_all and stream.read(1):
            raise UnknownFormat("white space only", expected=FORMATS, head=head, filename=filename)
        raise EmptyTranscript(filename)
    parser = PARSERS.get(known)
    if parser is None:
        detection = detect(head, filename)
        if detection.format is None:
            raise UnknownFormat(detection.reason, expected=FORMATS, head=head, filename=filename)
        parser = PARSERS[detection.format]
    whole = BytesIO(head) if is_all else BufferedReader(_Rejoined(head, stream), HEAD)
    return TranscriptReader(whole, parser, max_line=max_line)


def recognise(stream: BinaryIO, filename: str = "") -> Detection:
    """Which format a binary stream is of, from its beginning, for whoever would leave anything else alone.

    Text and bytes that are no JSON lines are told by SNIFFED bytes; of JSON lines as much is read as `read` goes by.
    Raises EmptyTranscript and UnknownFormat where `read` would.
    """
    head = stream.read(SNIFFED)
    is_all = len(head) < SNIFFED
    detection = detect(head, filename)
    is_one_line = b"\n" not in head and head.lstrip(b"\xef\xbb\xbf \t\r").startswith(b"{")
    if not is_all and detection.format is None and (detection.records or is_one_line):
        more, is_all = _head(stream)
        head += more
        detection = detect(head, filename)
    if not head.strip() and is_all:
        raise EmptyTranscript(filename)
    if detection.format is None:
        raise UnknownFormat(detection.reason, expected=FORMATS, head=head, filename=filename)
    return detection


def _head(stream: BinaryIO) -> tuple[bytes, bool]:
    """At least `HEAD` bytes, and on to the end of a line where one is longer; at most `MAX_HEAD`. And whether they are
    all that there is.
    """
    head = bytearray()
    while len(head) < HEAD or (len(head) < MAX_HEAD and head.count(b"\n") < 2):  # noqa: PLR2004 - one whole line and more
        piece = stream.read(HEAD)
        if not piece:
            return bytes(head), True
        head += piece
    return bytes(head), False


class _Rejoined(RawIOBase):
    """What was read of a stream for detection, followed by the rest of it."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # narrower than typeshed's WriteableBuffer
        piece = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)
