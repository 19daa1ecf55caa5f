"""The founding incident replayed, end to end: a shared log, a silent quota, a stub. Real worker, socket and pages."""

import datetime as dt
import json

import pytest

from bandit.models import Bucket, LedgerEntry
from grading.judging import enqueuing
from grading.judging.allowance import quota
from grading.models import Grade, JudgeAttempt, JudgeJob, Session
from grading.reward import rewards
from grading.reward.trajectory import EvidenceView
from grading.simulator import Simulator
from grading.tasks import sweep
from grading.vocabulary import Reason, Source
from tests.casts.page import flat
from tests.processes import wait_for

START = dt.datetime(2026, 3, 31, 13, 46, tzinfo=dt.UTC)
SESSIONS = {"71a3-cross-repo": 619, "a517-cross-repo": 620}
JOURNAL = "# Cross-repo session\n\nSubmitted PR #{pr} with the retry guard upstream.\n"


def line(session_id: str, **fields) -> bytes:
    return json.dumps({"sessionId": session_id, "uuid": fields.pop("uuid", "u1"), **fields}).encode() + b"\n"


def user_line(session_id: str, text: str) -> bytes:
    message = {"role": "user", "content": text}
    return line(session_id, type="user", timestamp="2026-03-31T13:46:00Z", cwd="/srv", version="2.1", message=message)


def submit(site, session_id: str, pull_request: int) -> Session:
    """What the agent had: an operator's log in the shared slot, a stub of its own, a journal and the PR it saw."""
    said = {"harness": "claude-code", "started_at": START, "ended_at": START + dt.timedelta(minutes=34)}
    site.upload(session_id, user_line("operator-5e0c", "check the grading health"), **said)
    return site.upload(
        session_id,
        user_line(session_id, "submit the retry guard upstream"),
        journal=JOURNAL.format(pr=pull_request),
        facts={"pull_requests": [f"https://example.test/contrib/pull/{pull_request}"]},
        **said,
    ).session


def buckets():
    rows = Bucket.objects.exclude(n=0)
    return sorted(rows.values_list("bandit__name", "arm__name", "grader__source", "effective_day", "n", "s", "q"))


@pytest.fixture
def judge(settings):
    with Simulator() as simulator:
        settings.ANTHROPIC_API_KEY = "test-key"
        settings.ANTHROPIC_BASE_URL = simulator.url
        yield simulator


@pytest.mark.worker
def test_both_sessions_stay_provisional_and_the_verdicts_replace_exactly(site, judge, start_worker, client):
    judge.mode = "usage_limits"
    start_worker(ANTHROPIC_API_KEY="test-key", ANTHROPIC_BASE_URL=judge.url)
    sessions = [submit(site, name, pr) for name, pr in SESSIONS.items()]
    wait_for(lambda: JudgeAttempt.objects.exclude(outcome="running").exists())
    wait_for(lambda: sweep() or Grade.objects.filter(source="judge", reason=Reason.QUOTA_EXHAUSTED).count() >= 2)

    client.force_login(site.person("rita", "reviewer"))
    for session in sessions:
        settlement = rewards.live(session)
        assert (settlement.source, settlement.final, settlement.weight) == (Source.TRAJECTORY, False, 0.3)
        assert settlement.value > 0.32  # the pull request that its caller saw is more than the journal's word for it
        assert session.judge_jobs.open().count() == 1
        shown = flat(client.get(session.get_absolute_url()))
        for words in ("Quota exhausted", "provisional", "operator-5e0c"):
            assert words in shown
        trajectory = Grade.objects.filter(session=session, source="trajectory").last()
        assert trajectory.evidence["view"] == EvidenceView.FACTS
        assert trajectory.evidence["log"] in {Reason.LOG_TOO_SMALL, Reason.STUB_NO_TOOL_CALLS, Reason.LOG_OVERWRITTEN}
    assert not LedgerEntry.objects.filter(value_micro=100_000).exists()
    assert set(Session.objects.filter(flags__rule="A1")) == set(sessions)
    dashboard = flat(client.get("/"))
    assert "Not fully." in dashboard
    assert "The judge is out" in flat(client.get("/alarms/"))

    judge.mode = "verdict"
    quota.probe_now()
    sweep()
    wait_for(lambda: Grade.objects.filter(source="judge", status="scored").exists())
    # After an outage the rate climbs: the second has to wait a few sweeps for its turn.
    wait_for(lambda: sweep() or Grade.objects.filter(source="judge", status="scored").count() == 2)
    wait_for(lambda: all(rewards.live(session).final for session in sessions))
    assert not JudgeJob.objects.open().exists()
    assert lived_like_the_verdicts_alone(site, sessions)


def lived_like_the_verdicts_alone(site, sessions) -> bool:
    """The buckets equal those of twins that had the right grade from the start, bit for bit."""
    lived = [row[2:] for row in buckets() if row[0] == "category"]
    for session in sessions:
        held = Grade.objects.filter(session=session, source="judge", status="scored").get()
        twin = site.session("infra", harness=None, ended_at=session.ended_at)
        twin.judged(held.value, model=held.model, route=held.route, rubric=held.rubric).settle()
    return [row[2:] for row in buckets() if row[:2] == ("category", "infra")] == lived


@pytest.mark.django_db
def test_sessions_without_a_key_are_graded_by_the_rest_of_the_chain(site):
    session = submit(site, "71a3-cross-repo", 619)
    assert rewards.live(session).reason == Reason.NOT_CONFIGURED
    assert enqueuing.enqueue(session) is None
    assert not JudgeJob.objects.exists()
