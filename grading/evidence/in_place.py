"""Logs that stay where their harness keeps them: `gradingsite try` reads them there, and stores no copy.

A log that grows stays readable, because evidence is its first bytes, as many as there were when it was read. One that
its harness deletes or rewrites is gone. `grading.trial.keeping` copies logs into the store before that.
"""

import io
from pathlib import Path
from typing import BinaryIO

from grading.models import LogInPlace
from grading.plain import UNSTORABLE


class FirstBytes(io.RawIOBase):
    """The first `size` bytes of an open file, from its beginning. The file stays open."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        file.seek(0)
        self._file, self._remaining = file, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs want any buffer
        piece = self._file.read(min(len(buffer), self._remaining))
        buffer[: len(piece)] = piece
        self._remaining -= len(piece)
        return len(piece)


def can_be_stored(path: Path) -> bool:
    """Whether a path is text that databases take. On Linux, names may be any bytes."""
    return not UNSTORABLE.search(str(path))


def is_known(path: Path) -> bool:
    """Whether the log was read in place as it is now."""
    if not can_be_stored(path):
        return False
    try:
        status = path.stat()
    except OSError:
        return False
    return LogInPlace.objects.filter(path=str(path), size=status.st_size, modified=status.st_mtime_ns).exists()


def exists(sha256: str) -> bool:
    """Whether these bytes were read in place, and the file there still has as many."""
    row = LogInPlace.objects.filter(pk=sha256).first()
    try:
        return row is not None and Path(row.path).stat().st_size >= row.size
    except OSError:
        return False
