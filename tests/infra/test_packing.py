"""Columns of JSON are packed by a migration that may be interrupted, and that changes nothing of what they say."""

import datetime as dt

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations.loader import MigrationLoader

from bandit.migrations import _packing
from tests.databases import database, migrate_by_old_files

BEFORE = [("bandit", "0021_recent_decisions"), ("grading", "0036_parked_jobs")]
BESIDE = [("bandit", "0022_packed_columns"), ("grading", "0037_packed_columns")]
ROWS = 7


@pytest.mark.slow
@pytest.mark.database
def test_an_interrupted_migration_goes_on_where_it_was(tmp_path, django_db_blocker, monkeypatch):
    with django_db_blocker.unblock(), database("packing", tmp_path):
        migrate_by_old_files(BEFORE)
        old = MigrationLoader(connection, replace_migrations=False).project_state(BEFORE).apps
        said = fill(old)
        migrate_by_old_files(BESIDE)
        packed = []

        def stopped(value, dictionary, pack=_packing.pack):
            if len(packed) == 5:
                raise KeyboardInterrupt
            packed.append(value)
            return pack(value, dictionary)

        with monkeypatch.context() as patch:
            patch.setattr(_packing, "BATCH", 2)
            patch.setattr(_packing, "pack", stopped)
            with pytest.raises(KeyboardInterrupt):
                call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM grading_grade WHERE evidence_packed IS NOT NULL")
            assert cursor.fetchone()[0] == 4
        call_command("migrate", verbosity=0)
        grades = apps.get_model("grading.Grade").objects
        rows = grades.order_by("pk").values_list("evidence", "view", "mean")
        assert list(rows) == [(each, each["view"], each["mean"]) for each in said]
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            grades.update(detail="changed")


def fill(old) -> list[dict]:
    """Grades with evidence, as version 0.1 wrote it; what it says."""
    agent = old.get_model("grading.Agent").objects.create(name="bob")
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    session = old.get_model("grading.Session").objects.create(
        agent=agent, external_id="s", ended_at=moment, received_at=moment
    )
    said = [{"view": "full", "mean": number / 8, "terms": [{"kind": "commit"}] * number} for number in range(ROWS)]
    grade = old.get_model("grading.Grade")
    grade.objects.bulk_create(
        grade(session=session, source="trajectory", status="scored", value=0.5, version=str(number), evidence=each)
        for number, each in enumerate(said)
    )
    return said
