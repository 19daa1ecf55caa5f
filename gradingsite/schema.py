"""Checks that code and database have the same version, and that no restore or upgrade is running.

They are made before a program starts, and at each of its connections to PostgreSQL. Code that is older than its
database would fail half-way, or skip what it does not know.
"""

import fcntl
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from grading.busy import OtherKeys, Outdated, Upgrading
from gradingsite import keys
from gradingsite.state import START, site_command

logger = logging.getLogger(__name__)

OUR_APPS = ("bandit", "grading")
MAX_NAMES = 3  # in a message
# The last commit that has every migration which the first migrations of this code replace.
LAST_WITH_OLDER_MIGRATIONS = "dd0a3880"
# Commands that read no rows of the site, or that create them.
NEED_NO_ROWS = frozenset(
    (
        "",
        "help",
        "check",
        "judge_simulator",
        "makemigrations",
        "restore",
        "showmigrations",
        "sqlmigrate",
        "version",
    )
)
MIGRATE = frozenset(("migrate", "try", "up"))
SECRET_KEY_LENGTH = 32  # characters, at least
# In the state folder. Web servers, workers and schedulers share its lock, so that no restore replaces the database
# while they have the old file open and cache its rows.
PROGRAMS_LOCK = "programs.lock"
# Advisory locks of PostgreSQL. Connections of programs share UPGRADE_LOCK, and an upgrade has it alone. Upgrades take
# turns with TURN_LOCK.
UPGRADE_LOCK, TURN_LOCK = 0x67726164, 0x67726165
MAKE_KEY = "python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"

Migration = tuple[str, str]


class WeakSecretKey(ImproperlyConfigured):
    """A new site would begin with a SECRET_KEY that can be guessed. The message says what to do."""


class SchemaMismatch(ImproperlyConfigured):
    """The code and the database are of different versions. The message says which is older and what to do."""


def require_for(arguments: Sequence[str]) -> None:
    """Exit with an explanation if this command of manage.py can't work on the database."""
    command = next((argument for argument in arguments if not argument.startswith("-")), "")
    if command in NEED_NO_ROWS or {"-h", "--help"} & {*arguments}:
        return
    django.setup()
    require_or_exit(require_can_migrate if command in MIGRATE else require_current)
    if command not in MIGRATE and connection.vendor == "postgresql":
        watch_connections()


