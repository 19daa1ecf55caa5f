"""Migrates the database of a site that has sessions, after checks, and after a copy that allows to go back.

The copies stay until a person deletes them, so an erasure lists them (`copies`).
"""

import datetime as dt
import shlex
import shutil
import sqlite3
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from grading.backups.databases import BackupProblem, programs_stopped, snapshot
from grading.backups.manifest import DATABASES
from grading.models import Session
from gradingsite import schema

Say = Callable[[str], None]
MIB = 1 << 20
# In the state folder: a folder for each upgrade, named by the first migration that it applied.
COPIES = "before-upgrades"
LOCK_WAIT = 5.0  # seconds


def migrate(say: Say, *, beside_others: bool = False) -> None:
    """Apply the migrations that the database lacks.

    If the site has sessions, copy the database first, and tell `say` where the copy is and how to go back. Each
    migration is applied completely or not at all, or can be repeated, so an interrupted upgrade can be started again.
    With `beside_others`, programs on other hosts may run: they are disconnected, and write nothing until their code has
    this version (`schema.alone`).

    Raises BackupProblem, with nothing changed, if the disk has too little space or, without `beside_others`, a program
    uses the database.
    """
    with nullcontext() if connection.vendor == "sqlite" else schema.turn(say):
        missing = schema.missing()
        if not missing or not has_sessions():
            call_command("migrate", verbosity=0)
            return
        with schema.alone() if beside_others else programs_stopped():
            if not beside_others:
                require_no_other_user()
            require_free_space()
            say(f"Upgrading the database. Migrations to apply: {len(missing)}.")
            copy = copy_database(settings.STATE_DIR / COPIES / "-".join(missing[0]))
            say(f"A copy of the database as it is now: {copy}")
            say(how_to_go_back(copy))
            call_command("migrate", verbosity=1)
            say("The database is up to date. Delete the copy once you are content with this version.")


def has_sessions() -> bool:
    """Whether the database has the tables of a site, with at least one session."""
    return Session._meta.db_table in connection.introspection.table_names() and Session.objects.exists()  # noqa: SLF001 - Django's documented API


def require_no_other_user() -> None:
    """Raise BackupProblem if any other connection to the database is open, of this site or of another program."""
    if connection.vendor == "sqlite":
        connection.close()
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=LOCK_WAIT)) as probe:
            try:
                probe.execute("PRAGMA locking_mode = EXCLUSIVE")
                probe.execute("BEGIN EXCLUSIVE")
                probe.execute("ROLLBACK")
            except sqlite3.OperationalError as error:
                raise BackupProblem(
                    f"another program uses the database ({error}): end it, then start the upgrade again"
                ) from error
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, coalesce(nullif(application_name, ''), 'a program'), "
            "coalesce(host(client_addr), 'this host') FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' "
            "AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted) "
            "ORDER BY pid",
            [schema.TURN_LOCK],  # this upgrade's own second connection has it
        )
        users = [f"{name} at {host} (server process {pid})" for pid, name, host in cursor.fetchall()]
    if users:
        raise BackupProblem(
            f"expected no other connection to the database; there are {len(users)}: {', '.join(users[:3])}. End these "
            "programs, then start the upgrade again"
        )


def require_free_space() -> None:
    """Raise BackupProblem unless the state folder's disk has free space of twice the database's size.

    It is needed once for the copy, and once for tables that migrations rebuild.
    """
    needed = 2 * database_size()
    free = shutil.disk_usage(settings.STATE_DIR).free
    if free < needed:
        raise BackupProblem(
            f"an upgrade needs {needed // MIB:,} MiB of free disk at {settings.STATE_DIR}, twice the size of the "
            f"database; there are {free // MIB:,} MiB. Make room, then start the upgrade again"
        )


def database_size() -> int:
    """The size of the database in bytes."""
    if connection.vendor == "sqlite":
        name = connection.settings_dict["NAME"]
        return sum(path.stat().st_size for path in (Path(name), Path(f"{name}-wal")) if path.exists())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def copy_database(folder: Path) -> Path:
    """Copy the database into `folder`, replacing an earlier copy. Returns the path of the copy."""
    draft = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    with snapshot(draft):  # entering writes the copy; the connection that it yields isn't needed
        pass
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return folder / DATABASES[connection.vendor]


def how_to_go_back(copy: Path) -> str:
    """The commands that bring back the site as it was before the upgrade."""
    if connection.vendor == "sqlite":
        name = connection.settings_dict["NAME"]
        old, wal, shm = (shlex.quote(f"{name}{ending}") for ending in ("", "-wal", "-shm"))
        commands = f"rm -f {wal} {shm} && cp {shlex.quote(str(copy))} {old}"
    else:
        commands = f"pg_restore --clean --if-exists --no-owner --dbname=THE-DATABASE {shlex.quote(str(copy))}"
    return f"To go back: stop the site, check out the version that ran before, and run: {commands}"


def copies() -> list[Path]:
    """The folders of the copies that upgrades made, unfinished ones too."""
    folder = settings.STATE_DIR / COPIES
    return sorted(folder.iterdir()) if folder.is_dir() else []


def list_copies(folders: Sequence[Path]) -> str:
    """Each folder with the time when the copy was made."""
    made = [dt.datetime.fromtimestamp(folder.stat().st_mtime, dt.UTC) for folder in folders]
    return ", ".join(f"{folder} (made {at:%Y-%m-%d %H:%M} UTC)" for folder, at in zip(folders, made, strict=True))


def add_copies_option(parser: ArgumentParser) -> None:
    """Add --delete-upgrade-copies, whose value `announce_copies` and `finish_copies` take as `delete`."""
    parser.add_argument(
        "--delete-upgrade-copies",
        action="store_true",
        help="also delete the copies of the database that upgrades made, which are the way back from an upgrade",
    )


def announce_copies(folders: Sequence[Path], *, delete: bool) -> Iterator[str]:
    """Sentences about what an erasure will do with these copies, shown before a person confirms it."""
    if folders and delete:
        yield f"To be deleted with it: copies of the database that upgrades made: {list_copies(folders)}."
    elif folders:
        yield (
            f"Not erased: copies of the database that upgrades made: {list_copies(folders)}. "
            "--delete-upgrade-copies deletes them too."
        )


def finish_copies(folders: Sequence[Path], *, delete: bool) -> Iterator[str]:
    """Delete these copies at the end of an erasure if `delete` is set. Yields sentences about the result."""
    if folders and not delete:
        yield (
            "Copies of the database that upgrades made still hold what was in it then, until they are deleted: "
            f"{list_copies(folders)}. To delete them: rm -r {shlex.join(map(str, folders))}"
        )
        return
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            yield f"{folder} could not be deleted ({error}): delete it by hand."
        else:
            yield f"Deleted: {folder}"
