"""A migrated database that test databases are copied from. Migrating from nothing takes 20 seconds and more.

The template is named by a hash of every migration, so a changed migration makes a new one. `migrate` still runs on each
copy: it has nothing to apply, but brings permissions and roles up to date with the code. On PostgreSQL the template is
a database of the server; `cluster` keeps the files of a server that has it, for `tests/postgres.py` to start from.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import postgres

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".pytest_cache" / "databases"


def use_template() -> None:
    """Make the next test database a copy of the template, after its name is final and before Django creates it."""
    from django.db import connection

    name = f"template_{migrations_hash()}"
    if connection.vendor == "sqlite":
        copy_sqlite(Path(connection.settings_dict["TEST"]["NAME"]))
    else:
        with _exclusive("postgresql.lock"):  # of several test processes, one migrates
            with connection._nodb_cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
                if not cursor.fetchone():
                    cursor.execute("DROP DATABASE IF EXISTS partial_template")
                    cursor.execute("CREATE DATABASE partial_template")
                    _migrate("partial_template")
                    cursor.execute(f"ALTER DATABASE partial_template RENAME TO {name}")
            connection.settings_dict["TEST"]["TEMPLATE"] = name


def copy_sqlite(path: Path) -> None:
    """Make `path` the database of a new site on SQLite."""
    template = CACHE / f"template_{migrations_hash()}.sqlite3"
    with _exclusive("sqlite.lock"):
        if not template.exists():
            _remove_older("template_*.sqlite3")
            with _new_site(DATABASE_URL="") as (environment, state):
                subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
                (state / "db.sqlite3").rename(template)
    shutil.copy(template, path)


def cluster() -> Path:
    """The files of a stopped PostgreSQL server that has the template of these migrations; made if missing."""
    path = CACHE / f"postgresql_{migrations_hash()}"
    with _exclusive("cluster.lock"):
        if not path.exists():
            _remove_older("postgresql_*")
            with postgres.server(keep_as=path) as url, _new_site(DATABASE_URL=url) as (environment, _):
                subprocess.run([sys.executable, "-m", "tests.template_database"], env=environment, check=True)
    return path


def migrations_hash() -> str:
    """12 hex digits that change with any migration of ours, and with the version of anybody else's."""
    digest = hashlib.sha256((ROOT / "requirements-dev.txt").read_bytes())
    for app in ("bandit", "grading"):
        for path in sorted((ROOT / app / "migrations").glob("*.py")):
            digest.update(f"{app}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _migrate(database: str) -> None:
    """Apply every migration to an empty database."""
    from django.core.management import call_command
    from django.db import connection

    usual = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = database
    try:
        call_command("migrate", verbosity=0, interactive=False)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual


@contextmanager
def _new_site(**variables: str) -> Iterator[tuple[dict[str, str], Path]]:
    """The environment of a site that has nothing yet, and its state folder, which ends with the block."""
    with tempfile.TemporaryDirectory(dir=CACHE) as state:
        yield {**os.environ, "GRADINGSITE_STATE": state, "SECRET_KEY": "of-tests-" * 4, **variables}, Path(state)


def _remove_older(pattern: str) -> None:
    for path in CACHE.glob(pattern):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def _exclusive(name: str) -> Iterator[None]:
    """Hold a lock that other test processes on this machine wait for."""
    CACHE.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(CACHE / name, os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "gradingsite.settings"
    import django

    django.setup()
    use_template()
