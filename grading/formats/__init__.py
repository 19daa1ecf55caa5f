"""Parses transcripts of agent sessions into one stream of events, whichever harness wrote them. Pure.

In: untrusted bytes of any length. Out: events in file order, in constant memory, and a report of what could not
be parsed.
Start with `events`, the shape that all harnesses share, and `registry`, which lists them; each has a package of its
own, and `reader` has the loop around their parsers.

>>> from io import BytesIO
>>> reader = read(BytesIO(b'{"role": "user", "content": "Fix it", "timestamp": "2026-01-01T00:00:00"}'))
>>> [event.text for event in reader], reader.format, reader.report.coverage
(['Fix it'], 'gptme', 1.0)

To add a format, see docs/how-to/add-a-log-format.md.
"""

from io import BufferedReader, BytesIO, RawIOBase
from typing import BinaryIO, Final

from grading.formats.compression import ZSTD, expand_zstd
from grading.formats.detection import HEAD_BYTES, Detection, detect, detect_form
from grading.formats.errors import EmptyTranscript, UnknownFormat
from grading.formats.lines import MAX_LINE
from grading.formats.reader import Form, TranscriptReader
from grading.formats.registry import BY_FORMAT, FORMATS, PARSERS, titles

PARSER_VERSION: Final = "7"
"""Raised whenever the same bytes would yield different events; caches of parsed transcripts are keyed by it."""

MAX_HEAD_BYTES: Final = 4 * 1024 * 1024
SNIFF_BYTES: Final = 64 * 1024


def read(stream: BinaryIO, filename: str = "", *, format_name: str = "", max_line: int = MAX_LINE) -> TranscriptReader:
    """Return a reader of the transcript in a binary stream, from the stream's current position; no seeking needed.

    `format_name` skips detection if it names a supported format. Raises EmptyTranscript if there is nothing to read
    and UnknownFormat if no supported format is detected. Nothing else is raised, now or while iterating, whatever the
    bytes are (errors of the stream aside); while iterating, UnknownFormat is only raised by a compressed log that is
    damaged or expands out of all proportion. The caller closes the stream. Lines over `max_line` bytes are skipped and
    counted.
    """
    head, at_end = _read_head(stream)
    if is_compressed := head.startswith(ZSTD):
        stream = expand_zstd(head, stream)
        head, at_end = _read_head(stream)
    if not head.strip():
        if not at_end and stream.read(1):
            raise _unknown("white space only", head, filename)
        raise EmptyTranscript(filename)
    parser = PARSERS.get(format_name)
    form = Form.LINES
    if parser is None:
        detection = detect(head, filename)
        if detection.format is None:
            raise _unknown(detection.reason, head, filename, detection.harness)
        parser, form = PARSERS[detection.format], detection.form
    elif parser.forms != {Form.LINES}:
        form = detect_form(head, parser)
    whole = BytesIO(head) if at_end else BufferedReader(_HeadThenRest(head, stream), HEAD_BYTES)
    return TranscriptReader(whole, parser, form=form, is_compressed=is_compressed, max_line=max_line)


def recognise(stream: BinaryIO) -> Detection:
    """Detect the format of a binary stream from its beginning, without parsing it.

    Reads SNIFF_BYTES, and more only if they look like JSON: then as much as `read` bases its decision on. Raises
    EmptyTranscript and UnknownFormat when `read` would.
    """
    head = stream.read(SNIFF_BYTES)
    at_end = len(head) < SNIFF_BYTES
    if head.startswith(ZSTD):
        stream = expand_zstd(head, stream)
        head = stream.read(SNIFF_BYTES)
        at_end = not head
    detection = detect(head)
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))
    if not at_end and detection.format is None and not detection.harness and is_json:
        more, at_end = _read_head(stream)
        head += more
        detection = detect(head)
    if not head.strip() and at_end:
        raise EmptyTranscript
    if detection.format is None:
        raise _unknown(detection.reason, head, "", detection.harness)
    return detection


def _unknown(reason: str, head: bytes, filename: str, harness: str = "") -> UnknownFormat:
    return UnknownFormat(reason, head=head, filename=filename, harness=harness, formats=FORMATS)


def _read_head(stream: BinaryIO) -> tuple[bytes, bool]:
    """(the first bytes, whether the stream ended with them).

    At least HEAD_BYTES, and more until two line ends are in them; at most MAX_HEAD_BYTES and one more piece.
    """
    head = bytearray()
    while len(head) < HEAD_BYTES or (len(head) < MAX_HEAD_BYTES and head.count(b"\n") < 2):  # noqa: PLR2004
        piece = stream.read(HEAD_BYTES)
        if not piece:
            return bytes(head), True
        head += piece
    return bytes(head), False


class _HeadThenRest(RawIOBase):
    """A raw stream of the bytes already read for detection, followed by the rest of the original stream."""

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
