"""How many queries a page, a call of the API or a job takes: so many at most, and no more with more rows.

Each is counted twice: on a site with a little of everything, and on the same site with several times as much.
"""

import datetime as dt
import json
from collections.abc import Callable

import pytest
import time_machine
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http.response import HttpResponseBase
from django.test import Client, override_settings
from django.urls import reverse

from bandit import policies
from bandit.models import Arm, ArmEvent, Bandit, Erasure
from bandit.reading import posterior_of
from bandit.selection import complete, select
from bandit.shadow import shadow
from bandit.silence import unheard
from bandit.whatif import HypotheticalReward, what_if_many
from grading import judging, monitoring, review, tasks
from grading.judging import lanes
from grading.judging.rubrics import plans, rejudge, versions
from grading.models import (
    Alarm,
    ApiToken,
    ArtifactRule,
    ImportedFile,
    LogImport,
    Rubric,
    SavedView,
    Session,
    Settlement,
)
from grading.models.judging import AttemptOutcome, JudgeRole
from grading.models.quota import QuotaState
from grading.models.review import Answer
from grading.monitoring.watch import _refresh_in_turn
from grading.review import answers, bulk, calibration, recalibration
from grading.review.progress import progress
from grading.review.unheard import VOICES
from grading.reward import lessons
from grading.vocabulary import Reason, Source
from tests import addresses, cast, world
from tests.addresses import MODELS, Kind, World
from tests.casts import intake as intake_cast
from tests.casts import judge as judge_cast
from tests.casts import lesson as lesson_cast
from tests.casts import quota as quota_cast
from tests.casts import review as review_cast
from tests.casts import scale as scale_cast
from tests.casts import shared_records

pytestmark = pytest.mark.django_db

NOW = cast.NOON + dt.timedelta(hours=2)
TIMES = 5
JOURNAL = "Submitted a pull request. " * 20

# The most that any of a page's addresses may take, those in `tests/addresses.py`.
PAGES = {
    "admin:index": 68,
    "admin:sessions": 35,
    "admin:session": 55,
    "admin:events": 7,
    "admin:categories": 41,
    "admin:categories_set": 72,
    "admin:raw": 11,
    "admin:find": 7,
    "admin:undo": 11,
    "admin:bandit": 76,
    "admin:lessons": 76,
    "admin:lesson": 39,
    "admin:arms": 18,
    "admin:arm": 23,
    "admin:models": 18,
    "admin:policy": 93,
    "admin:quota": 33,
    "admin:costs": 22,
    "admin:costs_csv": 7,
    "admin:quota_pause": 11,
    "admin:quota_policy": 12,
    "admin:rubrics": 41,
    "admin:rubric": 21,
    "admin:rubric_edit": 14,
    "admin:rubric_activate": 38,
    "admin:rubric_try": 53,
    "admin:feed": 10,
    "admin:feed_top": 10,
    "admin:runs": 11,
    "admin:run": 16,
    "admin:run_progress": 7,
    "admin:run_plan": 42,
    "admin:alarms": 14,
    "admin:alarm": 12,
    "admin:review_session": 52,
    "admin:sessions_csv": 12,
    "admin:sessions_jsonl": 12,
    "admin:review_effect": 83,
    "admin:progress": 13,
    "admin:calibration": 50,
    "admin:views": 11,
    "admin:view": 11,
    "admin:bulk": 14,
    "admin:history": 29,
    "admin:history_csv": 20,
    "admin:history_jsonl": 20,
    "admin:calibration_csv": 5,
    "admin:invite": 11,
    "admin:zone": 12,
    "admin:about": 21,
    "admin:document": 10,
    "admin:notices": 14,
    "admin:channel_add": 10,
    "admin:channel": 12,
    "admin:connect": 14,
    "admin:imports": 12,
    "admin:import": 14,
    "admin:samples": 13,
    "admin:words": 11,
    "admin:judge_key": 21,
    "admin:story": 61,
    "admin:settings": 16,
    "account_login": 2,
    "account_reauthenticate": 16,
    "invitation": 11,
    "mfa_index": 12,
    "admin:login": 3,
    "admin:password_change": 10,
    "admin:password_change_done": 10,
    "admin:jsi18n": 3,
    "admin:app_list": 10,
    "admin:auth_user_password_change": 11,
    "submit_session": 0,
    "live": 0,
    "ready": 9,
    "api:openapi-view": 0,
    "api:openapi-json": 0,
}
# The same of the admin pages of every model, by their last word.
MODEL_PAGES = {"add": 12, "change": 15, "changelist": 17, "delete": 37, "history": 14}


