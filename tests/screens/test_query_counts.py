"""A page, a call of the API or a job takes no more queries when there are more rows.

Each is counted twice: on a site with a little of everything, and on the same site with more of it.
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
from bandit.ledger import Credit, GraderKey
from bandit.models import Arm, ArmEvent, Bandit, Erasure
from bandit.reading import posterior_of
from bandit.selection import complete, select
from bandit.silence import unheard_arms
from bandit.whatif import HypotheticalReward, what_if_changed
from grading import tasks
from grading.judging import ordering, sweeper
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
from grading.monitoring.sessions import impossible_pair
from grading.monitoring.watch import refresh_alarms, watch
from grading.review import answers, bulk, calibration, corrections, notes, unheard
from grading.review.progress import progress
from grading.review.unheard import GRADING_SOURCES
from grading.reward import calibrating, lessons
from grading.vocabulary import Reason, Source
from tests import addresses, caches, world
from tests.addresses import Kind, World
from tests.casts import calibration as calibration_cast
from tests.casts import judge as judge_cast
from tests.casts import lesson as lesson_cast
from tests.casts import quota as quota_cast
from tests.casts import review as review_cast
from tests.casts import shared_records
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db

NOW = NOON + dt.timedelta(hours=2)
# Some rules ask more once there are three of something in a week, or five.
FEW, MANY = 5, 8
JOURNAL = "Submitted a pull request. " * 20


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
    credit = Credit(value=0.5, grader=GraderKey(source="human"))
    changes = [
        HypotheticalReward(observation=each.observation, arm="code", day=NOW.date(), credit=credit)
        for each in Session.objects.all()
    ]
    return what_if_changed("category", {"category": changes}, NOW)


# Calls of the API, posts of a page, jobs, and what they and the pages read.
CALLS: dict[str, Callable[[World], object]] = {
    "submit a session": submit("z", "Found nothing."),
    "submit a copy": submit("a", JOURNAL),
    "read a session": get("api:read_session", lambda site: site["session_pk"]),
    "read a bandit": get("api:read_bandit", lambda site: "category"),
    "select": post("api:select", bandit="category", decision_id="d-9"),
    "assign": post("api:assign", decision_id="d-9", lessons=["read-the-diff"]),
    "preview of a correction of many": preview_of_many,
    "sweep": lambda site: sweeper.sweep(),
    "prioritise": lambda site: tasks.prioritise(),
    "at night": lambda site: tasks.at_night(),
    "look at every session": lambda site: refresh_alarms(),
    "who is next": lambda site: list(ordering.single_call_jobs(NOW, [JudgeRole.FIRST])),
    "plan a run": lambda site: plans.plan(Session.objects.all(), Rubric.objects.in_force()),
    "posterior": lambda site: posterior_of("category", NOW),
    "what if": what_if_all,
    "lessons": lambda site: lessons.load_lessons(Bandit.objects.select_related("baseline").get(name="lesson"), NOW),
    "calibrations": lambda site: calibration.calibrations(),
    "progress": lambda site: progress(),
    "calibration proposal": lambda site: calibrating.proposal("category", NOW),
    "unheard": lambda site: unheard_arms("category", NOW, sources=GRADING_SOURCES, excluded=frozenset()),
}


# ---- the site, with little and with much


def more(site: World, number: int) -> None:
    """One more, or some, of everything that a page lists, a call reads or a job goes through."""
    at = NOW - dt.timedelta(hours=number + 1)
    rita, olga = (User.objects.get(username=name) for name in ("rita", "olga"))
    session, bandit = site["session"], Bandit.objects.get(name="category")
    # Of the session that has pages of its own.
    Site().on(session).with_pull_request()
    Site().on(session).with_failed_check(f"ci-{number}")
    Site().on(session).graded(
        Source.JUDGE, number / 20, replicate=number + 1, detail="Solid [3].", rubric="4e1c", model="m"
    )
    corrections.record_correction(session, olga, value=0.3 + number / 20, reason="again")
    notes.comment(session, rita, f"note {number}")
    # Chosen by the bandit, flagged, waiting for its judge and for a person.
    flagged = judge_cast.session(ended_at=at, title=f"Task {number}", model=f"model-{number}")
    Site().on(flagged).with_pull_request()
    Site().on(flagged).graded(Source.JOURNAL, 0.32)
    waiting = Site().on(flagged).with_judge_job(reason=Reason.QUOTA_EXHAUSTED).job
    quota_cast.attempt(waiting, at, AttemptOutcome.DEFERRED, Reason.QUOTA_EXHAUSTED, http_status=400, detail="later")
    chosen = select(bandit="category", decision_id=f"more-{number}", supply=None, agent="bob", now=at)
    complete(chosen, observation=flagged.observation, executed_arm="cross-repo", now=at)
    review_cast.settled(flagged)
    # Judged, and answered by people.
    judged = [review_cast.judged(0.5, ended_at=at, category=arm) for arm in ("code", "infra", "cross-repo")]
    for each, person in zip(judged, (rita, olga, rita), strict=True):
        Site().on(each).answered_blind(person, 0.4)
    answers.undo(answers.submit(judged[0], rita, answer=Answer.GRADE, value=0.7, reason="seen"), rita, "a slip")
    notes.flag(judged[1], rita, "look at this")
    seen = {each.pk: each.settlements.latest("revision").revision for each in judged[1:]}
    bulk.submit(seen, olga, answer=Answer.GRADE, value=0.4, reason="alike", bulk=site["bulk_name"])
    quota_cast.judged(at)
    quota_cast.quota(QuotaState.OPEN, changed_at=at)
    quota_cast.quota(QuotaState.EXHAUSTED, changed_at=at + dt.timedelta(minutes=20))
    rejudge.start([each.pk for each in judged], Rubric.objects.active(), by=olga, why="again", estimated_usd=0.1)
    calibration_cast.pairs(1, seed=number)
    calibration_cast.put(olga, NOW)
    # Nothing speaks for them.
    for arm in ("news", "social"):
        calibration_cast.fell_back(None, arm=arm)
    # Handed in with a log and a journal that several have sent.
    log = shared_records.log(f"copy-{number}", shared_records.steps("a", 1, 10))
    Site().upload(f"copy-{number}", log, journal=JOURNAL, category="code")
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
    policies.set_policy("category", {"half_life_days": 15.0 + number}, version=version, by="olga")
    held = Rubric.objects.active()
    about = {"dimensions": held.dimensions, "bands": held.bands, "parent": held}
    versions.save(Rubric(title=f"Draft {number}", text=f"Be stern {number}.", **about), author=olga)
    SavedView.objects.create(owner=olga, page="sessions", name=f"view {number}", query="state=final", shared=True)
    Alarm.objects.create(rule=impossible_pair.id, about=str(number), detail="three in a week")
    Alarm.objects.create(rule="A2", about=str(number), detail="over", resolved_at=at)
    ApiToken.objects.issue(Site().agent(f"agent-{number}"), note="laptop", created_by=olga)
    ArtifactRule.objects.create(kind=f"poem-{number}", path_glob="*.txt", weight=0.1)
    Erasure.objects.create(who="olga", why="asked to")
    LogImport.objects.create(agent=Site().agent(f"agent-{number}"), by="olga", folders=["/logs"], counts={"there": 1})
    ImportedFile.objects.create(log_import=site["import"], path=f"/{number}", fate="imported", session=flagged)
    Site().person(f"person-{number}", "viewer")
    Group.objects.create(name=f"group-{number}")


def counts(site: World, numbers: range) -> dict[str, int]:
    """With so much more, the queries of every call and every page, by the name of the call and the page's address."""
    for number in numbers:
        more(site, number)
    # What the rules find is on record before anything is counted.
    watch()
    unheard.flag_unheard(NOW)
    ContentType.objects.clear_cache()
    client = browser()
    pages = addresses.of_kind(Kind.PAGE, Kind.PART, Kind.DATA, Kind.FILE)
    urls = [url for name in pages if name != "admin:trial" for url in addresses.urls(name, site)]
    return {name: queries(lambda ask=ask: ask(site)) for name, ask in CALLS.items()} | {
        url: queries(lambda url=url: client.get(url)) for url in urls
    }


def queries(ask: Callable[[], object]) -> int:
    """How many it takes in a process that has just started. What is written is undone."""
    statements = []

    def note(execute, sql, *rest):
        statements.append(sql)
        return execute(sql, *rest)

    caches.drop_all()
    with Site().rolled_back(), connection.execute_wrapper(note):
        response = ask()
        if isinstance(response, HttpResponseBase):
            assert response.status_code < 400, response.getvalue()[:300]
            response.getvalue()  # a download is read while it is sent
    return len(statements)


def test_nothing_takes_more_queries_with_more_rows():
    # A demo, so that its page is among them.
    demo = {"DEMO": True, "SIMULATED": True, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    judge = override_settings(ANTHROPIC_API_KEY=quota_cast.KEY, JUDGE_MODEL="claude-sonnet-5-5", **demo)
    with time_machine.travel(NOW, tick=False), judge:
        site = world.make()
        User.objects.filter(username="olga").update(is_superuser=True)
        few = counts(site, range(FEW))
        many = counts(site, range(FEW, MANY))
    assert {name: (few[name], number) for name, number in many.items() if number > few[name]} == {}
