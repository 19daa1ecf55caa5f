"""Upgrading a site that an earlier version made changes no grade and no reward, and every page opens."""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client, override_settings
from django.urls import reverse

from bandit.audit import audit
from bandit.checks import missing_triggers
from bandit.models import Arm, Bandit, CalibrationVersion, LedgerEntry, Selection
from bandit.reading import effective_policy, site_day
from grading import models, tasks
from grading.reward import explain, rewards
from tests import addresses
from tests.addresses import ADDRESSES, Kind, World
from tests.databases import Schema, database, restore_baseline, schema
from tests.facts import digests, facts

pytestmark = [pytest.mark.slow, pytest.mark.database]

ANSWERS = {Kind.PAGE: 200, Kind.PART: 200, Kind.DATA: 200, Kind.FILE: 200, Kind.MOVED: 302}
POSTERIORS = Path(__file__).parents[1] / "data" / "baseline" / "posteriors.json"
APPEND_ONLY = {
    "bandit": ("ArmEvent", "BreakDecision", "CalibrationVersion", "LedgerEntry", "PolicyVersion"),
    "grading": (
        *("AbstentionDraw", "AuditEvent", "Comment", "Evidence", "Grade", "JudgePolicy", "Reveal", "ReviewAnswer"),
        *("RubricActivation", "SessionShares", "Settlement", "Submission"),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("baseline")


@pytest.fixture(scope="module", autouse=True)
def upgraded(folder, django_db_setup, django_db_blocker) -> Iterator[None]:
    """The baseline after all migrations, instead of the tests' own database."""
    with django_db_blocker.unblock(), database("baseline", folder):
        restore_baseline(folder)
        call_command("migrate", verbosity=0)
        with override_settings(MEDIA_ROOT=folder / "evidence"):
            yield


@pytest.fixture(scope="module")
def about(folder) -> dict[str, Any]:
    return json.loads((folder / "about.json").read_text())


@pytest.fixture(scope="module")
def new_site(tmp_path_factory, upgraded, django_db_blocker) -> Schema:
    """The schema of a new site."""
    with django_db_blocker.unblock(), database("new", tmp_path_factory.mktemp("new")):
        call_command("migrate", verbosity=0)
        return schema()


def test_grades_settlements_ledger_and_posteriors_are_the_same(folder, about):
    """Posteriors are those without calibration and baseline, as the code before computed them: calibrations were
    replaced by those of a simpler rule (docs/decisions/021). They may differ in their last bits: processors have
    different instructions for 2^x.
    """
    now = dt.datetime.fromisoformat(about["now"])
    for bandit, arm, *parameters in json.loads(POSTERIORS.read_text()):
        current = effective_policy(Bandit.objects.named(bandit))
        _, outlook = current.outlook(site_day(now), replace(current.policy, calibration=None))
        beliefs = [outlook.arms[arm].alpha, outlook.arms[arm].beta]
        assert beliefs == pytest.approx([float.fromhex(each) for each in parameters], rel=1e-15, abs=0), arm
    rows = facts(now)
    earlier = json.loads((folder / "facts.json").read_text())
    rows["posteriors"] = earlier["posteriors"]
    for kind, earlier_rows in earlier.items():
        differing = [pair for pair in zip(earlier_rows, rows[kind], strict=True) if pair[0] != pair[1]]
        assert differing[:1] == [], f"{len(differing)} rows of {kind} differ"
    assert digests(rows) == about["digests"]


def test_calibrations_keep_their_place_and_say_that_their_lines_were_replaced():
    """The baseline had a calibration every night, the first one at the start."""
    for bandit in Bandit.objects.that_learn():
        versions = list(bandit.calibrations.order_by("version"))
        assert [each.version for each in versions] == list(range(1, 31))
        assert all(each.enabled and not each.fallback_calibration.kinds for each in versions)
        assert (versions[0].note, versions[0].accepted) == ("", True)
        assert all("An upgrade replaced its lines" in each.note for each in versions[1:])
        assert CalibrationVersion.objects.filter(bandit=bandit, accepted=True).exists()


def test_schema_is_that_of_a_new_site(new_site):
    assert schema() == new_site


def test_append_only_tables_still_refuse_changes():
    tables = [f"{label}_{name.lower()}" for label, names in APPEND_ONLY.items() for name in names]
    assert missing_triggers(tables) == []
    for label, names in APPEND_ONLY.items():
        for name in names:
            rows = apps.get_model(label, name).objects.all()
            if not rows.exists():
                continue
            field = next(field.name for field in rows.model._meta.concrete_fields if not field.primary_key)
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                rows.update(**{field: rows.values_list(field, flat=True)[0]})
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                rows._raw_delete(using="default")


def test_settling_every_session_again_changes_no_reward(about, monkeypatch):
    """Not even with explanations in other words.

    The ledger may name a merged category as the context of a harness's reward; what is learned stays the same.
    """
    for source in explain.DECIDERS:
        monkeypatch.setitem(explain.DECIDERS, source, "Something else")
    now = dt.datetime.fromisoformat(about["now"])
    before = facts(now)
    for session in models.Session.objects.order_by("pk"):
        rewards.settle(session)
    after = facts(now)
    assert after["settlements"] == before["settlements"]
    assert after["posteriors"] == before["posteriors"]
    assert audit() == []


def test_an_earlier_decision_is_answered_as_it_was():
    chosen = Selection.objects.filter(bandit__name="category", agent="bob").order_by("pk")
    bob = token_of("bob")
    for decision in chosen[:5]:
        question = {"decision_id": decision.decision_id, "bandit": "category"}
        answer = bob.post("/api/v1/selections", json.dumps(question), content_type="application/json").json()
        assert answer["arm"] == decision.arm.name


def test_every_page_opens(sim):
    User.objects.filter(username="olga").update(is_superuser=True)
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get(username="olga"))
    rows = example_rows()
    wrong = {}
    for name in addresses.of_kind(*ANSWERS):
        word = ADDRESSES[name].of
        if word and rows.get(word) is None:
            continue
        for url in addresses.urls(name, World(rows=rows)):
            response = client.get(url)
            # `ready` fails, because nobody has judged the waiting sessions since.
            expected = 503 if name == "ready" else int(ADDRESSES[name].inside or ANSWERS[ADDRESSES[name].kind])
            if response.status_code != expected:
                wrong[url] = response.status_code
            response.close()
    assert wrong == {}


def test_judging_continues(sim, redis_url, about):
    """What waited for quota is judged, and the ledger only grows."""
    waiting = set(models.JudgeJob.objects.open().values_list("pk", flat=True))
    assert waiting
    entries = list(LedgerEntry.objects.order_by("pk").values())
    client = Client()
    with time_machine.travel(dt.datetime.fromisoformat(about["now"]) + dt.timedelta(hours=1), tick=True):
        client.force_login(User.objects.get(username="olga"))
        client.post(reverse("admin:quota_probe"))
        for _attempt in range(3):
            for task in (tasks.sweep, tasks.judge, tasks.judge_again, tasks.prioritise, tasks.name_models):
                task()
    assert set(models.JudgeJob.objects.filter(pk__in=waiting).values_list("state", flat=True)) == {"done"}
    assert list(LedgerEntry.objects.order_by("pk").values()[: len(entries)]) == entries
    assert LedgerEntry.objects.count() > len(entries)
    assert audit() == []


def token_of(agent: str) -> Client:
    _row, secret = models.ApiToken.objects.issue(models.Agent.objects.get(name=agent))
    return Client(headers={"Authorization": f"Bearer {secret}"})


def example_rows() -> dict[str, Any]:
    """A row for each word of `tests.addresses`, as far as the baseline has one."""
    rows: dict[str, Any] = {
        label.lower().replace(".", "_"): apps.get_model(label).objects.first()
        for label in ("auth.Group", "auth.User", *(name.replace("_", ".") for name in addresses.MODELS))
    }
    answer = models.ReviewAnswer.objects.exclude(grade=None).earliest("pk")
    session = answer.session
    open_items = models.ReviewItem.objects.filter(state="open").order_by("pk")
    category = Arm.objects.filter(bandit__name="category").order_by("pk")
    return rows | {
        "session": session,
        "session_pk": session.pk,
        "own_id": (session.external_id,),
        "rule_pk": "new",
        "named": f"{session.agent.name}/{session.external_id}",
        "last_event": 1,
        "grade": session.grades.filter(source="human").earliest("pk"),
        "answer": answer,
        "bulk": (answer.bulk,) if answer.bulk else None,
        "bulk_name": answer.bulk or None,
        "waiting": open_items[0].session,
        "beside": None,
        "free": open_items[1].session,
        "draft": models.Rubric.objects.filter(is_active=False).first(),
        "run": models.JudgeRun.objects.first(),
        "alarm": models.Alarm.objects.first(),
        "view": models.SavedView.objects.first(),
        "bandit": ("category",),
        "arm": ("category", category.get(name="infra").pk),
        "arm_other": category.get(name="social").pk,
        "lesson": Arm.objects.filter(bandit__name="lesson").first(),
        "model_text": "claude-sonnet-5-5",
        "project_pk": models.Project.objects.for_key("engine").pk,
        "app": ("grading",),
        "document": ("operate",),
    }
