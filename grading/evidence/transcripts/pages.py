"""A transcript page by page, and search in it. Each call reads a bounded amount, so that pages come quickly."""

from dataclasses import dataclass
from typing import BinaryIO, cast

from grading import formats
from grading.evidence import store
from grading.evidence.transcripts import building, cache, index
from grading.evidence.transcripts.building import Counted
from grading.evidence.transcripts.cache import IndexProgress
from grading.evidence.transcripts.index import PAGE, Broken, Index, SearchHits
from grading.evidence.transcripts.lines import FOLDED, TranscriptLine, lines, raw_lines
from grading.formats import EmptyTranscript, UnknownFormat
from grading.models import Evidence
from grading.redaction import MARK, mark_at, redact_slice

# Without an index, only these first pages and bytes are read from the file. Later pages wait for the index.
FIRST_PAGES, MAX_BYTES_READ = 5, 4 * 1024 * 1024
BEYOND_THE_END = "No event has such a number; the transcript ends before."


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPage:
    """Page `number` of a transcript: the lines of PAGE events.

    `previous` and `following` are the numbers of the nearest pages that have lines, or None.

    `last` is the number of the transcript's last line, None until that is known. There are no lines if `problem` says
    why, or while `reading` is the progress of the index that they wait for.
    """

    lines: tuple[TranscriptLine, ...] = ()
    number: int = 1
    previous: int | None = None
    following: int | None = None
    last: int | None = None
    problem: str = ""
    reading: IndexProgress | None = None
    format: str = ""

    @property
    def first(self) -> int:
        """The number of its first event."""
        return (self.number - 1) * PAGE + 1

    @property
    def end(self) -> int:
        """The number of its last event."""
        return min(self.number * PAGE, self.last or self.number * PAGE)

    @property
    def last_page(self) -> int | None:
        """The number of the transcript's last page, None until that is known."""
        return page_number(self.last) if self.last else None


def page(row: Evidence, number: int) -> TranscriptPage:
    """The page that contains event `number` (from 1), read from the index or, until there is one, from the file."""
    wanted = page_number(max(number, 1))
    result = _read_from_index(row, wanted)
    if result is None:
        problem = building.request_index(row)  # of a small transcript, it makes the index at once
        # Of a large file only the start is read: a later page waits for the index (`reading`).
        result = _read_from_index(row, wanted) or _read_from_file(row, wanted)
        # A page that waits for an index that can't be made would wait forever: it shows the problem instead.
        if result.reading is not None and problem:
            result = TranscriptPage(number=wanted, problem=problem)
    return result


def find(row: Evidence, query: str, after: int = 0) -> SearchHits | IndexProgress:
    """Search the events after number `after` for `query`, ignoring case. Without an index, returns its progress.

    Searches the stored text of each event (lines.FOLDED characters), a bounded part of the transcript in each call.
    """
    path, problem = cache.find_index(row), ""
    if path is None:
        problem = building.request_index(row)
        path = cache.find_index(row)
    try:
        if path is not None:
            with index.opened(path) as opened_index:
                return opened_index.find(query, after)
    except Broken:
        cache.forget(row.sha256)
    return cache.progress(row) or IndexProgress(problem=problem)


def hidden_in(row: Evidence, number: int, mark: int) -> str | None:
    """The redacted text behind the n-th `mark` (from 0) of event `number`'s line, or None if there is no such mark.

    The marks of the line's head come before those of its text. Reads the file up to that event. Raises OSError if its
    bytes can't be read.
    """
    try:
        with store.open(row) as file:
            all_lines = raw_lines(formats.read(file, row.filename))
            line = next((line for line in all_lines if line.number >= number), None)
    except (UnknownFormat, EmptyTranscript):
        return None
    if line is None or line.number != number:
        return None
    marks_in_head = len(MARK.findall(redact_slice(line.head, 0, FOLDED)))
    if mark < marks_in_head:
        return mark_at(line.head, mark)
    return mark_at(line.stored_text, mark - marks_in_head)


def page_number(event: int) -> int:
    """The number of the page that an event is on."""
    return (event - 1) // PAGE + 1


def _read_from_index(row: Evidence, number: int) -> TranscriptPage | None:
    """The page, or None if there is no readable index. A broken index is deleted."""
    path = cache.find_index(row)
    try:
        if path is not None:
            with index.opened(path) as opened_index:
                return _page_of(opened_index, number)
    except Broken:
        cache.forget(row.sha256)
    return None


def _page_of(opened_index: Index, number: int) -> TranscriptPage:
    first = (number - 1) * PAGE + 1
    page_lines = opened_index.block(first)
    line_before, line_after = opened_index.before(first), opened_index.since(first + PAGE)
    return TranscriptPage(
        lines=page_lines,
        number=number,
        previous=line_before and page_number(line_before),
        following=line_after and page_number(line_after),
        last=opened_index.last,
        problem="" if page_lines or line_after else BEYOND_THE_END,
        format=opened_index.format,
    )


class _ByteLimitReached(Exception):
    """MAX_BYTES_READ bytes were read, which is as much as fits into a request."""


class _LimitedStream(Counted):
    def read(self, size: int = -1, /) -> bytes:
        if self.count >= MAX_BYTES_READ:
            raise _ByteLimitReached
        return super().read(size)


def _read_from_file(row: Evidence, number: int) -> TranscriptPage:
    """The page read from the file, if it is near the start; else a page that waits for the index."""
    if number > FIRST_PAGES and row.size > building.SYNC_SIZE:
        return _waiting_page(row, number)
    page_lines: list[TranscriptLine] = []
    previous = following = None
    try:
        with store.open(row) as file:
            reader = formats.read(cast("BinaryIO", _LimitedStream(file)), row.filename)
            for line in lines(reader):
                line_page = page_number(line.number)
                if line_page > number:
                    following = line_page
                    break
                if line_page == number:
                    page_lines.append(line)
                else:
                    previous = line_page
    except _ByteLimitReached:
        return _waiting_page(row, number)
    except (UnknownFormat, EmptyTranscript, OSError) as error:
        return TranscriptPage(problem=f"The transcript could not be read: {error}")
    return TranscriptPage(
        lines=tuple(page_lines),
        number=number,
        previous=previous,
        following=following,
        problem="" if page_lines or following else BEYOND_THE_END,
        format=reader.format,
    )


def _waiting_page(row: Evidence, number: int) -> TranscriptPage:
    """A page without lines that shows the progress of the index, or what went wrong with it."""
    progress = cache.progress(row) or IndexProgress()
    return TranscriptPage(
        number=number, problem=progress.problem, reading=None if progress.problem else progress, format=row.format
    )
