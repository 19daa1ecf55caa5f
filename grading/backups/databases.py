"""Copies the database to a file and back, with SQLite's VACUUM INTO or PostgreSQL's pg_dump and pg_restore."""

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

# Opens a copy without changing it, not even the header that SQLite writes.
READ_ONLY = {
    "ENGINE": "django.db.backends.sqlite3",
    "OPTIONS": {"init_command": "PRAGMA query_only = ON"},
    "CONN_MAX_AGE": 0,
}


class BackupProblem(Exception):
    """A backup or restore cannot continue. The message says why, and what to do."""


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
    """Keep web servers, workers and schedulers stopped. Raises BackupProblem if one runs.

    Unlike `stopped`, it works while the caller has the site's lock, as `manage.py up` does.
    """
    with (settings.STATE_DIR / PROGRAMS_LOCK).open("a+") as programs:
        try:
            fcntl.flock(programs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupProblem(
                "a web server, a worker or a scheduler of this site is running: stop it first"
            ) from None
        yield


@contextmanager
def extra_connection(alias: str, **config: Any) -> Iterator[str]:
    """Open a connection under this alias, with the site's settings except for `config`, and close it afterwards."""
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
    """Write the database's state at one moment into `folder`, while the site keeps running.

    Yields the alias of a connection that reads exactly this state.
    """
    file = folder / DATABASES[connection.vendor]
    if connection.vendor == "sqlite":
        # VACUUM INTO copies in one step; SQLite's backup API copies page by page and restarts at every write. It uses a
        # connection of its own, because the site's own would block all writers meanwhile.
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=60)) as source:
            source.execute("VACUUM INTO ?", [str(file)])
        with extra_connection("snapshot", NAME=str(file), **READ_ONLY) as alias:
            yield alias
        return
    dump = program("pg_dump")
    with extra_connection("snapshot") as alias, transaction.atomic(using=alias):
        with connections[alias].cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_export_snapshot()")
            (name,) = cursor.fetchone()
        options = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={name}", f"--file={file}"]
        run([dump, *options])
        yield alias


def put_back(file: Path) -> None:
    """Restore the file into the site's empty database, completely or not at all."""
    if connection.vendor == "sqlite":
        name = connection.settings_dict["NAME"]
        connection.close()
        draft = Path(f"{name}.restored")
        shutil.copyfile(file, draft)
        with draft.open("rb") as copy:
            os.fsync(copy.fileno())
        for ending in ("-wal", "-shm"):  # of an earlier database, whose pages SQLite would apply to this one
            Path(f"{name}{ending}").unlink(missing_ok=True)
        draft.rename(name)
    else:
        options = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
        run([program("pg_restore"), *options, str(file)])


def rows_by_table(alias: str) -> dict[str, int]:
    """The number of rows of each table."""
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
    """The path of pg_dump or pg_restore in the server's major version.

    Raises BackupProblem, with what to install, if there is none.
    """
    wanted = server_version()
    folders = [settings.PG_BIN] if settings.PG_BIN else [f"/usr/lib/postgresql/{wanted}/bin", None]  # None: PATH
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
    """Run pg_dump or pg_restore on the site's database. Raises BackupProblem with the program's error output."""
    from psycopg.conninfo import make_conninfo

    connection.ensure_connection()
    info = connection.connection.info
    password = info.password
    # Without the site's own options, such as the limit on idle transactions.
    address = {
        name: value for name, value in info.get_parameters().items() if name not in {"options", "client_encoding"}
    }
    connection.close()
    # A password on the command line could be read by every user of this machine.
    variables = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    command = [*command, f"--dbname={make_conninfo('', **address)}"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BackupProblem(f"{Path(command[0]).name} ended with status {done.returncode}: {done.stderr.strip()}")
