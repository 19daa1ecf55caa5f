"""The database into a file and back: SQLite's own copy, or PostgreSQL's own programs."""

import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, connections, transaction

from grading.backups.manifest import DATABASES
from gradingsite.schema import PROGRAMS_LOCK

# Reads a copy, and changes nothing about it: not even what SQLite writes into a file's head.
READ_ONLY = {
    "ENGINE": "django.db.backends.sqlite3",
    "OPTIONS": {"init_command": "PRAGMA query_only = ON"},
    "CONN_MAX_AGE": 0,
}


class BackupProblem(Exception):
    """A backup, or what is done with one, cannot go on. The message says why, and what to do."""


@contextmanager
def stopped() -> Iterator[None]:
    """Keep the site stopped: no part of it runs or can be started. Raises BackupProblem if something runs."""
    with (settings.STATE_DIR / "site.lock").open("a+") as site:
        site.seek(0)
        try:
            fcntl.flock(site, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupProblem(
                f"the site is running ({site.read() or 'it is just starting'}): stop it first"
            ) from None
        with programs_stopped():
            yield


@contextmanager
def programs_stopped() -> Iterator[None]:
    """As `stopped`, for `manage.py up`, which has the site's own lock itself."""
    with (settings.STATE_DIR / PROGRAMS_LOCK).open("a+") as programs:
        try:
            fcntl.flock(programs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupProblem(
                "a web server, a worker or a scheduler of this site is running: stop it first"
            ) from None
        yield


@contextmanager
def beside(alias: str, **config: Any) -> Iterator[str]:
    """A connection under this alias, to a database with what differs from the site's own; it is closed afterwards."""
    connections.settings[alias] = {**connections.settings["default"], **config}
    try:
        with connections[alias].wrap_database_errors:
            connections[alias].connect()
        yield alias
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]


@contextmanager
def snapshot(folder: Path) -> Iterator[str]:
    """Write the database into `folder`, as it is at one moment, while the site goes on. Yields an alias under which
    exactly what was written can be read.
    """
    file = folder / DATABASES[connection.vendor]
    if connection.vendor == "sqlite":
        # In one step: page by page begins anew whenever somebody writes. Not through the site's own connection, which
        # would let nobody write meanwhile, though this only reads.
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=60)) as source:
            source.execute("VACUUM INTO ?", [str(file)])
        with beside("snapshot", NAME=str(file), **READ_ONLY) as alias:
            yield alias
        return
    dump = program("pg_dump")
    with beside("snapshot") as alias, transaction.atomic(using=alias):
        with connections[alias].cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_export_snapshot()")
            (name,) = cursor.fetchone()
        options = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={name}", f"--file={file}"]
        run([dump, *options])
        yield alias


def put_back(file: Path) -> None:
    """Make the site's empty database what that file holds, all of it or nothing."""
    if connection.vendor == "sqlite":
        name = connection.settings_dict["NAME"]
        connection.close()
        draft = Path(f"{name}.restored")
        shutil.copyfile(file, draft)
        with draft.open("rb") as copy:
            os.fsync(copy.fileno())
        draft.rename(name)
    else:
        options = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
        run([program("pg_restore"), *options, str(file)])


def rows_by_table(alias: str) -> dict[str, int]:
    """How many rows each table has."""
    database = connections[alias]
    counts = {}
    with database.cursor() as cursor:
        for table in sorted(database.introspection.table_names(cursor)):
            cursor.execute(f"SELECT COUNT(*) FROM {database.ops.quote_name(table)}")  # noqa: S608 - a table's name
            (counts[table],) = cursor.fetchone()
    return counts


# --- PostgreSQL's programs


def server_version() -> int:
    """The major version of the PostgreSQL server; 0 for SQLite."""
    if connection.vendor == "sqlite":
        return 0
    connection.ensure_connection()
    return int(connection.pg_version) // 10_000  # type: ignore[attr-defined]  # of PostgreSQL's own


def program(name: str) -> str:
    """The path of pg_dump or pg_restore of the server's major version. Raises BackupProblem, with what to install."""
    wanted = server_version()
    folders = [settings.PG_BIN] if settings.PG_BIN else [f"/usr/lib/postgresql/{wanted}/bin", None]
    others = []
    for folder in folders:
        path = shutil.which(name, path=folder)
        if path is None:
            continue
        output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
        version = re.search(r"(\d+)(\.\d+|devel|beta\d+|rc\d+)", output)
        if version and int(version[1]) == wanted:
            return path
        others.append(f"{path} is of {version[1] if version else 'an unknown version'}")
    raise BackupProblem(
        f"expected {name} of PostgreSQL {wanted}, as the server is; {'; '.join(others) or 'there is none here'}. "
        f"Install it (Debian: apt-get install postgresql-client-{wanted}), or name its folder in PG_BIN."
    )


def run(command: list[str]) -> None:
    """One of those programs on the site's database. Raises BackupProblem with its own words."""
    from psycopg.conninfo import make_conninfo

    connection.ensure_connection()
    info = connection.connection.info
    password = info.password
    # Not our own options, such as a limit to how long a transaction may stand still.
    where = {name: value for name, value in info.get_parameters().items() if name not in {"options", "client_encoding"}}
    connection.close()
    # A password on the command line could be read by every user of this machine.
    variables = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    command = [*command, f"--dbname={make_conninfo('', **where)}"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BackupProblem(f"{Path(command[0]).name} ended with status {done.returncode}: {done.stderr.strip()}")
