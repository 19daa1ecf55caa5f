"""Databases that older versions of the site made go on under this one: nothing of what they hold changes.

How they were made: `tests/data/databases/make.py`. Each is named by its last migration of `grading`.
"""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import F
from django.test import Client, override_settings
from django.urls import reverse

from bandit.audit import audit
from bandit.models import Arm, LedgerEntry, PolicyVersion
from grading import models, tasks
from tests import addresses
from tests.addresses import ADDRESSES, Kind, World
from tests.databases import NAMES, Schema, database, restore, schema

pytestmark = [pytest.mark.slow, pytest.mark.database]

# Rows of money, so to speak: what a reward was, is made of, and how it was drawn.
KEPT = {
    "bandit": ("LedgerEntry", "Bucket", "Selection", "Erasure", "Grader"),
    "grading": ("Grade", "Settlement", "Evidence", "ReviewAnswer", "JudgeAttempt", "SessionShares"),
}
ANSWERS = {Kind.PAGE: 200, Kind.PART: 200, Kind.DATA: 200, Kind.FILE: 200, Kind.MOVED: 302}
NEWER = {
    "category_change",
    "channel",
    "import",
    "invitation",
    "told_file",
    "lesson",
    "bandit_armevent",
    "bandit_assignment",
    "bandit_calibrationversion",
}

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSite:
    """A site after its migrations: what an API call answered before them, and the rows it had.

    `policies` of each bandit, as far as that version had them in rows.
    """

    said: dict[str, Any]
    rows: Rows
    policies: Rows


@pytest.fixture(scope="module", params=NAMES)
def old(request, tmp_path_factory, django_db_blocker) -> Iterator[OldSite]:
    folder = tmp_path_factory.mktemp(request.param)
    with django_db_blocker.unblock(), database(request.param, folder):
        applied = restore(request.param, folder)
        then = MigrationLoader(connection, replace_migrations=False).project_state(applied).apps
        rows, policies = kept(then), policies_of(then)
        call_command("migrate", verbosity=0)
        with override_settings(MEDIA_ROOT=folder / "evidence"):
            yield OldSite(said=json.loads((folder / "said.json").read_text()), rows=rows, policies=policies)


@pytest.fixture(scope="module")
def new(tmp_path_factory, django_db_blocker) -> Schema:
    """The schema of a new site."""
    with django_db_blocker.unblock(), database("new", tmp_path_factory.mktemp("new")):
        call_command("migrate", verbosity=0)
        return schema()


def kept(then: Any) -> Rows:
    """The rows that matter, read as the version read them that had made them."""
    return {f"{label}.{name}": rows_of(then, label, name) for label, names in KEPT.items() for name in names}


def policies_of(then: Any) -> Rows:
    names = dict(then.get_model("bandit", "Bandit").objects.values_list("pk", "name"))
    found: Rows = {name: [] for name in names.values()}
    for row in rows_of(then, "bandit", "PolicyVersion"):
        found[names[row["bandit_id"]]].append(row)
    return found


def rows_of(then: Any, label: str, name: str) -> list[dict[str, Any]]:
    """None where that version had no such rows."""
    try:
        model = then.get_model(label, name)
    except LookupError:
        return []
    fields = [field.attname for field in model._meta.concrete_fields]
    return list(model.objects.order_by("pk").values(*fields))


def now_of(rows: Rows) -> Rows:
    """The same rows and fields as they are now; what rows say of their policy stands in a row of its own now."""
    found = {label: apps.get_model(label).objects for label in rows}
    found["bandit.LedgerEntry"], _names = LedgerEntry.objects.columns()
    found["grading.Settlement"] = models.Settlement.objects.annotate(policy_version=F("policy__text"))
    return {label: list(found[label].order_by("pk").values(*old[0])) if old else [] for label, old in rows.items()}


def test_nothing_that_was_graded_or_rewarded_changes(old):
    assert now_of(old.rows) == old.rows


def test_the_tables_are_those_of_a_new_site(new, old):
    assert schema() == new


def test_the_bandits_believe_what_they_believed(old):
    bob = token_of("bob")
    with time_machine.travel(dt.datetime.fromisoformat(old.said["now"]), tick=False):
        now = {name: bob.get(f"/api/v1/bandits/{name}").json() for name in old.said["bandits"]}
    belief = ("arm", "alpha", "beta", "mean")
    for name, then in old.said["bandits"].items():
        before, after = (
            {arm["arm"]: [arm[field] for field in belief] for arm in each["arms"]} for each in (then, now[name])
        )
        assert after == before


def test_its_lessons_are_held_out_as_they_were(old):
    """A new holdout is a policy that somebody accepts; a bandit that came with the upgrade keeps what it began with."""
    assert_no_policy_changed(old, "lesson", {"holdout": 0.1, "holdout_decided": None})


def test_what_was_drawn_is_not_drawn_again(old):
    """A decision that was asked for is answered as it was; who was in the random slice, and who was not, stays so."""
    drawn = {row["decision_id"]: row["arm_id"] for row in old.rows["bandit.Selection"] if row["agent"] == "bob"}
    assert drawn
    bob = token_of("bob")
    for decision, arm in drawn.items():
        asked = {"decision_id": decision, "bandit": "category"}
        answer = bob.post("/api/v1/selections", json.dumps(asked), content_type="application/json").json()
        assert (answer["arm"], arm) == (Arm.objects.get(pk=arm).name, arm)
    if old.rows["grading.SessionShares"]:
        return  # they were rows already, and no row changes
    in_queue = dict(models.ReviewItem.objects.values_list("session", "slice_probability"))
    shares = models.SessionShares.objects.filter(key_id="")
    assert {row.session_id: row.review_slice for row in shares if row.session_id in in_queue} == in_queue
    assert not models.Session.objects.filter(shares=None).exists()


