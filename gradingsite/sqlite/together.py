"""Rows of several tables inserted by one statement. SQLite has none for it; but a view, the connection's own and gone
with it, may have a trigger that puts each row where it belongs.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

PREFIX = "together_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one table: of each the values of these columns, as the database takes them."""

    table: str
    columns: tuple[str, ...]
    values: Sequence[Sequence[Any]]


def insert(connection: BaseDatabaseWrapper, parts: Sequence[Rows]) -> None:
    """Insert all of these, each table once among them, in a transaction. One statement, but for a connection's first.

    Raises what inserting them one by one would; then none of them is there.
    """
    width = max(len(part.columns) for part in parts)
    rows = [[number, *row, *[None] * (width - len(row))] for number, part in enumerate(parts) for row in part.values]
    view = PREFIX + hashlib.sha256(repr([(part.table, part.columns) for part in parts]).encode()).hexdigest()[:16]
    marks = f"({', '.join(['%s'] * (width + 1))})"
    sql = f"INSERT INTO temp.{view} VALUES {', '.join([marks] * len(rows))}"  # noqa: S608 - names
    values = [value for row in rows for value in row]
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql, values)
        except OperationalError as error:
            if f"no such table: temp.{view}" not in str(error):
                raise
            for made in _view(connection, view, parts, width):
                cursor.execute(made)
            cursor.execute(sql, values)


def drop(connection: BaseDatabaseWrapper) -> None:
    """Drop the connection's views: a table that one of them names cannot be made anew."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_temp_master WHERE type = 'view' AND name LIKE %s", [f"{PREFIX}%"])
        for (view,) in cursor.fetchall():
            cursor.execute(f"DROP VIEW temp.{view}")


def _view(connection: BaseDatabaseWrapper, view: str, parts: Sequence[Rows], width: int) -> tuple[str, str]:
    """The statements that make a view of so many columns, and its trigger: one for all tables, so that no row of a view
    that is there can belong nowhere.
    """
    quoted, steps = connection.ops.quote_name, []
    for number, part in enumerate(parts):
        columns = ", ".join(map(quoted, part.columns))
        given = ", ".join(f"NEW.v{place}" for place in range(len(part.columns)))
        into = f"INSERT INTO {quoted(part.table)} ({columns}) SELECT {given} WHERE NEW.part = {number};"
        steps.append(into)
    blanks = ", ".join(f"NULL AS v{place}" for place in range(width))
    return (
        f"CREATE TEMP VIEW {view} AS SELECT NULL AS part, {blanks}",
        f"CREATE TEMP TRIGGER {view}_rows INSTEAD OF INSERT ON {view} BEGIN {' '.join(steps)} END",
    )
