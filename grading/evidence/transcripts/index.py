"""The index of one transcript: its lines in a SQLite file of their own, so that any of them is found at once."""

import datetime as dt
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path

from grading.evidence.transcripts.lines import TranscriptLine

PAGE = 100
# What one search looks through and finds at most; the next goes on from there.
SEARCHED, HITS = 20_000_000, 1_000
NAMES = tuple(field.name for field in fields(TranscriptLine))
SCHEMA = f"""
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192;
CREATE TABLE line ({", ".join(NAMES).replace("number", "number INTEGER PRIMARY KEY")});
CREATE TABLE about (format TEXT, last INTEGER);
"""
INSERT = f"INSERT INTO line VALUES ({', '.join('?' * len(NAMES))})"  # noqa: S608 - question marks
VALUES = attrgetter(*NAMES)


class Broken(Exception):
    """The index cannot be read. It is only a cache: delete it, and it is made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """`hits` are events after where the search began, up to event `searched`; `more` says that others follow it."""

    hits: tuple[int, ...] = ()
    searched: int = 0
    more: bool = False


def write(path: Path, format_: str, lines: Iterable[TranscriptLine]) -> None:
    """Make a new index at `path`, in constant memory."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(SCHEMA)
        db.execute("BEGIN")
        db.executemany(INSERT, ((number, at and at.isoformat(), *rest) for number, at, *rest in map(VALUES, lines)))
        db.execute("INSERT INTO about SELECT ?, coalesce(max(number), 0) FROM line", [format_])
        db.execute("COMMIT")


class Index:
    """An open index. `last` is the number of its last line, 0 where it has none."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        about = db.execute("SELECT format, last FROM about").fetchone()
        if about is None:
            raise Broken("it says nothing of itself")
        self.format: str = about[0]
        self.last: int = about[1]

    def block(self, first: int) -> tuple[TranscriptLine, ...]:
        """The lines of the events `first` to `first + PAGE - 1`."""
        rows = self._db.execute("SELECT * FROM line WHERE number BETWEEN ? AND ?", [first, first + PAGE - 1])
        found = []
        for row in rows:
            values = dict(zip(NAMES, row, strict=True))
            at, failed = values.pop("at"), values.pop("failed")
            found.append(
                TranscriptLine(at=dt.datetime.fromisoformat(at) if at else None, failed=bool(failed), **values)
            )
        return tuple(found)

    def before(self, number: int) -> int | None:
        """The number of the last line before an event."""
        return self._one("SELECT max(number) FROM line WHERE number < ?", number)

    def since(self, number: int) -> int | None:
        """The number of the first line from an event on."""
        return self._one("SELECT min(number) FROM line WHERE number >= ?", number)

    def find(self, query: str, after: int = 0) -> SearchHits:
        """The events after number `after` whose head or text, as far as it is kept, has `query` in it, whatever its
        case. Looks through a bounded amount of text.
        """
        wanted, looked, searched = query.casefold(), 0, after
        hits: list[int] = []
        rows = self._db.execute("SELECT number, head || char(10) || told FROM line WHERE number > ?", [after])
        while looked < SEARCHED and len(hits) < HITS and (row := rows.fetchone()):
            searched, text = row
            looked += len(text)
            if wanted in text.casefold():
                hits.append(searched)
        return SearchHits(hits=tuple(hits), searched=searched, more=searched < self.last)

    def _one(self, query: str, number: int) -> int | None:
        found: int | None = self._db.execute(query, [number]).fetchone()[0]
        return found


@contextmanager
def opened(path: Path) -> Iterator[Index]:
    """An index that nobody writes to any more. Raises Broken, here or within, where it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            yield Index(db)
    except sqlite3.Error as error:
        raise Broken(f"{path.name}: {error}") from error
