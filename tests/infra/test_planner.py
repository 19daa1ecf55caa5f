"""The database is counted when much has come: every night, and after an import, an upgrade or a restore."""

import pytest
from django.apps import apps as django_apps
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import post_migrate

from grading import tasks
from grading.health import planner
from tests.site import Site


def counted() -> int:
    """How many sessions the planner goes by."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'grading_session'")
        else:
            cursor.execute("SELECT CAST(stat AS integer) FROM sqlite_stat1 WHERE tbl = 'grading_session'")
        return int(cursor.fetchone()[0])


def gathered(monkeypatch) -> list[str]:
    """The databases that are counted from here on, as they are."""
    found: list[str] = []
    monkeypatch.setattr(planner, "gather_statistics", lambda using="default": found.append(using))
    return found


@pytest.mark.django_db
def test_a_night_counts_what_is_there():
    for _number in range(3):
        Site().session()
    tasks.at_night()
    assert counted() == 3
    Site().session()
    assert counted() == 3
    tasks.at_night()
    assert counted() == 4


@pytest.mark.django_db(transaction=True)
def test_an_import_does(tmp_path, monkeypatch):
    found = gathered(monkeypatch)
    call_command("import_sessions", tmp_path)
    assert found == ["default"]


@pytest.mark.django_db
def test_an_upgrade_does_where_there_are_sessions(monkeypatch):
    found = gathered(monkeypatch)

    config = django_apps.get_app_config("grading")

    def migrated(*plan):
        said = {"app_config": config, "verbosity": 0, "interactive": False, "using": "default", "apps": django_apps}
        post_migrate.send(sender=config, plan=plan, **said)

    migrated("a migration")
    assert found == []
    Site().session()
    migrated()
    assert found == []
    migrated("a migration")
    assert found == ["default"]
