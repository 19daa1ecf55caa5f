"""Moves a site from SQLite to PostgreSQL: copies every row, and compares all of them before committing."""

import datetime as dt
import json
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from itertools import zip_longest
from operator import itemgetter
from typing import Any

import dj_database_url
from django.db import DatabaseError, connection, connections, transaction

from bandit.audit import fingerprint
from grading.backups.databases import BackupProblem, extra_connection, rows_by_table, stopped
from grading.health import planner
from grading.intake import redacting
from gradingsite.state import site_command

Say = Callable[[str], None]
# Tables that have rows only once somebody has used the site. A database without such rows counts as empty.
SIGNS_OF_LIFE = ("auth_user", "grading_session", "bandit_ledgerentry", "bandit_selection")


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedTable:
    """A table that both databases have.

    `columns` maps the columns' names, in order, to PostgreSQL's types. `key` are the columns of the primary key, by
    which rows are ordered. `identity` is the column that PostgreSQL numbers; empty if there is none.
    """

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]
    identity: str

    @property
    def names(self) -> str:
        return ", ".join(f'"{column}"' for column in self.columns)


def move_to(url: str, say: Say) -> None:
    """Copy the site's SQLite database into the empty PostgreSQL database at this address.

    Raises BackupProblem if the site runs, if the address isn't that of an empty database, or if a row differs between
    the two databases. Then the new database stays empty. The old database is never changed.
    """
    if connection.vendor != "sqlite":
        raise BackupProblem("move_to takes a site from SQLite; this one's database is PostgreSQL already")
    config: dict[str, Any] = dict(dj_database_url.parse(url))
    if not config["ENGINE"].endswith("postgresql"):
        raise BackupProblem("expected the address of a PostgreSQL database, such as postgres://user:password@host/name")
    connection.ensure_connection()
    target_settings = {"CONN_MAX_AGE": 0, "OPTIONS": {}, **config}
    # The write gate also blocks commands that were started before the site stopped.
    gate = connection.write_gate()  # type: ignore[attr-defined]  # of our own backend
    with stopped(), gate, extra_connection("target", **target_settings) as target:
        require_empty(target)
        migrate(url)
        with transaction.atomic(using=target), closing(open_source()) as source:
            tables = load_tables(target, source)
            copy(source, target, tables)
            say(f"Copied {len(tables)} tables. Comparing every row …")
            rows = sum(compare(source, target, table) for table in tables)
            if fingerprint() != fingerprint(target):
                raise BackupProblem("the ledger is not the same in both databases, though its rows are: report this")
            if changed := redacting.redact_again(site_command("move_to"), using=target):
                say(redacting.summary(changed))
        planner.gather_statistics(target)
    say(
        f"Moved {rows:,} rows of {len(tables)} tables; each is the same in both databases, and so is the ledger's hash."
    )
    say("Set DATABASE_URL to the new database wherever the site's settings are, and start it. Evidence and keys stay")
    say(f"where they are. {connection.settings_dict['NAME']} is as it was: keep it until you have made a backup.")


def require_empty(target: str) -> None:
    """Raise BackupProblem if the database has rows, or tables that are not this site's."""
    counts = rows_by_table(target)
    strange = sorted(counts.keys() - rows_by_table("default").keys())
    if strange:
        raise BackupProblem(f"expected an empty database; it has tables that are not this site's, such as {strange[0]}")
    used = [table for table in SIGNS_OF_LIFE if counts.get(table)]
    if used:
        raise BackupProblem(f"expected an empty database; it has rows in {used[0]}. Make a new one: createdb NAME")