def test_its_limits_are_those_that_all_agents_share(old):
    """Limits of each agent are a policy that somebody accepts."""
    shared = {"consumption_per_agent": None, "consumption_per_day": 2, "probation_per_agent": None}
    shared |= {"probation_per_day": 1, "open_decisions": None, "agent_cap": None}
    assert_no_policy_changed(old, "category", shared)


def assert_no_policy_changed(old: OldSite, bandit: str, without: dict[str, Any]) -> None:
    """The policies say what they said; and where that version did not know of something, what it did `without`."""
    then = old.policies.get(bandit) or [{}]
    wanted = {tuple(row.get(name, value) for name, value in without.items()) for row in then}
    assert set(PolicyVersion.objects.filter(bandit__name=bandit).values_list(*without)) == wanted


def token_of(agent: str) -> Client:
    _row, secret = models.ApiToken.objects.issue(models.Agent.objects.get(name=agent))
    return Client(headers={"Authorization": f"Bearer {secret}"})


def test_every_page_opens(old, sim):
    client = olga()
    rows = found()
    about = {name: ADDRESSES[name].of for name in addresses.of_kind(*ANSWERS)}
    # Older versions had no lessons, no calibrations, no events of arms and so on: there is no row to open a page of.
    missing = {word for word in about.values() if word and rows.get(word) is None}
    assert missing <= NEWER, "no row for these: say in `found` which it is"
    wrong = {}
    for name in (name for name, word in about.items() if word not in missing):
        for url in addresses.urls(name, World(rows=rows)):
            answer = client.get(url)
            # The saved view is hers; and nobody has judged what waits since then.
            told = {"admin:view": "", "ready": "503"}.get(name, ADDRESSES[name].inside)
            if answer.status_code != (int(told) if told else ANSWERS[ADDRESSES[name].kind]):
                wrong[url] = answer.status_code
            answer.close()
    assert wrong == {}


def olga() -> Client:
    """She owns the saved view that was made then, and now the site too."""
    client = Client(raise_request_exception=False)
    User.objects.filter(username="olga").update(is_superuser=True)
    client.force_login(User.objects.get(username="olga"))
    return client


def found() -> dict[str, Any]:
    """The rows that `tests.world` made then, by the words that addresses have for them."""
    session = models.Session.objects.get(title="Add a retry guard")
    other = models.Session.objects.get(agent__name="alice")
    answer = models.ReviewAnswer.objects.get(session=other)
    open_items = models.ReviewItem.objects.filter(wanted=2).order_by("pk")
    category, lesson = (Arm.objects.filter(bandit__name=name).order_by("pk") for name in ("category", "lesson"))
    rows: dict[str, Any] = {
        label.lower().replace(".", "_"): apps.get_model(label).objects.first()
        for label in ("auth.Group", "auth.User", *(name.replace("_", ".") for name in addresses.MODELS))
    }
    return rows | {
        "session": session,
        "session_pk": session.pk,
        "own_id": (session.external_id,),
        "rule_pk": "new",
        "named": f"bob/{session.external_id}",
        "last_event": 1,
        "grade": session.grades.filter(source="human").earliest("pk"),
        "answer": answer,
        "bulk": (answer.bulk,),
        "bulk_name": answer.bulk,
        "waiting": open_items[0].session,
        "beside": models.ReviewAnswer.objects.filter(session=open_items[1].session).latest("pk"),
        "free": open_items[2].session,
        "draft": models.Rubric.objects.get(title="Stern"),
        "run": models.JudgeRun.objects.first(),
        "alarm": models.Alarm.objects.first(),
        "view": models.SavedView.objects.first(),
        "bandit": ("category",),
        "arm": ("category", category.get(name="news").pk),
        "arm_other": category.get(name="social").pk,
        "lesson": lesson.first(),
        "model_text": "claude-opus-4-20250514",
        "app": ("grading",),
        "document": ("operate",),
    }


def test_judging_goes_on_where_it_stood(old, sim, redis_url):
    """A call that was under way is made again, what waited for the quota is asked, and the ledger adds up."""
    jobs = models.JudgeJob.objects
    waiting = set(jobs.filter(state__in=("queued", "leased")).values_list("pk", flat=True))
    assert jobs.filter(state="leased").exists()
    entries = list(LedgerEntry.objects.order_by("pk").values())
    olga().post(reverse("admin:quota_probe"))
    for _attempt in range(3):
        for task in (tasks.sweep, tasks.judge, tasks.judge_again, tasks.prioritise, tasks.name_models, tasks.at_night):
            task()
    assert set(jobs.filter(pk__in=waiting).values_list("state", flat=True)) == {"done"}
    assert list(LedgerEntry.objects.order_by("pk").values())[: len(entries)] == entries
    assert LedgerEntry.objects.count() > len(entries)
    assert audit() == []
