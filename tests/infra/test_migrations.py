"""Migrations depend on no code that changes, and the first ones replace those of earlier versions."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command

from tests.databases import database, schema

ROOT = Path(__file__).parents[2]
FILES = [path for app in ("bandit", "grading") for path in sorted((ROOT / app / "migrations").glob("*.py"))]
REDACTION = ("grading.plain", "grading.redaction")
OURS = ("bandit", "grading", "gradingsite")
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
    """Copy what it needs into the migration, or beside it into a file that begins with an underscore.

    What finds secrets is the exception: rows of earlier versions get today's rules.
    """
    assert len(FILES) >= 2
    ours = [(path.name, name) for path in FILES for name in imported(path) if name.partition(".")[0] in OURS]
    assert [(path, name) for path, name in ours if ".migrations" not in name and name not in REDACTION] == []


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_migrating_from_nothing_ends_where_the_template_does(tmp_path):
    """The template of the test databases may be of another day: here every migration runs."""
    template = schema(), seeds()
    with database("fresh", tmp_path):
        call_command("migrate", verbosity=0)
        assert (schema(), seeds()) == template


def seeds() -> dict[str, list[Any]]:
    found = {}
    for label in SEEDED:
        model = apps.get_model(label)
        fields = [field.attname for field in model._meta.concrete_fields if field.attname != "created_at"]
        found[label] = list(model.objects.order_by("pk").values(*fields))
    return found