def begin_program(*, ends_if_outdated: bool = False) -> None:
    """Acquire a shared lock of PROGRAMS_LOCK until this process and its forks have ended, and watch its connections.

    Exits with a message if a restore or move is running, if code and database have different versions, or if this
    host's keys are not the site's. Logs a warning if SECRET_KEY is short. If the database does not answer now, it is
    checked at the first connection. For `ends_if_outdated` see `watch_connections`.
    """
    # Never closed: the lock is released when the last process that has the file open ends.
    lock = os.open(settings.STATE_DIR / PROGRAMS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("This site is being restored or moved: start this program again once that is done.")
    require_or_exit(require_current)
    require_or_exit(keys.require_same)
    warn_of_short_key()
    if connection.vendor == "postgresql":
        watch_connections(ends_if_outdated=ends_if_outdated, checks_keys=True)


def watch_connections(*, ends_if_outdated: bool = False, checks_keys: bool = False) -> None:
    """Refuse connections of this process to PostgreSQL that must not be used. Each is checked when it is opened.

    Upgrading is raised while another host is upgrading. An upgrade holds UPGRADE_LOCK alone (`alone`). Every other
    connection shares the lock until it is closed, and the upgrade ends those that do.
    Outdated is raised if an upgrade has added migrations that this code does not know. With `ends_if_outdated`, the
    process also gets SIGTERM.
    OtherKeys is raised, with `checks_keys`, if this host's keys are not the site's.
    """
    loader = MigrationLoader(None)

    def check(connection: BaseDatabaseWrapper, **_kwargs: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock_shared(%s)", [UPGRADE_LOCK])
            is_shared = cursor.fetchone()[0]
            cursor.execute("SELECT app, name FROM django_migrations WHERE app = ANY(%s)", [list(OUR_APPS)])
            newer = _unknown(loader, cursor.fetchall())
            different = keys.different(cursor) if checks_keys and is_shared and not newer else []
        if is_shared and not newer and not different:
            return
        connection.close()
        if not is_shared:
            raise Upgrading("another host is upgrading the database")
        if newer:
            if ends_if_outdated:
                logger.error("another host has upgraded the database (%s): this program ends", _list_names(newer))
                os.kill(os.getpid(), signal.SIGTERM)
            raise Outdated(f"another host has upgraded the database: it has {_list_names(newer)}")
        raise OtherKeys(f"this host has another {' and another '.join(different)} than the site’s other hosts")

    connection_created.connect(check, weak=False, dispatch_uid="schema")


@contextmanager
def turn(say: Callable[[str], None]) -> Iterator[None]:
    """In this block, no other host upgrades the PostgreSQL database. Waits for a host that is upgrading it."""
    with cursor_of_its_own() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [TURN_LOCK])
        if not cursor.fetchone()[0]:
            say("Another host is upgrading the database: waiting for it.")
            cursor.execute("SELECT pg_advisory_lock(%s)", [TURN_LOCK])
        yield


@contextmanager
def alone() -> Iterator[None]:
    """In this block, no program of the site on any host is connected to the PostgreSQL database, and none can connect.

    Programs that were connected are disconnected. What they were writing is rolled back, and their clients try again.
    """
    with cursor_of_its_own() as cursor:
        cursor.execute("SET lock_timeout = '1s'")
        while True:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
                "AND granted AND pid <> pg_backend_pid()",
                [UPGRADE_LOCK],
            )
            with suppress(OperationalError):  # the lock timed out: a program connected after the query above
                cursor.execute("SELECT pg_advisory_lock(%s)", [UPGRADE_LOCK])  # while it waits, nobody gets a share
                break
        yield


@contextmanager
def cursor_of_its_own() -> Iterator[Any]:
    """A cursor of a new connection, which is closed after the block. Locks that it acquires last until then."""
    new_connection = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with new_connection.cursor() as cursor:
            yield cursor
    finally:
        new_connection.close()


def require_or_exit(require: Callable[[], None]) -> None:
    """Call `require`. If it raises SchemaMismatch, WeakSecretKey or DifferentKeys, exit with the message."""
    try:
        require()
    except (SchemaMismatch, WeakSecretKey, keys.DifferentKeys) as error:
        sys.exit(str(error))
    finally:
        connection.close()  # so that no forked process shares it


def require_current() -> None:
    """Raise SchemaMismatch unless the database has exactly this code's migrations.

    If the database does not answer, nothing is raised: whoever needs it reports that.
    """
    executor = _executor()
    if executor is None:
        return
    _refuse_newer(executor)
    if not executor.loader.applied_migrations:
        raise SchemaMismatch(f"The database is empty: run {site_command('migrate')}, or restore a backup into it.")
    if lacking := _missing(executor):
        raise SchemaMismatch(
            f"This code is newer than the database, which lacks {_list_names(lacking)}. Stop the site and run "
            f"`{START}`, which copies the database and migrates it; or make a backup with the version that ran before, "
            f"and run {site_command('migrate')}."
        )


def require_can_migrate() -> None:
    """Raise SchemaMismatch if this code cannot migrate the database, because it is newer or too old.

    Raise WeakSecretKey if the database is new and SECRET_KEY is too short. An existing site with a short key is
    migrated and gets a warning (`warn_of_short_key`).
    """
    executor = _executor()
    if executor is None:
        return
    _refuse_newer(executor)
    if not executor.loader.applied_migrations and _is_key_short():
        raise WeakSecretKey(
            f"A new site needs a SECRET_KEY of at least {SECRET_KEY_LENGTH} characters; got {len(settings.SECRET_KEY)}."
            f" Leave SECRET_KEY unset and the site makes one, or make one yourself: {MAKE_KEY}"
        )