# ---- what is asked


def submit(letter: str, journal: str) -> Callable[[World], object]:
    """Hands in a session of ten steps under this letter."""

    def ask(site: World) -> object:
        said = {"session_id": "new", "category": "code", "ended_at": "2026-03-31T12:00:00Z"}
        log = shared_records.log("new", shared_records.steps(letter, 1, 10))
        files = {"transcript": log, "journal": journal.encode()}
        parts = {name: SimpleUploadedFile(name, data) for name, data in files.items()}
        return agent(site).post(reverse("api:submit_session"), {"metadata": json.dumps(said), **parts})

    return ask


def get(name: str, of: Callable[[World], object]) -> Callable[[World], object]:
    return lambda site: agent(site).get(reverse(name, args=[of(site)]))


def post(name: str, **said: object) -> Callable[[World], object]:
    return lambda site: agent(site).post(reverse(name), json.dumps(said), content_type="application/json")


def agent(site: World) -> Client:
    return Client(headers={"authorization": f"Bearer {site['secret']}"})


def browser() -> Client:
    client = Client()
    client.force_login(User.objects.get(username="olga"))
    return client


def preview_of_many(site: World) -> object:
    """What a correction of every session would do. Not of those with lessons: each arm named takes a query."""
    held = Settlement.objects.filter(session__lessons=None).order_by("revision")
    seen = dict(held.values_list("session", "revision"))
    said = {"answer": "grade", "value": ".85", "reason": "because", "preview": "yes", "session": list(seen)}
    return browser().post(reverse("admin:bulk"), {**said, **{f"seen-{pk}": revision for pk, revision in seen.items()}})


def what_if_all(site: World) -> object:
    said = {"arm": "code", "value": 0.5, "source": "human", "day": NOW.date()}
    changes = [HypotheticalReward(observation=each.observation, **said) for each in Session.objects.all()]
    return what_if_many("category", changes, NOW)


def shadow_of_a_short_memory(site: World) -> object:
    return shadow(policies.proposed(Bandit.objects.get(name="category"), {"half_life_days": 5.0}), NOW)


# Calls of the API, posts of a page, jobs, and what they and the pages read: so many queries at most, to ask this.
CALLS: dict[str, tuple[int, Callable[[World], object]]] = {
    "submit a session": (139, submit("z", "Found nothing.")),
    "submit a copy": (320, submit("a", JOURNAL)),
    "read a session": (13, get("api:read_session", lambda site: site["session_pk"])),
    "read a bandit": (16, get("api:read_bandit", lambda site: "category")),
    "select": (24, post("api:select", bandit="category", decision_id="d-9")),
    "assign": (35, post("api:assign", decision_id="d-9", lessons=["read-the-diff"])),
    "preview of a correction of many": (94, preview_of_many),
    "sweep": (349, lambda site: judging.sweep()),
    "prioritise": (25, lambda site: tasks.prioritise()),
    "at night": (332, lambda site: tasks.at_night()),
    "look at every session": (13, lambda site: monitoring.refresh()),
    "who is next": (4, lambda site: list(lanes.one_by_one(NOW, [JudgeRole.FIRST]))),
    "plan a run": (10, lambda site: plans.plan(Session.objects.all(), Rubric.objects.in_force())),
    "posterior": (8, lambda site: posterior_of("category", NOW)),
    "what if": (13, what_if_all),
    "shadow": (65, shadow_of_a_short_memory),
    "lessons": (23, lambda site: lessons.read(Bandit.objects.select_related("baseline").get(name="lesson"), NOW)),
    "calibrations": (7, lambda site: calibration.calibrations()),
    "progress": (3, lambda site: progress()),
    "recalibration": (11, lambda site: recalibration.proposal("category", NOW)),
    "unheard": (16, lambda site: unheard("category", NOW, sources=VOICES, source=Source.JUDGE, aside=frozenset())),
}


