"""Migrations are history: they say by themselves what they did, and every way through them ends at one schema."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tests.databases import database, migrate_by_old_files, schema

ROOT = Path(__file__).parents[2]
FILES = [path for app in ("bandit", "grading") for path in sorted((ROOT / app / "migrations").glob("*.py"))]
OURS = ("bandit", "grading", "gradingsite")
SQUASHED = [path for path in FILES if "squashed" in path.name]
# What a site begins with, apart from the moment.
SEEDED = ("bandit.Bandit", "bandit.Arm", "bandit.ArmAlias", "bandit.PolicyVersion", "bandit.CalibrationVersion")
SEEDED += ("grading.ArtifactRule", "grading.Rubric")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_no_migration_imports_code_that_changes():
    """Copy what it needs into the migration, or beside it into a file that begins with an underscore."""
    assert len(FILES) > 90
    ours = [(path.name, name) for path in FILES for name in imported(path) if name.partition(".")[0] in OURS]
    assert [(path, name) for path, name in ours if ".migrations" not in name] == []


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_new", [True, False])
def test_only_a_new_site_asks_for_less_text(site, is_new):
    """An upgrade changes no rule of a site that has sessions, and so none of its rewards."""
    try:
        call_command("migrate", "grading", "0057", verbosity=0)
        assert set(least_characters().values()) == {200}
        if not is_new:
            site.session()
    finally:
        call_command("migrate", "grading", verbosity=0)
    assert least_characters() == ({"task": 60, "knowledge": 120} if is_new else {"task": 200, "knowledge": 200})


def least_characters() -> dict[str, int]:
    rules = apps.get_model("grading.ArtifactRule").objects.filter(kind__in=("task", "knowledge"))
    return dict(rules.values_list("kind", "least_characters"))


@pytest.mark.slow
@pytest.mark.database
def test_migrating_from_nothing_ends_where_the_template_does(tmp_path, django_db_setup, django_db_blocker):
    """The template of the test databases may be of another day: here every migration runs."""
    with django_db_blocker.unblock():
        template = schema(), seeds()
        with database("fresh", tmp_path):
            call_command("migrate", verbosity=0)
            assert (schema(), seeds()) == template


@pytest.mark.slow
@pytest.mark.database
def test_the_old_files_one_by_one_end_where_the_squashed_ones_do(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), database("fresh", tmp_path):
        call_command("migrate", verbosity=0)
        assert {(path.parts[-3], path.stem) for path in SQUASHED} <= set(MigrationLoader(connection).applied_migrations)
        fresh = schema(), seeds()
    (tmp_path / "again").mkdir()
    with django_db_blocker.unblock(), database("by_old_files", tmp_path / "again"):
        leaves = MigrationLoader(connection, replace_migrations=False).graph.leaf_nodes()
        migrate_by_old_files([(app, name) for app, name in leaves if "squashed" not in name])
        assert (schema(), seeds()) == fresh


def seeds() -> dict[str, list[Any]]:
    found = {}
    for label in SEEDED:
        model = apps.get_model(label)
        fields = [field.attname for field in model._meta.concrete_fields if field.attname != "created_at"]
        found[label] = list(model.objects.order_by("pk").values(*fields))
    return found
