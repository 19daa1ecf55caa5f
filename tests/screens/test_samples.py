"""Samples are in no figure: a site with them says what it says without, wherever it counts, charts, lists or warns.

What is compared are whole pages, exports and alarms, so that a figure that comes later is compared as well.
"""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from bandit import audit
from bandit.models import Bucket, LedgerEntry
from grading import tasks
from grading.agent import samples
from grading.evidence import ownership, store
from grading.health import readiness
from grading.judging import enqueuing, sweeper
from grading.judging.rubrics import plans
from grading.models import (
    Agent,
    Alarm,
    ApiToken,
    Flag,
    JudgeJob,
    ReviewItem,
    Rubric,
    Session,
    SessionLog,
)
from grading.models.review import Answer, ItemState, Place
from grading.models.sessions import Whose, yours
from grading.monitoring import pairs
from grading.monitoring.watch import refresh_alarms
from grading.review import answers, exported, impact, queue, trust
from grading.review.calibration import verdict_sums
from grading.review.filters import waiting
from grading.review.progress import progress
from grading.reward import rewards, state
from grading.roles import OPERATOR
from grading.screens.frame import site_now
from grading.vocabulary import Outcome, Reason, Source
from tests.casts import judge as judge_cast
from tests.casts import quota as quota_cast
from tests.casts.page import flat
from tests.site import Site

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 4, 6, 12, tzinfo=dt.UTC)
GRADER = {"model": "claude-sonnet-5-5", "route": "api", "rubric": "a" * 64, "version": "judge/1"}
PAGES = (
    "/",
    "/sessions/",
    "/sessions/?behind=holds",
    "/sessions/?behind=waiting",
    "/sessions/?sort=best",
    "/sessions/?flagged=yes",
    "/sessions/?q=S",
    "/sessions.csv",
    "/calibration/",
    "/calibration.csv",
    "/review/progress/",
    "/bandits/category/",
    "/bandits/harness/",
    "/bandits/lesson/",
    "/quota/",
    "/alarms/",
    "/categories/",
    "/bandits/model/arms/",
    "/bandits/model/unnamed/",
    "/quota/costs/",
    "/rubrics/",
    "/runs/plan/",
)
# What every page has of its own: tokens, the marks by which a page learns that something is new, which may be a sample.
PASSING = re.compile(r'name="csrfmiddlewaretoken" value="\w+"|data-live-\w+="[^"]*"|name="(opened|name)" value="[^"]*"')


@pytest.fixture(autouse=True)
def at_noon(db, settings):
    settings.ANTHROPIC_API_KEY, settings.REVIEW_SLICE = judge_cast.KEY, 1.0
    with time_machine.travel(NOW, tick=False):
        quota_cast.quota()
        yield


@pytest.fixture
def page(client):
    client.force_login(User.objects.create_superuser("otto"))

    def get(path):
        reply = client.get(path, follow=True)
        assert reply.status_code == 200, path
        return reply.getvalue().decode() if reply.streaming else flat(reply)

    return get


def of_everything(site, people, *, agent: Agent, is_sample: bool) -> list[Session]:
    """Sessions of which each figure has one: judged, flagged, waiting, parked, graded blind, assigned, nameless."""
    rita, olga = people
    made = []

    def session(number, **fields):
        at = NOW - dt.timedelta(hours=2 + number)
        made.append(site.session(agent=agent, is_sample=is_sample, ended_at=at, received_at=at, **fields).session)
        return made[-1]

    for number, arm in enumerate(("code", "code", "infra", "cross-repo")):
        judged = session(number, category=arm, cost_usd=0.5)
        site.on(judged).graded(Source.TRAJECTORY, 0.6, version="trajectory/2", view="full").judged(
            0.7, **GRADER
        ).recheck()
        site.on(judged).answered_blind(rita, 0.4, place=Place.IMPACT, settlement=rewards.live(judged))
        ReviewItem.objects.filter(session=judged).update(state=ItemState.DONE, closed_at=NOW, drawn_at=NOW)
    for number in range(4, 8):
        flagged = session(number, category="content")
        site.on(flagged).with_pull_request().graded(Source.JOURNAL, 0.32).with_judge_job(
            reason=Reason.AWAITING_JUDGE, created_at=NOW - dt.timedelta(days=3)
        )
        Flag.objects.create(session=flagged, rule="A34", detail="another agent's", raised_at=NOW)
        site.on(flagged).recheck()
    ReviewItem.objects.filter(session=made[-1]).update(assigned_to=olga, entered_at=NOW - dt.timedelta(days=5))
    parked = session(8)
    site.on(parked).with_judge_job(reason=Reason.UNREADABLE, parked_at=NOW, attempts=9).recheck()
    site.on(session(9, outcome=Outcome.INFRASTRUCTURE, outcome_reason="login expired")).recheck()
    site.on(session(10, category=None, model="claude-new-7")).recheck()
    for number in range(11, 24):
        # A row of sessions of one arm of which nothing is known: a silence.
        site.on(session(number, category="social")).recheck()
    return made