# ---- the site, with little and with much


def more(site: World, number: int) -> None:
    """One more, or some, of everything that a page lists, a call reads or a job goes through."""
    at = NOW - dt.timedelta(hours=number + 1)
    rita, olga = (User.objects.get(username=name) for name in ("rita", "olga"))
    session, bandit = site["session"], Bandit.objects.get(name="category")
    # Of the session that has pages of its own.
    cast.pull_request(session)
    cast.failed_check(session, f"ci-{number}")
    cast.grade(session, Source.JUDGE, number / 20, replicate=number + 1, detail="Solid [3].", rubric="4e1c", model="m")
    review.record_correction(session, olga, value=0.3 + number / 20, reason="again")
    answers.comment(session, rita, f"note {number}")
    # Chosen by the bandit, flagged, waiting for its judge and for a person.
    flagged = judge_cast.session(ended_at=at, title=f"Task {number}", model=f"model-{number}")
    cast.pull_request(flagged)
    cast.grade(flagged, Source.JOURNAL, 0.32)
    waiting = cast.open_judge_job(flagged, reason=Reason.QUOTA_EXHAUSTED)
    quota_cast.attempt(waiting, at, AttemptOutcome.DEFERRED, Reason.QUOTA_EXHAUSTED, http_status=400, detail="later")
    chosen = select(bandit="category", decision_id=f"more-{number}", supply=None, agent="bob", now=at)
    complete(chosen, observation=flagged.observation, executed_arm="cross-repo", now=at)
    review_cast.settled(flagged)
    # Judged, and answered by people.
    judged = [review_cast.judged(0.5, ended_at=at, category=arm) for arm in ("code", "infra", "cross-repo")]
    for each, person in zip(judged, (rita, olga, rita), strict=True):
        cast.blind(each, person, 0.4)
    answers.undo(review.submit(judged[0], rita, answer=Answer.GRADE, value=0.7, reason="seen"), rita, "a slip")
    answers.flag(judged[1], rita, "look at this")
    seen = {each.pk: each.settlements.latest("revision").revision for each in judged[1:]}
    bulk.submit(seen, olga, answer=Answer.GRADE, value=0.4, reason="alike", bulk=site["bulk_name"])
    quota_cast.judged(at)
    quota_cast.quota(QuotaState.OPEN, changed_at=at)
    quota_cast.quota(QuotaState.EXHAUSTED, changed_at=at + dt.timedelta(minutes=20))
    rejudge.start([each.pk for each in judged], Rubric.objects.active(), by=olga, why="again", estimated_usd=0.1)
    scale_cast.pairs(1, seed=number)
    scale_cast.put(olga, NOW)
    # Nothing speaks for them.
    for arm in ("news", "social"):
        scale_cast.fell_back(None, arm=arm)
    # Handed in with a log and a journal that several have sent.
    log = shared_records.log(f"copy-{number}", shared_records.steps("a", 1, 10))
    intake_cast.submit(f"copy-{number}", log, journal=JOURNAL)
    # Arms and lessons.
    for arm in (
        Arm.objects.create(bandit=bandit, name=f"arm-{number}"),
        site["bandit_arm"],
        Arm.objects.get(pk=site["arm"][1]),
    ):
        ArmEvent.objects.create(arm=arm, act="resumed", by="olga")
    lesson_cast.session(0.5, at=at, **{f"lesson_{number}": 0.5, "read_the_diff": None})
    # What people keep.
    version = bandit.policies.count() + 1
    policies.put_in_force("category", {"half_life_days": 15.0 + number}, version=version, by="olga")
    held = Rubric.objects.active()
    about = {"dimensions": held.dimensions, "bands": held.bands, "parent": held}
    versions.save(Rubric(title=f"Draft {number}", text=f"Be stern {number}.", **about), author=olga)
    SavedView.objects.create(owner=olga, page="sessions", name=f"view {number}", query="state=final", shared=True)
    Alarm.objects.create(rule=monitoring.IMPOSSIBLE_PAIR, about=str(number), detail="three in a week")
    Alarm.objects.create(rule="A2", about=str(number), detail="over", resolved_at=at)
    ApiToken.objects.issue(cast.agent(f"agent-{number}"), note="laptop", created_by=olga)
    ArtifactRule.objects.create(kind=f"poem-{number}", path_glob="*.txt", weight=0.1)
    Erasure.objects.create(who="olga", why="asked to")
    LogImport.objects.create(agent=cast.agent(f"agent-{number}"), by="olga", folders=["/logs"], counts={"there": 1})
    ImportedFile.objects.create(log_import=site["import"], path=f"/{number}", fate="imported", session=flagged)
    cast.person(f"person-{number}", "viewer")
    Group.objects.create(name=f"group-{number}")


