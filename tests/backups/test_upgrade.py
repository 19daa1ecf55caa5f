"""An upgrade of a site with sessions: refusals that change nothing, a copy to go back to, then the migrations."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from grading.backups import upgrading
from grading.backups.databases import BackupProblem, put_back
from grading.models import Session
from gradingsite import schema
from tests.backups.places import binaries
from tests.databases import database, restore_baseline

pytestmark = [pytest.mark.database, pytest.mark.postgresql]


@pytest.fixture
def older(tmp_path, settings, django_db_blocker) -> Iterator[Path]:
    """The baseline before its upgrade, as the site's database; yields the state folder."""
    settings.STATE_DIR = tmp_path / "state"
    settings.STATE_DIR.mkdir()
    settings.PG_BIN = str(binaries())
    with django_db_blocker.unblock(), database("older", tmp_path):
        restore_baseline(tmp_path)
        yield settings.STATE_DIR


@contextmanager
def another_connection() -> Iterator[None]:
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
            other.execute("SELECT count(*) FROM grading_session").fetchone()
            yield
        return
    with psycopg.connect(**connection.get_connection_params(), application_name="a-report") as other:
        other.execute("SELECT 1")
        yield


def test_upgrade_copies_the_database_first_and_says_how_to_go_back(older, tmp_path):
    lines: list[str] = []
    missing = schema.missing()
    sessions = Session.objects.count()
    upgrading.migrate(lines.append)
    assert (schema.missing(), Session.objects.count()) == ([], sessions)
    (copy,) = (path for path in (older / upgrading.COPIES).rglob("*") if path.is_file())
    assert any(str(copy) in line for line in lines)
    assert any("To go back: stop the site, check out the version that ran before" in line for line in lines)
    (tmp_path / "back").mkdir()
    with database("back", tmp_path / "back"):
        put_back(copy)
        assert (schema.missing(), Session.objects.count()) == (missing, sessions)
        upgrading.migrate(lines.append)
        assert schema.missing() == []


def test_upgrade_is_refused_while_another_program_uses_the_database(older):
    missing = schema.missing()
    with another_connection(), pytest.raises(BackupProblem, match="then start the upgrade again"):
        upgrading.migrate(print)
    assert schema.missing() == missing
    assert list(older.glob(f"{upgrading.COPIES}/*")) == []
    upgrading.migrate(print)
    assert schema.missing() == []


def test_upgrade_is_refused_without_room_for_a_copy(older, monkeypatch):
    size = upgrading.database_size()
    usage = shutil.disk_usage(older)._replace(free=2 * size - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(BackupProblem, match=r"needs \d+ MiB of free disk .* twice the size of the database"):
        upgrading.migrate(print)
    assert schema.missing()


def test_new_site_is_migrated_without_a_copy(tmp_path, settings, django_db_blocker):
    settings.STATE_DIR = tmp_path
    with django_db_blocker.unblock(), database("new", tmp_path):
        upgrading.migrate(print)
        assert schema.missing() == []
    assert not (tmp_path / upgrading.COPIES).exists()


def test_database_with_some_of_the_replaced_migrations_is_refused(older):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'grading' AND name >= '0050'")
    with pytest.raises(schema.SchemaMismatch, match=f"Check out commit {schema.LAST_WITH_OLDER_MIGRATIONS}"):
        schema.require_can_migrate()
    with pytest.raises(schema.SchemaMismatch, match="lacks grading"):
        schema.require_current()


def test_interrupted_upgrade_can_be_started_again(older, monkeypatch):
    monkeypatch.setattr(upgrading, "call_command", stop)
    with pytest.raises(KeyboardInterrupt):
        upgrading.migrate(print)
    monkeypatch.setattr(upgrading, "call_command", call_command)
    upgrading.migrate(print)
    assert schema.missing() == []


def stop(*_arguments: object, **_options: object) -> None:
    raise KeyboardInterrupt
