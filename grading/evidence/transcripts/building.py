"""Building an index, once, while others may read or build it too: beside its place, then moved there in one step."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, cast

from grading import formats, wakeup
from grading.evidence import store
from grading.evidence.transcripts import cache, index
from grading.evidence.transcripts.cache import IndexProgress
from grading.evidence.transcripts.lines import TranscriptLine, lines
from grading.formats import EmptyTranscript, UnknownFormat
from grading.models import Evidence
from grading.models.evidence import EvidenceKind

logger = logging.getLogger(__name__)

# Up to here an index is made while somebody waits for it.
SMALL = 512 * 1024
TOLD_SECONDS = 0.25


class Counted:
    """A stream that knows how much of it was read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        piece = self._stream.read(size)
        self.count += len(piece)
        return piece


def announce(row: Evidence) -> None:
    """A transcript has arrived: have a large one's index made by a worker. Without one, its first reader sees to it."""
    if row.kind == EvidenceKind.TRANSCRIPT and not row.problem and row.size > SMALL:
        wakeup.publish("grading.tasks.index_transcript", row.pk)


def ask(row: Evidence) -> str:
    """See to it that an index is made: a small one at once, a large one by a worker, or here where none comes. What
    stands in the way, in words.
    """
    if row.size <= SMALL:
        return build(row)
    if cache.progress(row) is None:
        was_asked_for = cache.was_asked_for(row)
        try:
            cache.say(row, IndexProgress())
        except OSError as error:
            return (
                f"The index of the transcript cannot be written ({error}): mend the folder {cache.path_of(row).parent}"
            )
        if was_asked_for or not wakeup.publish("grading.tasks.index_transcript", row.pk):
            threading.Thread(target=build, args=[row], name=f"index {row}", daemon=True).start()
    return ""


def build(row: Evidence) -> str:
    """Make the index of a transcript; what went wrong, in words, as those who wait are told. Asks no database."""
    try:
        _build(row)
    except (UnknownFormat, EmptyTranscript, OSError, sqlite3.Error) as error:
        return _failed(row, f"The transcript could not be read: {error}")
    except Exception as error:
        logger.exception("the index of %s could not be made", row)
        return _failed(row, f"The transcript could not be read: {type(error).__name__}: {error}")
    cache.done(row)
    return ""


def _build(row: Evidence) -> None:
    path = cache.path_of(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{row.sha256}.", suffix=".part", delete=False) as file:
        part = Path(file.name)
    try:
        with store.open(row) as stream:
            counted = Counted(stream)
            reader = formats.read(cast("BinaryIO", counted), row.filename)
            index.write(part, reader.format, _told(row, lines(reader), counted))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    # Erased meanwhile: the bytes go first and then what was made from them, so one of the two sees the other.
    if not store.is_kept(row.sha256):
        cache.forget(row.sha256)
    cache.prune(path)


def _told(row: Evidence, found: Iterator[TranscriptLine], counted: Counted) -> Iterator[TranscriptLine]:
    """The same lines, and now and then how far they are."""
    told = 0.0
    for line in found:
        if (now := time.monotonic()) - told > TOLD_SECONDS and row.size > SMALL:
            told = now
            _say(row, IndexProgress(events=line.number, about=round(line.number * row.size / max(counted.count, 1))))
        yield line


def _failed(row: Evidence, problem: str) -> str:
    logger.warning("no index of %s: %s", row, problem)
    _say(row, IndexProgress(problem=problem))
    return problem


def _say(row: Evidence, said: IndexProgress) -> None:
    """Those who wait can do without."""
    with suppress(OSError):
        cache.say(row, said)
