"""A site from a backup: what it refuses, what does not come back, and a site that moves to PostgreSQL."""

import contextlib
import dataclasses
import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Value

from grading.backups import manifest, restoring
from grading.backups.databases import BackupProblem, stopped
from grading.health.planner import gather_statistics
from grading.intake.erasing import erase
from grading.models import Session
from tests.backups.test_backups import backup, folder, programs  # noqa: F401 - fixtures
from tests.casts import logs
from tests.casts import quota as quota_cast
from tests.processes import for_the_site
from tests.template_database import copy_sqlite

pytestmark = pytest.mark.django_db(transaction=True)
# Where a lock of the state folder or the command's words decide, which are the same on both.
on_sqlite = pytest.mark.skipif(
    os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="runs once, with the tests on SQLite"
)
on_postgresql = pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="runs with the tests on PostgreSQL"
)


def test_what_was_erased_after_the_backup_does_not_come_back(site, new_place, folder, settings, tmp_path):  # noqa: F811
    settings.BACKUP_DIR = folder
    # Every night the tables are counted for the planner, for which SQLite makes tables of its own.
    gather_statistics()
    site.upload("s-1", logs.claude("s-1", logs.COMMIT))
    site.upload("s-2", logs.claude("s-2", logs.COMMIT))
    site.upload("s-3", logs.claude("s-3", logs.COMMIT), agent="alice")
    Session.objects.filter(external_id="s-2").update(title=Value("password=hunter-aB3dE5gH7"))  # as it is
    backup(folder)
    erase(Session.objects.filter(external_id="s-1"), who="olga", why="asked for")
    call_command("erase_agent", "alice", "--yes")
    place = new_place(ready=False)
    said = place.run("restore", str(folder))
    assert "Restored 3 sessions" in said
    assert "Replaced secrets in 1 stored rows: 1 of session." in said
    assert "Erased again what was erased after the backup: 2 sessions, 1 agents." in said
    assert "No problems: 1 sessions" in place.run("verify")
    assert (place.state / "chance.key").read_bytes() == settings.CHANCE_KEY
    # Where only the backup itself was taken along, nobody knows what was erased, and that is said.
    alone = tmp_path / "elsewhere" / "backup"
    shutil.copytree(manifest.find(folder), alone)
    other = new_place(ready=False)
    assert "data erased since then is back. Erase it again." in other.run("restore", str(alone))
    # What is there is not written over.
    assert "there is a site already" in other.run("restore", str(folder), ends=1)
    if connection.vendor == "sqlite":
        assert "Moved the site that was here" in other.run("restore", str(folder), "--replace")
        (aside,) = other.state.glob("replaced-*")
        assert (aside / "db.sqlite3").stat().st_size > 0
        assert "1 sessions" in other.run("verify")
    else:
        assert "make an empty database" in other.run("restore", str(folder), "--replace", ends=1)


@on_sqlite
def test_the_log_of_a_database_that_was_deleted_changes_nothing(site, new_place, folder, tmp_path):  # noqa: F811
    """A site that was killed left it. SQLite would apply it to the restored database."""
    site.upload("s-1", logs.claude("s-1", logs.COMMIT))
    backup(folder)
    place = new_place(ready=False)
    killed = tmp_path / "killed.sqlite3"
    with contextlib.closing(sqlite3.connect(killed)) as database:
        database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE lost (x); INSERT INTO lost VALUES (1)")
        for ending in ("-wal", "-shm"):
            shutil.copyfile(f"{killed}{ending}", place.state / f"db.sqlite3{ending}")
    assert "Restored 1 sessions" in place.run("restore", str(folder))
    assert "No problems: 1 sessions" in place.run("verify")


