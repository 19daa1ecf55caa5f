"""Expands logs that a harness compressed, and refuses those that expand out of all proportion."""

from io import BufferedReader, BytesIO, RawIOBase
from typing import BinaryIO, Final, cast

import zstandard

from grading.formats.errors import UnknownFormat

ZSTD: Final = b"\x28\xb5\x2f\xfd"
MAX_WINDOW: Final = 32 * 1024 * 1024
"""Bytes of memory that a compressed file may ask for."""
ALWAYS_EXPANDED, MAX_RATIO = 16 * 1024 * 1024, 200
"""Any file may expand to the first; a larger one to at most so many times its compressed size."""
BUFFER: Final = 64 * 1024


def check_ratio(expanded: int, compressed: int) -> None:
    """Raises UnknownFormat if so many bytes are too many to have come from a compressed log."""
    if expanded > ALWAYS_EXPANDED and expanded > MAX_RATIO * compressed:
        raise UnknownFormat(f"a compressed file that expands to more than {MAX_RATIO} times its size, beyond any log")


def expand_zstd(head: bytes, rest: BinaryIO) -> BinaryIO:
    """The expanded bytes of a file compressed with Zstandard, of which `head` was read already.

    Reading raises UnknownFormat if the file is damaged, or expands out of all proportion.
    """
    return BufferedReader(_Expanded(head, rest), BUFFER)


class _Expanded(RawIOBase):
    """A raw stream of the expanded bytes."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._source = _Counted(head, rest)
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._plain = decompressor.stream_reader(cast("BinaryIO", self._source), read_across_frames=True)
        self._expanded = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # narrower than typeshed's WriteableBuffer
        try:
            size = self._plain.readinto(buffer)
        except zstandard.ZstdError as error:
            raise UnknownFormat(f"a compressed file that is damaged ({error})") from error
        self._expanded += size
        check_ratio(self._expanded, self._source.count)
        return size


class _Counted:
    """The compressed bytes, `head` and then the rest; `count` is how many were read."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = BytesIO(head)
        self._rest = rest
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._head.read(size) or self._rest.read(size)
        self.count += len(piece)
        return piece
