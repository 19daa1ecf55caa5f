"""The index of one transcript: a SQLite file with its lines, so that any page of them can be read at once."""

import datetime as dt
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from grading.evidence.transcripts.lines import TranscriptLine

PAGE = 200
# Limits of one search in characters (about .3 s) and hits. The next search goes on from there.
MAX_SEARCHED, MAX_HITS = 100_000_000, 10_000
NAMES = tuple(field.name for field in fields(TranscriptLine))
SCHEMA = f"""
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192;
CREATE TABLE line (number INTEGER PRIMARY KEY, {", ".join(NAMES[1:])});
CREATE TABLE about (format TEXT, last INTEGER);
"""
INSERT = f"INSERT INTO line VALUES ({', '.join('?' * len(NAMES))})"  # noqa: S608 - question marks


class Broken(Exception):
    """The index cannot be read. It is only a cache: delete it, and it is built again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """`hits` are the numbers of matching events up to event `searched`. `more`: there are events after that."""

    hits: tuple[int, ...] = ()
    searched: int = 0
    more: bool = False


def write(path: Path, format_: str, lines: Iterable[TranscriptLine]) -> None:
    """Write a new index to `path`, in constant memory."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(SCHEMA)
        db.execute("BEGIN")
        db.executemany(INSERT, map(_row_values, lines))
        db.execute("INSERT INTO about SELECT ?, coalesce(max(number), 0) FROM line", [format_])
        db.execute("COMMIT")


def _row_values(line: TranscriptLine) -> list[object]:
    """The values of a line's row in the order of NAMES, with the time as text: SQLite has no type for it."""
    number, at, *rest = (getattr(line, name) for name in NAMES)
    return [number, at and at.isoformat(), *rest]


class Index:
    """An open index. `last` is the number of its last line, 0 if it has none."""

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
        page_lines = []
        for row in rows:
            values = dict(zip(NAMES, row, strict=True))
            at, failed = values.pop("at"), values.pop("failed")
            page_lines.append(
                TranscriptLine(at=dt.datetime.fromisoformat(at) if at else None, failed=bool(failed), **values)
            )
        return tuple(page_lines)

    def before(self, number: int) -> int | None:
        """The number of the last line before an event, or None."""
        return self._select_number("SELECT max(number) FROM line WHERE number < ?", number)

    def since(self, number: int) -> int | None:
        """The number of the first line from an event on, or None."""
        return self._select_number("SELECT min(number) FROM line WHERE number >= ?", number)

    def find(self, query: str, after: int = 0) -> SearchHits:
        """The events after number `after` whose head or stored text contains `query`, ignoring case. Stops after
        MAX_SEARCHED characters or MAX_HITS hits.
        """
        folded_query = query.casefold()
        characters, searched = 0, after
        hits: list[int] = []
        rows = self._db.execute("SELECT number, head || char(10) || stored_text FROM line WHERE number > ?", [after])
        while characters < MAX_SEARCHED and len(hits) < MAX_HITS and (row := rows.fetchone()):
            searched, text = row
            characters += len(text)
            if folded_query in text.casefold():
                hits.append(searched)
        return SearchHits(hits=tuple(hits), searched=searched, more=searched < self.last)

    def _select_number(self, query: str, number: int) -> int | None:
        value: int | None = self._db.execute(query, [number]).fetchone()[0]
        return value


@contextmanager
def opened(path: Path) -> Iterator[Index]:
    """Open a finished index. Raises Broken, on opening or within the block, if it can't be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            yield Index(db)
    except sqlite3.Error as error:
        raise Broken(f"{path.name}: {error}") from error
