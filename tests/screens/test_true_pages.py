"""On every page of a site in six states: nothing claims what did not happen, and figures in two places agree."""

import datetime as dt

import pytest
from django.utils import timezone

from grading.agent import samples
from grading.judging import sweeper, worker
from grading.judging.allowance import quota
from grading.models import JudgeJob, Rubric, Session
from grading.models.review import Answer
from grading.monitoring.alarms import open_alarms
from grading.monitoring.sessions import impossible_pair
from grading.monitoring.watch import inspect_session, watch
from grading.review import answers
from grading.simulator import Mode
from grading.vocabulary import Source, WorkKind
from tests.casts import logs, story
from tests.casts.page import flat
from tests.screens.test_dashboard_agrees import agrees
from tests.screens.true_pages import every_page, faults

pytestmark = pytest.mark.django_db

COMMAND = "<command-message>review is running…</command-message>\n<command-name>/review</command-name>"


def worked(site, name, days=0, log=None, **fields):
    """A session that came in through the intake and did something in 90 seconds."""
    ended = timezone.now() - dt.timedelta(days=days)
    dates = {"started_at": ended - dt.timedelta(seconds=90), "ended_at": ended}
    return site.upload(name, log or logs.worked(name), **dates, **fields).session


def true(client, *, judge):
    agrees(client)
    pages = every_page(client)
    assert len(pages) > 30
    assert faults(pages, judge=judge) == []
    return {page.url: page.text for page in pages}


def test_samples_and_no_judge(operator, rita, settings):
    settings.ANTHROPIC_API_KEY = ""
    list(samples.load(timezone.now()))
    pages = true(operator, judge="none")
    assert "0 of 5 done" in pages["/"]
    for session in Session.objects.order_by("pk")[:3]:
        answers.submit(session, rita, answer=Answer.GRADE, value=0.6, reason="It works")
    assert "tried on 3 samples" in true(operator, judge="none")["/"]


def test_an_import_without_a_judge_and_with_a_key_that_fails(site, operator, rita, sim, settings):
    key, settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_API_KEY, ""
    for number in range(8):
        worked(site, f"old-{number}", days=5 * number)
    for name, task in (("command", COMMAND), ("plan", "Implement the following plan:\n\n# Guard the retry")):
        worked(site, name, log=logs.claude(name, task=task))
    # Many fallback grades count for much less than their number, and the bandit's page says why.
    for _ in range(4):
        site.session().graded(Source.TRAJECTORY, 0.7).settle()
    looked = site.upload("looked", logs.claude("looked"), ended_at=timezone.now()).session
    answers.submit(looked, rita, answer=Answer.GRADE, value=0.6, reason="It works")
    pages = true(operator, judge="none")
    assert all(title in pages["/sessions/"] for title in ("/review", "Guard the retry"))
    assert "without a confirmed grade" in pages["/bandits/"]
    # Nothing old is judged until a person chooses, and the site says what it would cost.
    settings.ANTHROPIC_API_KEY = key
    sweeper.sweep()
    assert not JudgeJob.objects.open().exists()
    sim.mode = Mode.AUTH
    operator.post("/settings/judge/", {"do": "test"})
    pages = true(operator, judge="away")
    assert "choose" in pages["/settings/judge/"]


def test_a_judge_that_is_away_and_comes_back_until_its_key_is_removed(site, operator, sim, settings):
    # Work of two kinds, each with a rubric of its own: their levels are not compared.
    for kind, category, value in ((WorkKind.PRODUCTION, "code", 0.7), (WorkKind.CONSUMPTION, "news", 0.3)):
        rubric = Rubric.objects.active(kind)
        for _ in range(20):
            site.session(category=category, ended_at=timezone.now()).judged(value, rubric=rubric.sha256).settle()
    for number in range(4):
        sim.script({"score": 0.6 + number / 20})
        worked(site, f"early-{number}", days=number)
    worker.pump()
    sim.mode = Mode.USAGE_LIMITS
    late = [worked(site, f"late-{number}") for number in range(3)]
    worked(site, "news-1", category="news")
    # Too small a log for so long a session: there is nothing that the judge could read.
    site.upload("small", logs.worked("small"), ended_at=timezone.now())
    worker.pump()
    # Three that opened pull requests and have no reliable grade: the alarm about them stays open after their verdicts.
    ungraded = [site.session(ended_at=timezone.now()).graded(Source.JOURNAL, 0.3).settle() for _ in range(3)]
    for session in ungraded:
        site.on(session).with_pull_request()
        inspect_session(session)
    watch()
    true(operator, judge="away")
    assert "Judge out" in flat(operator.get("/"))
    sim.mode = Mode.VERDICT
    quota.probe_now()
    for _ in late:
        worker.pump()
    for session in ungraded:
        site.on(session).judged(0.7).settle()
        inspect_session(session)
    watch()
    assert open_alarms().filter(rule=impossible_pair.id).exists()
    true(operator, judge="open")
    for number in range(3):
        worked(site, f"last-{number}")
    settings.ANTHROPIC_API_KEY = ""
    sweeper.sweep()
    true(operator, judge="none")


def test_the_demo_before_and_after_its_story(operator, rita, sim, settings, monkeypatch):
    story.start(settings)
    story.live_history(sim, monkeypatch)
    true(operator, judge="open")
    dashboards = []
    for step in story.NAMES:
        operator.post(f"/story/{step}/")
        story.work(operator, step)
        dashboards.append(agrees(operator))
    assert "2 of today’s 2 rewards are provisional" in dashboards[1]
    # What else people do is no part of the story.
    answers.submit(Session.objects.earliest("pk"), rita, answer=Answer.GRADE, value=0.9, reason="It works")
    assert "exactly as before the correction" in true(operator, judge="open")["/story/"]