def of_samples(site, people) -> list[Session]:
    """As an earlier version left them: judged, waiting, flagged, answered."""
    agent, _ = Agent.objects.get_or_create(name=samples.AGENT, defaults={"is_sample": True})
    made = of_everything(site, people, agent=agent, is_sample=True)
    # The latest verdict of all is one of theirs, by another grader.
    site.on(made[0]).judged(0.1, **{**GRADER, "model": "claude-of-samples"}, parallel=False, replicate=1)
    site.on(made[0]).recheck()
    return made


def said() -> dict[str, object]:
    """What the services say, whichever page shows it."""
    refresh_alarms()
    tasks.at_night()
    now, listed = timezone.now(), Session.objects.yours()
    figures = readiness.metrics(now, {"first": ("a-judge", True)})
    return {
        "alarms": sorted(Alarm.objects.filter(resolved_at=None).values_list("rule", "about", "detail")),
        "top bar": site_now().counts,
        "trust": trust.trust(now),
        "queue": queue.count(),
        "judged": {str(key): sums for key, sums in verdict_sums().items()},
        "pairs": pairs.load_verdicts(now),
        "people": progress(),
        "corrections": vars(impact.corrections()),
        "exported pairs": list(exported.pair_records()),
        "asked": plans.plan(listed, Rubric.objects.in_force()),
        "metrics": [line for line in figures.splitlines() if b"disk" not in line],
        "bandits": audit.fingerprint(),
        "first of the queue": list(waiting(None).values_list("pk", "impact")),
        "turns": list(ReviewItem.objects.filter(yours()).values_list("pk", "drawn_at")),
        "states": [mismatch for _count, mismatches in state.rebuild() for mismatch in mismatches],
    }


def pages(page) -> dict[str, str]:
    return {path: PASSING.sub("", page(path)) for path in PAGES}


@pytest.fixture
def people(site, rita):
    return rita, site.person("olga", OPERATOR)


@pytest.fixture
def mixed(site, people):
    return of_everything(site, people, agent=site.agent(), is_sample=False)


def test_a_site_with_samples_says_what_it_says_without_them(site, mixed, people, page):
    services, shown = said(), pages(page)
    assert services["alarms"]
    assert services["queue"].open > 4
    of_samples(site, people)
    assert said() == services
    again = pages(page)
    assert [path for path in PAGES if again[path] != shown[path]] == []
    samples.remove("otto")
    assert said() == services


def test_a_site_with_nothing_but_samples_counts_nothing(site, people, page):
    services = said()
    of_samples(site, people)
    assert said() == services
    assert services["alarms"] == []
    assert services["top bar"] == {"Review": 0, "Alarms": 0}


# --- while nothing else has come -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(django_db_setup, django_db_blocker) -> Iterator[list[int]]:
    """Loads the samples, which takes a second, for the tests from here to the end of the module."""
    settings = override_settings(ANTHROPIC_API_KEY=judge_cast.KEY, REVIEW_SLICE=1.0)
    with django_db_blocker.unblock(), Site().rolled_back():
        with settings, time_machine.travel(NOW, tick=False):
            made = [receipt.session.pk for receipt in samples.load(NOW)]
        yield made


@pytest.fixture
def loaded(keys, at_noon) -> list[Session]:
    return [Session.objects.get(pk=key) for key in keys]