def migrate(url: str) -> None:
    """Create the tables in a separate process, because some migrations write to the database in the settings."""
    command = [sys.executable, "-m", "gradingsite", "migrate", "--verbosity=0"]
    environment = {**os.environ, "DATABASE_URL": url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BackupProblem(f"the tables could not be made: {done.stderr.strip().splitlines()[-1]}")


def open_source() -> sqlite3.Connection:
    """A read-only connection to the site's SQLite database."""
    return sqlite3.connect(f"file:{connection.settings_dict['NAME']}?mode=ro", uri=True)


def load_tables(target: str, source: sqlite3.Connection) -> list[MovedTable]:
    """The tables of both databases. Raises BackupProblem if their columns differ."""
    tables = []
    with connections[target].cursor() as cursor:
        for name in sorted(connections[target].introspection.table_names(cursor)):
            cursor.execute(
                "SELECT column_name, udt_name, is_identity FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = %s ORDER BY ordinal_position",
                [name],
            )
            columns = cursor.fetchall()
            # The name of each column in SQLite, and its number in the primary key (from 1; 0 if it isn't in the key).
            source_columns = [(row[1], row[5]) for row in source.execute(f'PRAGMA table_info("{name}")')]
            if {column for column, _, _ in columns} != {column for column, _ in source_columns}:
                raise BackupProblem(
                    f"{name} has other columns in SQLite than in PostgreSQL: run {site_command('migrate')} first"
                )
            if unknown := [kind for _, kind, _ in columns if kind not in READERS]:
                raise BackupProblem(f"{name} has a column of a type that is not known here: {unknown[0]}; report this")
            key = tuple(column for column, number in sorted(source_columns, key=itemgetter(1)) if number)
            identity = next((column for column, _, is_identity in columns if is_identity == "YES"), "")
            kinds = {column: kind for column, kind, _ in columns}
            tables.append(MovedTable(name=name, columns=kinds, key=key, identity=identity))
    return tables


def copy(source: sqlite3.Connection, target: str, tables: list[MovedTable]) -> None:
    """Replace the rows of the target's tables, which its migrations created, by those of the source."""
    with connections[target].cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'UTC'")
        quoted = [f'"{table.name}"' for table in tables]
        for name in quoted:
            cursor.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")  # these rows were accepted before
        cursor.execute(f"TRUNCATE {', '.join(quoted)}")
        for table in tables:
            kinds = list(table.columns.values())
            try:
                with cursor.copy(f'COPY "{table.name}" ({table.names}) FROM STDIN') as into:
                    for row in source.execute(f'SELECT {table.names} FROM "{table.name}"'):  # noqa: S608 - as below
                        into.write_row(tuple(map(to_postgresql, kinds, row)))
            except DatabaseError as error:
                raise BackupProblem(f"PostgreSQL does not take the rows of {table.name}: {error}") from error
            if table.identity:
                continue_sequence(source, cursor, table)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # checks each foreign key now
        for name in quoted:
            cursor.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")


def continue_sequence(source: sqlite3.Connection, cursor: Any, table: MovedTable) -> None:
    """Make the table's next row get the key that SQLite would have given it, so that no deleted row's key is reused."""
    used = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", [table.name]).fetchone() or (0,)
    (highest,) = source.execute(f'SELECT max("{table.identity}") FROM "{table.name}"').fetchone()  # noqa: S608
    last = max(used[0], highest or 0, 0)  # 0 if there was never a row; the next key is then 1
    sequence = "pg_get_serial_sequence(%s, %s)"
    cursor.execute(f"SELECT setval({sequence}, %s, %s)", [f'"{table.name}"', table.identity, max(last, 1), last > 0])


def compare(source: sqlite3.Connection, target: str, table: MovedTable) -> int:
    """The number of rows of the table. Raises BackupProblem at the first row that differs between the databases."""
    kinds = list(table.columns.values())
    count = 0
    key = [f'"{name}"' for name in table.key]
    # Text is ordered by its bytes in both databases, whatever PostgreSQL's collation is.
    postgresql_key = [f'"{name}" COLLATE "C"' if table.columns[name] in TEXTS else f'"{name}"' for name in table.key]
    select = f'SELECT {table.names} FROM "{table.name}" ORDER BY '  # noqa: S608 - the names are the tables' own
    source_rows = source.execute(select + ", ".join(key))
    with connections[target].chunked_cursor() as cursor:
        cursor.execute(select + ", ".join(postgresql_key))
        for old, new in zip_longest(source_rows, cursor):
            count += 1
            if old is None or new is None or [*map(to_python, kinds, old)] != [*map(to_python, kinds, new)]:
                raise BackupProblem(f"row {count} of {table.name}, by its key, is not the same in both databases")
    return count


# --- conversion of values of SQLite and PostgreSQL, so that they can be compared and copied

TEXTS = frozenset(("varchar", "text", "bpchar"))


def in_utc(value: str | dt.datetime) -> dt.datetime:
    """A moment in UTC: SQLite has it as text, without a zone."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)


# By PostgreSQL's type of a column: the function that turns equal values of the two databases into equal Python values.
READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TEXTS, str),
    **dict.fromkeys(("int2", "int4", "int8"), int),
    "bool": bool,
    "float8": float,
    "numeric": lambda value: Decimal(str(value)),
    "date": lambda value: dt.date.fromisoformat(str(value)),
    "timestamptz": in_utc,
    "jsonb": json.loads,
    "bytea": bytes,
    "inet": lambda value: ip_address(str(value)),
    "uuid": lambda value: uuid.UUID(str(value)),
}


def to_python(kind: str, value: Any) -> Any:
    """The Python value of a value that was read from either database. `kind` is PostgreSQL's type of its column."""
    return None if value is None else READERS[kind](value)


def to_postgresql(kind: str, value: Any) -> Any:
    """A value of SQLite in the form that PostgreSQL's COPY accepts. JSON stays text."""
    if kind == "jsonb":
        return value
    if kind == "inet" and value:
        return str(to_python(kind, value))
    return to_python(kind, value)