def test_a_backup_of_another_kind_or_of_a_newer_version_is_refused_in_words(folder):  # noqa: F811
    made, _ = backup(folder)
    held = manifest.read(made)
    other = {"sqlite": "postgresql", "postgresql": "sqlite"}[held.database]
    with pytest.raises(BackupProblem, match="restore it to its own kind first"):
        restoring.require_compatible(dataclasses.replace(held, database=other))
    newer = (*held.migrations, ("grading", "0999_from_the_future"))
    with pytest.raises(BackupProblem, match=r"of a newer version, which has grading\.0999"):
        restoring.require_compatible(dataclasses.replace(held, migrations=newer))
    older = tuple(name for name in held.migrations if name[0] != "grading" or name[1] < "0050")
    with pytest.raises(BackupProblem, match=r"of an older version.* Check out commit \w+, run `make run` there"):
        restoring.require_compatible(dataclasses.replace(held, migrations=older))
    with pytest.raises(BackupProblem, match="use as new a server"):
        restoring.require_compatible(dataclasses.replace(held, server=99))


def test_a_running_site_is_not_restored_over(folder, settings):  # noqa: F811
    made, _ = backup(folder)
    with (settings.STATE_DIR / "site.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BackupProblem, match="the site is running"):
            restoring.restore(made, replace=True, say=print)


@on_sqlite
@pytest.mark.worker
def test_a_web_server_that_runs_by_itself_is_not_restored_under(new_place, tmp_path):
    """It would write to the file that was moved aside, and refer to rows that the restored database lacks."""
    place, backups = new_place(), tmp_path / "backups"
    place.run("backup", str(backups))
    with place.serving():
        said = place.run("restore", str(backups), "--replace", ends=1)
    assert "a web server, a worker or a scheduler of this site is running" in said
    assert list(place.state.glob("replaced-*")) == []


@on_sqlite
@pytest.mark.worker
def test_a_worker_that_runs_by_itself_is_not_restored_under(folder, start_worker):  # noqa: F811
    made, _ = backup(folder)
    start_worker()
    with pytest.raises(BackupProblem, match="a worker or a scheduler of this site is running"):
        restoring.restore(made, replace=False, say=print)


@on_sqlite
@pytest.mark.parametrize("program", [("-m", "gradingsite.web"), ("-m", "celery", "-A", "gradingsite", "worker")])
def test_no_program_starts_while_a_site_is_restored(program):
    with stopped():
        done = subprocess.run(
            [sys.executable, *program], env=for_the_site(), capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert "is being restored or moved" in done.stderr


def test_a_damaged_backup_changes_nothing(folder):  # noqa: F811
    made, _ = backup(folder)
    (made / manifest.DATABASES[connection.vendor]).write_bytes(b"nothing")
    with pytest.raises(BackupProblem, match="is damaged"):
        restoring.restore(made, replace=True, say=print)
    assert Session.objects.count() == 0


# A world, and in it a secret that no rule has seen.
WORLD = """
from django.db.models import Value
from grading.models import Evidence
from grading.intake.redacting import permit
from tests import world
world.make()
with permit("a test"):
    Evidence.objects.filter(pk=Evidence.objects.latest("pk").pk).update(detail=Value("password=hunter-aB3dE5gH7"))
"""


@on_postgresql
def test_a_site_moves_to_postgresql_row_for_row(new_place, tmp_path):
    """One with a row of nearly every kind."""
    place, target = new_place(ready=False, ANTHROPIC_API_KEY=quota_cast.KEY), new_place(ready=False)
    place.database = ""
    copy_sqlite(place.state / "db.sqlite3")
    place.run("shell", "-c", WORLD)
    with (place.state / "site.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "the site is running" in place.run("move_to", target.database, ends=1)
    said = place.run("move_to", target.database)
    assert "each is the same in both databases, and so is the ledger's hash" in said
    assert "1 of evidence" in said
    assert "it has rows in" in place.run("move_to", target.database, ends=1)
    then = re.search("No problems.*", place.run("verify"))[0]
    place.database = target.database
    assert then in place.run("verify")
    place.run("issue_token", "a-new-agent")  # which gets a number that none had


@on_sqlite
def test_where_there_is_no_postgresql_nothing_is_moved(new_place):
    place = new_place()
    assert "expected the address of a PostgreSQL database" in place.run("move_to", "sqlite:///x.sqlite3", ends=1)
    assert "nothing was moved" in place.run("move_to", "postgres://nobody@127.0.0.1:1/none", ends=1)