def test_pages_show_what_samples_come_to_until_the_first_session_is_there(site, loaded, page):
    sample = page(loaded[0].get_absolute_url())
    assert "This is a sample session that came with the site" in sample
    assert 'href="/samples/">Remove all samples' in sample
    figures = trust.trust(NOW, Whose.SAMPLES)
    dashboard = page("/")
    assert "What this page will show" in dashboard
    assert f"{figures.coverage.part} of {figures.coverage.whole} sessions have a grade" in dashboard
    bandit = page("/bandits/category/")
    assert "14 samples, no sessions of your own yet" in bandit
    # What it would believe is what it believes of the same sessions.
    before = audit.fingerprint()
    with site.rolled_back():
        Session.objects.update(is_sample=False)
        for session in Session.objects.all():
            rewards.settle(session)
        real = page("/bandits/category/")
    means = re.findall(r'<div class="name">(\S+)</div>.*?<div class="line-1">(\S+)</div>', bandit)[:8]
    assert len(means) == 8
    assert dict(means) == dict(re.findall(r'<div class="name">(\S+)</div>.*?<div class="line-1">(\S+)</div>', real))
    assert audit.fingerprint() == before
    assert "Judging 13 of the 14 samples would take 13 calls" in page("/quota/")
    with site.rolled_back():
        Session.objects.update(outcome=Outcome.INFRASTRUCTURE, outcome_reason="login expired")
        assert "None of the 14 samples is left to judge." in page("/quota/")
    listed = page("/sessions/")
    assert listed.count('class="sampletag">sample<') == 14
    assert "None of these sessions is yours" in listed
    waiting = queue.count(whose=Whose.SAMPLES).open
    assert f"{waiting} sample sessions are ready for you to practise on" in page("/review/")
    site.session(ended_at=NOW - dt.timedelta(hours=1)).judged(0.5).recheck()
    for path in ("/", "/bandits/category/", "/quota/", "/sessions/", "/review/"):
        shown = page(path)
        assert "sampletag" not in shown, path
        assert "Sample data" not in shown


def test_a_grade_of_a_sample_moves_the_preview_bandit_and_nothing_else(site, loaded, mixed, page, client):
    """The desk shows the effect on a bandit of the samples only; no figure, bandit, export or API answer moves."""
    sample = next(each for each in loaded if each.title == "Extract a function")
    header = {"authorization": f"Bearer {ApiToken.objects.issue(site.agent())[1]}"}

    def figures() -> list[object]:
        services, shown = said(), pages(page)
        api = Client().get("/api/v1/bandits/category", headers=header)
        assert api.status_code == 200
        return [services, shown, api.content, Bucket.objects.count(), LedgerEntry.objects.count()]

    before, beliefs = figures(), []
    for value in (0.1, 0.9):
        reply = client.get(f"/review/{sample.pk}/effect/", {"value": value})
        assert "samples only" in (shown := flat(reply))
        assert "neither a category nor a harness" not in shown
        (move, _curves), *_others = reply.context["effect"].arms
        assert move.arm == "code"
        beliefs.append(move)
        answers.submit(sample, User.objects.get(username="otto"), answer=Answer.GRADE, value=value, reason="tried")
    assert beliefs[0].mean_after < beliefs[0].mean_before
    assert beliefs[1].mean_before == beliefs[0].mean_after < beliefs[1].mean_after
    assert figures() == before


def test_the_effect_on_a_sample_without_arms_says_that_it_is_a_sample(site, operator):
    sample = site.session(None, harness=None, is_sample=True).settle()
    shown = flat(operator.get(f"/review/{sample.pk}/effect/", {"value": ".8"}))
    assert "This is a sample session, so no bandit learns from it." in shown


def test_the_preview_bandit_shows_what_was_graded_until_the_first_session_is_there(site, loaded, page, rita):
    def mean() -> str:
        shown = page("/bandits/category/")
        assert "Preview bandit" in shown
        assert "samples only" in shown
        return re.search(r'<div class="name">code</div>.*?<div class="line-1">(\S+)</div>', shown)[1]

    before = mean()
    sample = next(each for each in loaded if each.title == "Extract a function")
    answers.submit(sample, rita, answer=Answer.GRADE, value=0.95, reason="tried")
    assert mean() > before
    site.session(ended_at=NOW).judged(0.5).settle()
    assert "Preview bandit" not in page("/bandits/category/")


