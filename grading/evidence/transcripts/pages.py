"""A transcript, a page of events at a time, and where in it something is said: never more than a moment's work."""

from dataclasses import dataclass
from typing import BinaryIO, cast

from grading import formats
from grading.evidence import store
from grading.evidence.transcripts import building, cache, index
from grading.evidence.transcripts.building import Counted
from grading.evidence.transcripts.cache import IndexProgress
from grading.evidence.transcripts.index import PAGE, Broken, Index, SearchHits
from grading.evidence.transcripts.lines import TranscriptLine, lines, raw_lines
from grading.formats import EmptyTranscript, UnknownFormat
from grading.models import Evidence
from grading.redaction import MARK, mark_at, redact

# Without an index, so many pages are read from the file, and so much of it; what is farther in waits for the index.
FIRST_PAGES, READ_AHEAD = 10, 2 * 1024 * 1024
BEYOND = "No event has such a number; the transcript ends before."


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPage:
    """The lines of events `first` to `first + PAGE - 1`; `previous` and `following` are where its neighbours begin.

    `last` is the number of the transcript's last line, None until that is known. There are no lines where `problem`
    says why in words, or `reading` how far the index is that they wait for.
    """

    lines: tuple[TranscriptLine, ...] = ()
    first: int = 1
    previous: int | None = None
    following: int | None = None
    last: int | None = None
    problem: str = ""
    reading: IndexProgress | None = None
    format: str = ""


def page(row: Evidence, number: int) -> TranscriptPage:
    """The page that holds event `number`, from 1. From the index; until there is one, from the start of the file."""
    first = _begin(max(number, 1))
    found = _indexed(row, first)
    if found is None:
        problem = building.ask(row)
        found = _indexed(row, first) or _read(row, first)
        if found.reading and problem:
            found = TranscriptPage(first=first, problem=problem)
    return found


def find(row: Evidence, query: str, after: int = 0) -> SearchHits | IndexProgress:
    """Events after number `after` that have `query` in them, whatever its case; how far the index is until it is there.

    Looks through what is kept of each event (lines.FOLDED characters), a bounded part of the transcript at a time.
    """
    path, problem = cache.held(row), ""
    if path is None:
        problem = building.ask(row)
        path = cache.held(row)
    try:
        if path is not None:
            with index.opened(path) as held:
                return held.find(query, after)
    except Broken:
        cache.forget(row.sha256)
    return cache.progress(row) or IndexProgress(problem=problem)


def hidden_in(row: Evidence, number: int, mark: int) -> str | None:
    """What stands behind a mark (from 0) of an event's line as it is shown; None where nothing does. Reads the file as
    far as that. Raises OSError where its bytes cannot be read.
    """
    try:
        with store.open(row) as file:
            line = next((line for line in raw_lines(formats.read(file, row.filename)) if line.number >= number), None)
    except (UnknownFormat, EmptyTranscript):
        return None
    if line is None or line.number != number:
        return None
    in_head = len(MARK.findall(redact(line.head)))
    return mark_at(line.head, mark) if mark < in_head else mark_at(line.told, mark - in_head)


def _begin(number: int) -> int:
    return (number - 1) // PAGE * PAGE + 1


def _indexed(row: Evidence, first: int) -> TranscriptPage | None:
    path = cache.held(row)
    try:
        if path is not None:
            with index.opened(path) as held:
                return _page(held, first)
    except Broken:
        cache.forget(row.sha256)
    return None


def _page(held: Index, first: int) -> TranscriptPage:
    found, before, later = held.block(first), held.before(first), held.since(first + PAGE)
    return TranscriptPage(
        lines=found,
        first=first,
        previous=before and _begin(before),
        following=later and _begin(later),
        last=held.last,
        problem="" if found or later else BEYOND,
        format=held.format,
    )


class _Enough(Exception):
    """So much is not read while somebody waits."""


class _Bounded(Counted):
    def read(self, size: int = -1, /) -> bytes:
        if self.count >= READ_AHEAD:
            raise _Enough
        return super().read(size)


def _read(row: Evidence, first: int) -> TranscriptPage:
    """The page from the file itself, where it is near the start."""
    found: list[TranscriptLine] = []
    before = later = None
    if first > FIRST_PAGES * PAGE and row.size > building.SMALL:
        return _later(row, first)
    try:
        with store.open(row) as file:
            reader = formats.read(cast("BinaryIO", _Bounded(file)), row.filename)
            for line in lines(reader):
                if line.number >= first + PAGE:
                    later = _begin(line.number)
                    break
                if line.number >= first:
                    found.append(line)
                else:
                    before = _begin(line.number)
    except _Enough:
        return _later(row, first)
    except (UnknownFormat, EmptyTranscript, OSError) as error:
        return TranscriptPage(problem=f"The transcript could not be read: {error}")
    return TranscriptPage(
        lines=tuple(found),
        first=first,
        previous=before,
        following=later,
        problem="" if found or later else BEYOND,
        format=reader.format,
    )


def _later(row: Evidence, first: int) -> TranscriptPage:
    """What is shown until the index is there."""
    said = cache.progress(row) or IndexProgress()
    return TranscriptPage(first=first, problem=said.problem, reading=None if said.problem else said, format=row.format)
