"""Whether this code and the database belong together: said in words before anything reads or writes the rows.

Code that is older than its database would fail in the middle of something, or worse, leave out what it does not know.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Sequence

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

logger = logging.getLogger(__name__)

OURS = ("bandit", "grading")
TOLD = 3
# Commands that read no rows of ours, or come before there are any.
NEED_NO_ROWS = frozenset(
    (
        "",
        "help",
        "check",
        "incident",
        "judge_simulator",
        "makemigrations",
        "restore",
        "showmigrations",
        "sqlmigrate",
        "version",
    )
)
MIGRATE = frozenset(("migrate", "up"))
SECRET_KEY_LENGTH = 32  # characters, at least
MAKE_KEY = "python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"

Migration = tuple[str, str]


class WeakSecretKey(ImproperlyConfigured):
    """A new site would begin with a SECRET_KEY that can be guessed. The message says what to do."""


class SchemaMismatch(ImproperlyConfigured):
    """The code and the database do not belong together. The message says which is older, and what to do."""


def require_for(words: Sequence[str]) -> None:
    """End the program with a line that says why where that command of manage.py could not work on this database."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command in NEED_NO_ROWS or {"-h", "--help"} & {*words}:
        return
    django.setup()
    require_or_exit(require_can_migrate if command in MIGRATE else require_current)


def require_or_exit(require: Callable[[], None]) -> None:
    """End the program with a line that says why where that raises SchemaMismatch or WeakSecretKey."""
    try:
        require()
    except (SchemaMismatch, WeakSecretKey) as error:
        sys.exit(str(error))
    finally:
        connection.close()  # nothing that is forked later shares it


def require_current() -> None:
    """Raise SchemaMismatch unless the database has exactly this code's migrations. A database that does not answer is
    taken for right: it is away, and whoever needs it says so.
    """
    executor = _executor()
    if executor is None:
        return
    _refuse_newer(executor)
    if not executor.loader.applied_migrations:
        raise SchemaMismatch("The database is empty: run manage.py migrate, or restore a backup into it.")
    if lacking := _missing(executor):
        raise SchemaMismatch(
            f"This code is newer than the database, which lacks {_told(lacking)}. Make a backup with the version that "
            "ran before, stop the site, and run: manage.py migrate (`make run` does so by itself)."
        )


def require_can_migrate() -> None:
    """Raise SchemaMismatch if the database has migrations that this code does not know, and WeakSecretKey if it has
    none yet and SECRET_KEY is too short. An existing site with a short key is migrated: `warn_of_short_key` tells it.
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
    """Those of our apps' migrations that this code does not know."""
    return _unknown(MigrationExecutor(None), names)


def missing() -> list[Migration]:
    """Those of this code's migrations that the database lacks."""
    return _missing(MigrationExecutor(connection))


def _missing(executor: MigrationExecutor) -> list[Migration]:
    return [(each.app_label, each.name) for each, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]


def _executor() -> MigrationExecutor | None:
    try:
        return MigrationExecutor(connection)
    except DatabaseError as error:
        logger.warning("whether the database is of this version is not known, since it does not answer: %s", error)
        return None


def _refuse_newer(executor: MigrationExecutor) -> None:
    if newer := _unknown(executor, executor.loader.applied_migrations):
        raise SchemaMismatch(
            f"This code is older than the database, which has {_told(newer)}. Run the version that the database was "
            "last used with, or a newer one; or go back to a backup from before: manage.py restore (docs/operate.md)."
        )


def _unknown(executor: MigrationExecutor, names: Iterable[Migration]) -> list[Migration]:
    known = executor.loader
    replaced = {each for migration in known.disk_migrations.values() for each in migration.replaces}
    return sorted(
        each for each in names if each[0] in OURS and each not in known.disk_migrations and each not in replaced
    )


def _told(migrations: list[Migration]) -> str:
    names = ", ".join(f"{app}.{name}" for app, name in migrations[:TOLD])
    more = len(migrations) - TOLD
    return f"{names} and {more} more migrations" if more > 0 else f"the migration{'s' * (len(migrations) > 1)} {names}"
