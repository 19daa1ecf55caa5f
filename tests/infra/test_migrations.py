"""Migrations depend on no code that changes, and the first ones replace those of earlier versions."""

import ast
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from bandit.checks import missing_triggers
from bandit.models import CalibrationVersion
from grading.models import AuditEvent, CategoryChange, CategoryRule, CategoryWord
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


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_rectifiers_and_calibrations_become_one_chain(tmp_path):
    """Lines are dropped with a note. Offsets of fallbacks count only where no calibration is on."""
    lines = {"sources": ["journal", "trajectory"], "lines": [{"source": "trajectory"}], "latest": None}
    judges, journals = ({"source": source, "offset": 0.1} for source in ("judge", "journal"))
    with database("chain", tmp_path):
        executor = MigrationExecutor(connection)
        others = [node for node in executor.loader.graph.leaf_nodes() if node[0] != "bandit"]
        old = executor.migrate([("bandit", "0030_remove_unused_columns"), *others]).apps
        versions, rectifiers = (old.get_model("bandit", name) for name in ("CalibrationVersion", "Rectifier"))
        bandit = old.get_model("bandit", "Bandit").objects.get(name="category")
        start = versions.objects.get(bandit=bandit)

        def at(hours: int, **fields: Any) -> dict[str, Any]:
            return {"bandit": bandit, "by": "olga", "created_at": start.created_at + timedelta(hours=hours), **fields}

        versions.objects.create(**at(1, version=2, scale=lines, target="m-1", note="looked at"))
        rectifiers.objects.create(**at(2, version=1, offsets=[judges, journals]))
        versions.objects.create(**at(3, version=3, enabled=False, accepted=True))
        rectifiers.objects.create(**at(4, version=2, enabled=False))
        call_command("migrate", verbosity=0)
        chain = list(CalibrationVersion.objects.filter(bandit__name="category").order_by("version"))
        assert missing_triggers(["bandit_calibrationversion"]) == []
    dropped = "An upgrade replaced its lines by the start of a simpler rule."
    assert [(each.version, each.enabled, each.accepted, each.note) for each in chain] == [
        (1, True, True, ""),
        (2, True, False, f"looked at {dropped}"),
        (3, True, True, ""),
        (4, True, True, ""),
        (5, False, True, ""),
    ]
    first = {"sources": ["journal", "trajectory"], "kinds": [], "latest": None}
    assert [each.fallbacks for each in chain] == [first, first, first, None, None]
    assert [each.offsets for each in chain] == [[], [], [judges], [judges, journals], []]
    assert [each.by for each in chain[1:]] == ["olga"] * 4


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_edits_of_category_rules_become_events(tmp_path):
    """Deleted rules go, what they gave sessions stays, and so do the changes of sessions."""
    with database("edits", tmp_path):
        executor = MigrationExecutor(connection)
        others = [node for node in executor.loader.graph.leaf_nodes() if node[0] != "grading"]
        old = executor.migrate([("grading", "0069_quota_state_labels"), *others]).apps
        olga, ana = (old.get_model("auth", "User").objects.create(username=name) for name in ("olga", "ana"))
        code = old.get_model("bandit", "Arm").objects.get(bandit__name="category", name="code")
        rules = old.get_model("grading", "CategoryRule")._base_manager
        deleted, listed = (
            rules.create(category=code, position=number, is_deleted=number == 1, conditions=[]) for number in (1, 2)
        )
        at = timezone.now()
        agent = old.get_model("grading", "Agent").objects.create(name="bob")
        session = old.get_model("grading", "Session").objects.create(agent=agent, external_id="s-1", ended_at=at)
        changes = old.get_model("grading", "CategoryChange").objects
        edit = {"act": "add", "rule": listed.pk, "number": 1, "words": "x" * 400, "before": []}
        changes.create(by=olga, origin="rule", edit=edit)
        edit = {"act": "delete", "rule": deleted.pk, "number": 1, "words": "old", "before": []}
        undone = {"undone_at": at, "undone_by": ana, "undone_why": "a slip"}
        changes.create(by=olga, origin="rule", edit=edit, todo=[session.pk], **undone)
        set_by_rules = changes.create(by=ana, origin="rule", total=1)
        old.get_model("grading", "CategoryWord").objects.create(
            session=session, origin="rule", category=code, rule=deleted, change=set_by_rules
        )
        call_command("migrate", verbosity=0)
        events = list(AuditEvent.objects.order_by("pk").values_list("who", "what", "detail"))
        assert events == [
            ("olga", f"added rule 1: {'x' * 285}…", ""),
            ("olga", "deleted rule 1: old", ""),
            ("ana", "undid “deleted rule 1: old”", "a slip"),
        ]
        assert AuditEvent.objects.get(who="ana").at == at
        assert [each.pk for each in CategoryChange.objects.all()] == [set_by_rules.pk]
        assert [each.pk for each in CategoryRule.objects.all()] == [listed.pk]
        word = CategoryWord.objects.get()
        assert (word.category_id, word.rule, word.change_id) == (code.pk, None, set_by_rules.pk)
        assert missing_triggers(["grading_auditevent"]) == []