@pytest.fixture(scope="module")
def counted(django_db_setup, django_db_blocker):
    """The queries of everything in the tables, by its name and by address: with few rows, and with many."""
    # A demo, so that its page is among them.
    demo = {"DEMO": True, "SIMULATED": True, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    judge = override_settings(ANTHROPIC_API_KEY=quota_cast.KEY, JUDGE_MODEL="claude-sonnet-5-5", **demo)
    with django_db_blocker.unblock(), time_machine.travel(NOW, tick=False), judge, cast.world():
        site = world.make()
        User.objects.filter(username="olga").update(is_superuser=True)
        more(site, 0)
        few = counts(site)
        for number in range(1, TIMES):
            more(site, number)
        return few, counts(site)


def counts(site: World) -> dict[str, dict[str, int]]:
    ContentType.objects.clear_cache()
    client = browser()
    found = {name: {"": queries(lambda ask=ask: ask(site))} for name, (_, ask) in CALLS.items()}
    for name in pages():
        found[name] = {url: queries(lambda url=url: client.get(url)) for url in addresses.urls(name, site)}
    return found


def queries(ask: Callable[[], object]) -> int:
    """How many it takes. What is written is undone."""
    asked = []

    def note(execute, sql, *rest):
        asked.append(sql)
        return execute(sql, *rest)

    _refresh_in_turn.cache_clear()  # it is the turn of alarms to be looked at
    with cast.world(), connection.execute_wrapper(note):
        response = ask()
        if isinstance(response, HttpResponseBase):
            assert response.status_code < 400, response.getvalue()[:300]
            response.getvalue()  # a download is read while it is sent
    return len(asked)


# ---- the tests


def pages() -> list[str]:
    return addresses.of_kind(Kind.PAGE, Kind.PART, Kind.DATA, Kind.FILE)


BOUNDS = {
    **PAGES,
    **{f"admin:{label}_{page}": most for label in MODELS for page, most in MODEL_PAGES.items()},
    **{name: most for name, (most, _) in CALLS.items()},
}


def test_every_page_has_a_bound():
    assert sorted(set(pages()) - set(BOUNDS)) == [], "add a line for each to PAGES, with what it takes now"
    assert sorted(set(PAGES) - set(pages())) == [], "there are no such pages any more: take them out of PAGES"


@pytest.mark.parametrize("name", [*pages(), *CALLS])
def test_it_takes_so_many_queries_at_most_and_no_more_with_more_rows(counted, name):
    few, many = (found[name] for found in counted)
    assert max(*few.values(), *many.values()) <= BOUNDS[name]
    # Where many copies have raised an alarm, one more of them is one more in what it says.
    told = 1 if name == "submit a copy" else 0
    assert {url: (few[url], number) for url, number in many.items() if number > few[url] + told} == {}
