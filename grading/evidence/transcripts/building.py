"""Building the index of a transcript, in a temporary file that is renamed at the end: others may read or build it."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, cast

from django.db import connection

from grading import formats, wakeup
from grading.evidence import store
from grading.evidence.transcripts import cache, index
from grading.evidence.transcripts.cache import IndexProgress
from grading.evidence.transcripts.lines import TranscriptLine, lines
from grading.formats import EmptyTranscript, UnknownFormat
from grading.models import Evidence
from grading.models.evidence import EvidenceKind

logger = logging.getLogger(__name__)

# Transcripts up to this many bytes are indexed within the request.
SYNC_SIZE = 512 * 1024
PROGRESS_SECONDS = 0.25


class Counted:
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        piece = self._stream.read(size)
        self.count += len(piece)
        return piece


def announce(row: Evidence) -> None:
    """Have a worker index a large transcript that arrived. If no worker can, its first reader does it."""
    if row.kind == EvidenceKind.TRANSCRIPT and not row.problem and row.size > SYNC_SIZE:
        wakeup.publish("grading.tasks.index_transcript", row.pk)


def request_index(row: Evidence) -> str:
    """Have an index made: a small one at once, a large one by a worker, or in a thread if no worker does it.

    Returns what prevents that, or an empty string.
    """
    if row.size <= SYNC_SIZE:
        return build(row)
    if cache.progress(row) is not None:  # somebody is building it
        return ""
    was_requested = cache.was_requested(row)
    try:
        cache.write_progress(row, IndexProgress())
    except OSError as error:
        return f"The index of the transcript cannot be written ({error}): mend the folder {cache.path_of(row).parent}"
    # If it was requested before and nobody is building it, no worker will.
    if was_requested or not wakeup.publish("grading.tasks.index_transcript", row.pk):
        threading.Thread(target=_build_in_thread, args=[row], name=f"index {row}", daemon=True).start()
    return ""


def _build_in_thread(row: Evidence) -> None:
    try:
        build(row)
    finally:
        connection.close()


def build(row: Evidence) -> str:
    """Make the index of a transcript. Returns what went wrong, or an empty string."""
    try:
        _build(row)
    except (UnknownFormat, EmptyTranscript, OSError, sqlite3.Error) as error:
        return _record_failure(row, f"The transcript could not be read: {error}")
    except Exception as error:
        logger.exception("the index of %s could not be made", row)
        return _record_failure(row, f"The transcript could not be read: {type(error).__name__}: {error}")
    cache.delete_progress(row)
    return ""


def _build(row: Evidence) -> None:
    """Write the index to a temporary file, and rename that. Raises what reading and writing raise."""
    path = cache.path_of(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{row.sha256}.", suffix=".part", delete=False) as file:
        part = Path(file.name)
    try:
        with store.open(row) as stream:
            counted = Counted(stream)
            reader = formats.read(cast("BinaryIO", counted), row.filename)
            index.write(part, reader.format, _report_progress(row, lines(reader), counted))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    # The row may have been erased meanwhile: an erasure deletes the bytes first, so it or this check deletes the index.
    if not store.is_kept(row.sha256):
        cache.forget(row.sha256)
    cache.prune(path)


def _report_progress(
    row: Evidence, transcript_lines: Iterator[TranscriptLine], counted: Counted
) -> Iterator[TranscriptLine]:
    """Pass the lines through, writing the progress of a large transcript every PROGRESS_SECONDS."""
    reported_at = 0.0
    for line in transcript_lines:
        now = time.monotonic()
        if row.size > SYNC_SIZE and now - reported_at > PROGRESS_SECONDS:
            reported_at = now
            total = round(line.number * row.size / max(counted.count, 1))
            _write_progress(row, IndexProgress(events=line.number, about=total))
        yield line


def _record_failure(row: Evidence, problem: str) -> str:
    """Log the problem and write it as the progress of the index. Returns it."""
    logger.warning("no index of %s: %s", row, problem)
    _write_progress(row, IndexProgress(problem=problem))
    return problem


def _write_progress(row: Evidence, progress: IndexProgress) -> None:
    with suppress(OSError):  # readers can do without it
        cache.write_progress(row, progress)
