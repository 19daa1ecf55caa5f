"""A site from SQLite to PostgreSQL: every row of every table, compared one by one before anything is final."""

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
    """A table of both databases: its columns, in order, with PostgreSQL's types; what its rows are ordered by."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]
    identity: str

    @property
    def names(self) -> str:
        return ", ".join(f'"{column}"' for column in self.columns)


def move_to(url: str, say: Say) -> None:
    """Copy the site's SQLite database into the empty PostgreSQL database of that address.

    Raises BackupProblem where the site runs, where the address is none of an empty database, or where a row is not the
    same in both; nothing is in the new database then, and the old one is never changed.
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
        with transaction.atomic(using=target), closing(opened()) as source:
            tables = described(target, source)
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


def opened() -> sqlite3.Connection:
    """A read-only connection to the site's SQLite database."""
    return sqlite3.connect(f"file:{connection.settings_dict['NAME']}?mode=ro", uri=True)


def described(target: str, source: sqlite3.Connection) -> list[MovedTable]:
    """The tables of both databases. Raises BackupProblem if they differ."""
    tables = []
    with connections[target].cursor() as cursor:
        for name in sorted(connections[target].introspection.table_names(cursor)):
            cursor.execute(
                "SELECT column_name, udt_name, is_identity FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = %s ORDER BY ordinal_position",
                [name],
            )
            columns = cursor.fetchall()
            there = source.execute(f'PRAGMA table_info("{name}")').fetchall()
            if {column for column, _, _ in columns} != {row[1] for row in there}:
                raise BackupProblem(
                    f"{name} has other columns in SQLite than in PostgreSQL: run {site_command('migrate')} first"
                )
            if unknown := [kind for _, kind, _ in columns if kind not in READ]:
                raise BackupProblem(f"{name} has a column of a type that is not known here: {unknown[0]}; report this")
            key = tuple(row[1] for row in sorted(there, key=lambda row: row[5]) if row[5])
            identity = next((column for column, _, is_identity in columns if is_identity == "YES"), "")
            kinds = {column: kind for column, kind, _ in columns}
            tables.append(MovedTable(name=name, columns=kinds, key=key, identity=identity))
    return tables


def copy(source: sqlite3.Connection, target: str, tables: list[MovedTable]) -> None:
    """Put every row into the target's tables, in place of what its migrations put there."""
    with connections[target].cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'UTC'")
        quoted = [f'"{table.name}"' for table in tables]
        for each in quoted:
            cursor.execute(f"ALTER TABLE {each} DISABLE TRIGGER USER")  # these rows were accepted before
        cursor.execute(f"TRUNCATE {', '.join(quoted)}")
        for table in tables:
            kinds = list(table.columns.values())
            try:
                with cursor.copy(f'COPY "{table.name}" ({table.names}) FROM STDIN') as into:
                    for row in source.execute(f'SELECT {table.names} FROM "{table.name}"'):  # noqa: S608 - as below
                        into.write_row(tuple(map(written, kinds, row)))
            except DatabaseError as error:
                raise BackupProblem(f"PostgreSQL does not take the rows of {table.name}: {error}") from error
            if table.identity:
                go_on_counting(source, cursor, table)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # checks each foreign key now
        for each in quoted:
            cursor.execute(f"ALTER TABLE {each} ENABLE TRIGGER USER")


def go_on_counting(source: sqlite3.Connection, cursor: Any, table: MovedTable) -> None:
    """The next row gets the number that SQLite would have given it: one that was deleted is not given again."""
    used = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", [table.name]).fetchone()
    highest = source.execute(f'SELECT max("{table.identity}") FROM "{table.name}"').fetchone()  # noqa: S608
    last = max([0, *(used or ()), *(number for number in highest if number is not None)])
    sequence = "pg_get_serial_sequence(%s, %s)"
    cursor.execute(f"SELECT setval({sequence}, %s, %s)", [f'"{table.name}"', table.identity, max(last, 1), last > 0])


def compare(source: sqlite3.Connection, target: str, table: MovedTable) -> int:
    """How many rows the table has. Raises BackupProblem at the first that is not the same in both databases."""
    kinds, count = list(table.columns.values()), 0
    # Compares bytes in both databases, independent of the collation.
    order = [f'"{name}" COLLATE "C"' if table.columns[name] in TEXTS else f'"{name}"' for name in table.key]
    theirs_in_order = f'SELECT {table.names} FROM "{table.name}" ORDER BY {", ".join(order)}'  # noqa: S608 - as below
    names = ", ".join(f'"{name}"' for name in table.key)
    # The names are the tables' own.
    ours = source.execute(f'SELECT {table.names} FROM "{table.name}" ORDER BY {names}')  # noqa: S608
    with connections[target].chunked_cursor() as cursor:
        cursor.execute(theirs_in_order)
        for own, other in zip_longest(ours, cursor):
            count += 1
            if own is None or other is None or [*map(read, kinds, own)] != [*map(read, kinds, other)]:
                raise BackupProblem(f"row {count} of {table.name}, by its key, is not the same in both databases")
    return count


# --- values: as SQLite keeps them, as Python has them, as PostgreSQL gives them

TEXTS = frozenset(("varchar", "text", "bpchar"))


def in_utc(value: str | dt.datetime) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)


READ: dict[str, Callable[[Any], Any]] = {
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


def read(kind: str, value: Any) -> Any:
    """The Python value of a database value, by PostgreSQL's type of its column."""
    return None if value is None else READ[kind](value)


def written(kind: str, value: Any) -> Any:
    """A value of SQLite in the form that PostgreSQL accepts; the text of JSON is unchanged."""
    if kind == "jsonb":
        return value
    return str(read(kind, value)) if kind == "inet" and value else read(kind, value)