def test_the_first_steps_lead_to_a_sample_with_a_real_task_and_say_that_it_was_tried(site, loaded, operator):
    """The steps stay undone: they are about the site's own sessions."""

    def steps() -> list[Any]:
        return list(operator.get("/").context["checklist"].steps[3:])

    grades, move = steps()
    assert (grades.button, grades.done, move.done) == ("Try it on a sample", False, False)
    assert "Extract this shared pattern into a" in flat(operator.get(grades.url, {"tab": "transcript"}, follow=True))
    for sample in loaded:
        log = sample.evidence.filter(kind="transcript").first()
        assert log is None or "test prompt" not in store.open(log).read().decode()
    otto = User.objects.get(username="otto")
    sample = Session.objects.get(title="Extract a function")
    answers.submit(sample, otto, answer=Answer.GRADE, value=0.8, reason="tried")
    grades, move = steps()
    assert (grades.aside, move.aside) == ("tried on 1 sample", "tried on 1 sample")
    assert (grades.done, move.done, grades.url) == (False, False, "/review/?samples=only")
    site.session(ended_at=NOW).graded(Source.HUMAN, 0.5, author=otto).settle()
    grades, move = steps()
    assert (grades.aside, grades.button, move.done) == ("1 of 3", "Review", True)


def test_samples_are_listed_where_they_are_asked_for_and_their_queue_is_worked_apart(loaded, mixed, page, rita):
    for model, path in ((Session, "pk"), (ReviewItem, "session"), (Flag, "session")):
        both = [set(model.objects.filter(whose.rows(path)).values_list("pk", flat=True)) for whose in Whose]
        assert all(both)
        assert not both[0] & both[1]
        assert len(both[0] | both[1]) == model.objects.count()
    assert "Read the morning" not in page("/sessions/")
    listed = page("/sessions/?samples=only")
    assert "Read the morning" in listed
    assert listed.count('class="sampletag">sample<') == 14
    assert "Read the morning" not in page("/sessions.csv")
    assert "Read the morning" in page("/sessions.csv?samples=only")
    browser = Client()
    browser.force_login(rita)
    ours = set(Session.objects.yours().values_list("pk", flat=True))
    first = browser.get(f"/review/?{urlencode({'samples': 'only'})}")
    assert int(first.headers["Location"].split("/")[2]) not in ours
    assert int(browser.get("/review/").headers["Location"].split("/")[2]) in ours


def test_samples_loaded_by_a_version_that_had_them_judged_are_not_judged_once_a_key_is_there(site, settings):
    site.session(is_sample=True).with_work().judged(None, Reason.NOT_CONFIGURED).settle()
    enqueuing.catch_up()
    assert not JudgeJob.objects.exists()


def test_nobody_pays_for_a_sample_unasked_and_none_takes_a_pull_request_from_a_session_of_yours(site, loaded):
    assert not JudgeJob.objects.exists()
    enqueuing.catch_up()
    sweeper.sweep()
    assert not JudgeJob.objects.exists()
    verdict = loaded[-1].grades.filter(source=Source.JUDGE).latest("pk")
    assert verdict.reason == Reason.DECLINED
    sample = next(each for each in loaded if each.artifacts.filter(kind="pull_request", owned_by=None).exists())
    thing = sample.artifacts.filter(kind="pull_request", owned_by=None).first()
    own = site.session(ended_at=NOW).session
    mine = type(thing)(
        session=own, kind=thing.kind, key=thing.key, lookup=thing.lookup, origin=thing.origin, witness=thing.witness
    )
    ownership.decide_owners({thing.lookup}, new=[mine])
    thing.refresh_from_db()
    mine.refresh_from_db()
    assert (mine.owned_by_id, thing.owned_by_id) == (None, own.pk)


def test_the_logs_of_samples_count_for_sessions_of_yours_and_stay_the_samples_too(site, loaded):
    """Whoever imports the very logs that the samples were made of has done that work."""
    logs = SessionLog.objects.filter(session__in=loaded).select_related("session")
    carried, others = {log.pk: log.carried for log in logs}, {"A34", "A5"}
    for sample in [log.session for log in logs]:
        with store.open(sample.evidence.get(kind="transcript")) as log:
            own = site.upload(sample.external_id, log, ended_at=None).session
        assert SessionLog.objects.get(pk=own.pk).carried == {}
        assert others.isdisjoint(own.flags.values_list("rule", flat=True))
        assert own.evidence.get(kind="transcript").problem == sample.evidence.get(kind="transcript").problem
    assert {row.pk: row.carried for row in SessionLog.objects.filter(pk__in=carried)} == carried
