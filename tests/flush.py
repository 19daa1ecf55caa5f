"""What transactional tests need here: emptied tables although some refuse deletes, and the migrations' rows again."""

from contextlib import contextmanager

import pytest
from django.apps import apps
from django.core import serializers
from django.db import connection
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test import TransactionTestCase

OURS = ("bandit", "grading")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """pytest-django's own, and from then on every emptying of the tables goes round triggers and keeps the seeds."""
    with django_db_blocker.unblock():
        seeds = serializers.serialize("json", _rows())
    with pytest.MonkeyPatch.context() as patch:
        sqlite = DatabaseWrapper.ops_class
        teardown, flush = TransactionTestCase._fixture_teardown, sqlite.execute_sql_flush

        def teardown_and_seed(self):
            teardown(self)
            for row in serializers.deserialize("json", seeds):
                row.save()

        def flush_without_triggers(self, sql_list):
            with triggers_away():
                flush(self, sql_list)

        patch.setattr(TransactionTestCase, "_fixture_teardown", teardown_and_seed)
        patch.setattr(sqlite, "execute_sql_flush", flush_without_triggers)
        yield


def _rows():
    for label in OURS:
        for model in serializers.sort_dependencies([(apps.get_app_config(label), None)]):
            yield from model._base_manager.order_by("pk")


@contextmanager
def triggers_away():
    """SQLite empties a table by DELETE, which append-only tables refuse; PostgreSQL's TRUNCATE asks no trigger."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        yield
        for _, sql in triggers:
            cursor.execute(sql)