def warn_of_short_key() -> None:
    """Log a warning that says how to change SECRET_KEY, if it is too short."""
    if _is_key_short():
        logger.warning(
            "SECRET_KEY has %d characters, which can be guessed; at least %d are expected. Put a new one in SECRET_KEY "
            "and the present one in SECRET_KEY_FALLBACKS: stored secrets stay readable and people stay signed in. To "
            "make one: %s",
            len(settings.SECRET_KEY),
            SECRET_KEY_LENGTH,
            MAKE_KEY,
        )


def _is_key_short() -> bool:
    return len(settings.SECRET_KEY) < SECRET_KEY_LENGTH


def unknown(names: Iterable[Migration]) -> list[Migration]:
    """The migrations among these that belong to our apps and that this code does not know."""
    return _unknown(MigrationLoader(None), names)


def require_upgradable(applied: Collection[Migration]) -> None:
    """Raise SchemaMismatch if the database has some, but not all, migrations that a migration of this code replaces.

    `applied` are the database's migrations. Without this check, Django would leave the app out of its plan without a
    word and migrate the other apps.
    """
    for migration in MigrationLoader(None).disk_migrations.values():
        if migration.app_label not in OUR_APPS:
            continue
        missing_names = [name for name in migration.replaces if name not in applied]
        if missing_names and len(missing_names) < len(migration.replaces):
            raise SchemaMismatch(
                f"This database is too old to be upgraded in one step: it lacks {_list_names(missing_names)}. Check "
                f"out commit {LAST_WITH_OLDER_MIGRATIONS}, run `make run` there once and stop it, then come back to "
                "this version. Nothing was changed."
            )


def missing() -> list[Migration]:
    """Return the migrations of this code that the database lacks."""
    return _missing(MigrationExecutor(connection))


def _missing(executor: MigrationExecutor) -> list[Migration]:
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [(migration.app_label, migration.name) for migration, _ in plan]


def _executor() -> MigrationExecutor | None:
    """An executor for the database, or None, with a warning in the log, if it does not answer.

    Raises SchemaMismatch if the database is too old (`require_upgradable`).
    """
    try:
        require_upgradable(MigrationRecorder(connection).applied_migrations())
        return MigrationExecutor(connection)
    except DatabaseError as error:
        logger.warning("cannot check the database's version, because it does not answer: %s", error)
        return None


def _refuse_newer(executor: MigrationExecutor) -> None:
    """Raise SchemaMismatch if the database has migrations that this code does not know."""
    if newer := _unknown(executor.loader, executor.loader.applied_migrations):
        raise SchemaMismatch(
            f"This code is older than the database, which has {_list_names(newer)}. Run the version that the database "
            "was last used with, or a newer one; or go back to an older backup: "
            f"{site_command('restore')} (docs/operate.md)."
        )


def _unknown(loader: MigrationLoader, names: Iterable[Migration]) -> list[Migration]:
    """The migrations of our apps among `names` that the code of `loader` does not know, sorted.

    Migrations that this code has replaced by others (squashed) count as known.
    """
    known_names = {*loader.disk_migrations}
    for migration in loader.disk_migrations.values():
        known_names.update(migration.replaces)
    return sorted((app, name) for app, name in names if app in OUR_APPS and (app, name) not in known_names)


def _list_names(migrations: Sequence[Migration]) -> str:
    names = ", ".join(f"{app}.{name}" for app, name in migrations[:MAX_NAMES])
    more = len(migrations) - MAX_NAMES
    if more > 0:
        return f"{names} and {more} more migrations"
    return f"the migration {names}" if len(migrations) == 1 else f"the migrations {names}"
