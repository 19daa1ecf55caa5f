"""Databases besides the tests' own: empty ones, and the baseline, which an earlier version of the site made.

How the baseline was made: `tests/data/baseline/make.py`.
"""

import contextlib
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

BASELINE = Path(__file__).parent / "data" / "baseline" / "site.tar.xz"
# The migrations whose schema the baseline has.
BASELINE_SCHEMA = (("bandit", "0001_squashed_0029_days"), ("grading", "0001_squashed_0058_short_artifacts"))
OURS = ("bandit_", "grading_")

Schema = dict[str, dict[str, Any]]


@contextmanager
def database(name: str, folder: Path) -> Iterator[None]:
    """An empty database of that name instead of the tests' own, in this thread and in those it starts."""
    usual = connection.settings_dict["NAME"]
    name = f"{usual}_{name}".replace("-", "_") if connection.vendor == "postgresql" else str(folder / "db.sqlite3")
    if connection.vendor == "postgresql":
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual
        if connection.vendor == "postgresql":
            with connection._nodb_cursor() as cursor:
                cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def restore_baseline(folder: Path) -> None:
    """Fill the empty database with the baseline's rows, before any later migration, and extract its files to `folder`:
    `about.json`, `facts.json` and `evidence/`.
    """
    with tarfile.open(BASELINE) as archive:
        # `data_filter` came with Python 3.11.4. The archive is our own, so older versions may do without it.
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
        archive.extractall(folder)  # noqa: S202
    path = ":memory:" if connection.vendor == "postgresql" else connection.settings_dict["NAME"]
    with contextlib.closing(sqlite3.connect(path)) as rows:
        rows.executescript((folder / "db.sql").read_text())
        if connection.vendor == "postgresql":
            executor = MigrationExecutor(connection)
            others = [node for node in executor.loader.graph.leaf_nodes() if node[0] not in dict(BASELINE_SCHEMA)]
            executor.migrate([*BASELINE_SCHEMA, *others])
            copy_to_postgresql(rows)


def copy_to_postgresql(rows: sqlite3.Connection) -> None:
    """Copy each row of SQLite into the table of that name; PostgreSQL converts text to the type of the column."""
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no triggers, no order of foreign keys
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute(f"TRUNCATE {', '.join(tables)}")
        for table in tables:
            cursor.execute(
                "SELECT column_name, udt_name, is_identity FROM information_schema.columns WHERE table_name = %s",
                [table],
            )
            columns = {name: (kind, identity) for name, kind, identity in cursor.fetchall()}
            named = ", ".join(f'"{name}"' for name in columns)
            found = rows.execute(f'SELECT {named} FROM "{table}"').fetchall()  # noqa: S608
            places = ", ".join("%s" if kind == "bytea" else f"%s::text::{kind}" for kind, _ in columns.values())
            into = f'INSERT INTO "{table}" ({named}) VALUES ({places})'  # noqa: S608
            cursor.executemany(into, found)
            for name in (name for name, (_, identity) in columns.items() if identity == "YES"):
                last = f'SELECT coalesce(max({name}), 0) + 1 FROM "{table}"'  # noqa: S608
                cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', '{name}'), ({last}), false)")
    connection.close()


def schema() -> Schema:
    """Every table of ours: its columns, in whatever order they came, its constraints and indexes, its triggers."""
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names(cursor) if name.startswith(OURS)]
        return {table: {**described(cursor, table), "triggers": triggers(cursor, table)} for table in sorted(tables)}


def described(cursor: Any, table: str) -> dict[str, Any]:
    if connection.vendor == "postgresql":
        cursor.execute(
            "SELECT column_name, udt_name, character_maximum_length, is_nullable, column_default, is_identity "
            "FROM information_schema.columns WHERE table_name = %s ORDER BY 1",
            [table],
        )
        columns = cursor.fetchall()
        cursor.execute(
            "SELECT pg_get_constraintdef(oid), CASE WHEN contype IN ('c', 'u') THEN conname END FROM pg_constraint "
            "WHERE conrelid = %s::regclass AND contype <> 'n' ORDER BY 1, 2",
            [table],
        )
        constraints = cursor.fetchall()
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = %s", [table])
        return {"columns": columns, "constraints": constraints, "indexes": sorted(unnamed(row[0]) for row in cursor)}
    cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = %s", [table])
    (made,) = cursor.fetchone()
    cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = %s", [table])
    return {"columns": sorted(parts(made)), "indexes": sorted(unnamed(row[0]) for row in cursor)}


def triggers(cursor: Any, table: str) -> list[Any]:
    if connection.vendor == "postgresql":
        cursor.execute(
            "SELECT t.tgname, pg_get_triggerdef(t.oid), p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE t.tgrelid = %s::regclass AND NOT t.tgisinternal ORDER BY 1",
            [table],
        )
    else:
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s ORDER BY 1", [table]
        )
    return cursor.fetchall()


def parts(made: str) -> list[str]:
    """The columns and constraints of CREATE TABLE: what is between commas that are in no bracket and no quotes."""
    inside, depth, found = made[made.index("(") + 1 : made.rindex(")")], 0, [""]
    for piece in re.findall(r"'[^']*'|\"[^\"]*\"|.", inside, re.DOTALL):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and not depth:
            found.append("")
        else:
            found[-1] += piece
    return [part.strip() for part in found]


def unnamed(index: str) -> str:
    """Django names the indexes of foreign keys by a hash of what the table was called when they were made."""
    return re.sub(r"_[0-9a-f]{8}(_like|_uniq)?\b", r"_HASH\1", index)
