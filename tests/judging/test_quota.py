"""Quota as an object: what closes it, what opens it, who may ask meanwhile, and what every screen can say of it."""

import datetime as dt
import logging

import pytest
import redis
import time_machine
from django.utils import timezone

from grading.judging import judges, sweeper, worker
from grading.judging.allowance import quota
from grading.judging.worker import begin_attempt
from grading.models import Alarm, Grade, JudgeJob, Quota, QuotaTransition
from grading.models.judging import AttemptOutcome, JobState
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.simulator import Mode
from grading.vocabulary import Reason, Source
from tests.casts import judge as judge_cast

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]

NOON = dt.datetime(2026, 3, 31, 12, 4, tzinfo=dt.UTC)


def at(moment=NOON, **later):
    """The clock stands still at `moment`, moved on by `later`."""
    return time_machine.travel(moment + dt.timedelta(**later), tick=False)


def ask(job):
    """Try a job as a worker would: only if it is due and the quota lets it."""
    return worker.run(job.pk)


def forget_the_hold(redis_url):
    """The limiter goes by Redis' clock, which stands still for nobody."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()


def states():
    return list(QuotaTransition.objects.values_list("state", flat=True))


def test_the_reset_that_the_api_names_is_waited_for_and_nothing_is_sent(site, sim):
    sim.script({"mode": "usage_limits", "regain": "2026-04-01 at 00:00"})
    with at():
        first, second = site.judge_job(), site.judge_job()
        ask(first)
        assert quota.current().until == dt.datetime(2026, 4, 1, tzinfo=dt.UTC)
    with at(hours=11):
        assert sweeper.sweep() == []
        assert ask(first) is None
        assert ask(second) is None
        assert len(sim.calls) == 1
    with at(hours=12):
        assert sweeper.sweep() == [first.pk]
        assert ask(first) is AttemptOutcome.GRADED
        assert sweeper.sweep() == [second.pk]
        assert ask(second) is AttemptOutcome.GRADED
    assert states() == [QuotaState.EXHAUSTED, QuotaState.OPEN]


def test_a_monthly_cap_is_waited_for_until_the_first(site, sim):
    sim.mode = Mode.SPEND_LIMIT
    with at():
        ask(site.judge_job())
    assert quota.current().until == dt.datetime(2026, 4, 1, tzinfo=dt.UTC)


def test_without_a_named_reset_one_probe_goes_at_growing_gaps(site, sim):
    sim.mode = Mode.NO_CREDIT
    with at():
        jobs = [site.judge_job() for _ in range(3)]
        ask(jobs[0])
    minutes, probes = 0, []
    for gap in (1, 2, 4, 8, 16, 32, 60, 60):
        minutes += gap
        with at(minutes=minutes, seconds=-1):
            assert sweeper.sweep() == []
        with at(minutes=minutes):
            assert len(sweeper.sweep()) == 1
            outcomes = [ask(job) for job in jobs]
            probes.append(sum(outcome is not None for outcome in outcomes))
    assert probes == [1] * 8
    assert len(sim.calls) == 9
    assert states() == [QuotaState.EXHAUSTED]


def test_a_probe_whose_worker_died_is_followed_by_another(site, sim, settings):
    settings.JUDGE_LEASE_SECONDS = 300
    sim.mode = Mode.NO_CREDIT
    with at():
        first, second = site.judge_job(), site.judge_job()
        ask(first)
    with at(minutes=1):
        assert worker.claim(first.pk) is not None
        assert worker.claim(second.pk) is None
    with at(minutes=7):
        sweeper.sweep()
        assert worker.claim(second.pk) is not None


def test_every_waiting_session_says_why_in_words(site, sim):
    sim.script({"mode": "usage_limits", "regain": "2026-04-01 at 00:00"})
    with at():
        before = [site.judge_job() for _ in range(3)]
        ask(before[0])
        sweeper.sweep()
        after = site.judge_job()
        for job in (*before, after):
            rewards.settle(job.session)
            job.refresh_from_db()
            assert (job.state, job.reason) == (JobState.QUEUED, Reason.QUOTA_EXHAUSTED)
            (grade,) = Grade.objects.filter(session=job.session, source=Source.JUDGE)
            assert (grade.value, grade.reason) == (None, Reason.QUOTA_EXHAUSTED)
            assert "Quota exhausted, asks again 1 Apr 00:00 UTC" in grade.detail
            assert rewards.live(job.session).reason == Reason.QUOTA_EXHAUSTED
        sweeper.sweep()
    assert Grade.objects.filter(source=Source.JUDGE).count() == 4


def test_once_the_quota_is_back_nobody_says_it_is_exhausted(site, sim):
    sim.script({"mode": "usage_limits", "regain": "2026-04-01 at 00:00"})
    with at():
        first, second = site.judge_job(), site.judge_job()
        ask(first)
        sweeper.sweep()
    with at(hours=12):
        ask(first)
        sweeper.sweep()
        settlement = rewards.live(second.session)
        assert (settlement.final, settlement.reason) == (False, Reason.AWAITING_JUDGE)
        assert ask(second) is AttemptOutcome.GRADED


def test_a_sweep_that_takes_long_to_say_what_waits_wakes_workers_before_it_goes_on(site, sim, monkeypatch):
    sim.script({"mode": "usage_limits", "regain": "2026-04-01 at 00:00"})
    with at():
        jobs = [site.judge_job() for _ in range(4)]
        ask(jobs[0])
        sweeper.sweep()
    monkeypatch.setattr(sweeper, "RECORD_SECONDS", -1)
    sim.mode = Mode.VERDICT
    with at(hours=12):
        ask(jobs[0])
        for still in (2, 1, 0):
            assert len(sweeper.sweep()) == 3
            assert JudgeJob.objects.filter(reason=Reason.QUOTA_EXHAUSTED).count() == still


def test_an_outage_raises_the_alarm_at_once_and_its_end_resolves_it(site, sim, caplog):
    sim.script({"mode": "usage_limits", "regain": "2026-04-01 at 00:00"})
    with at(), caplog.at_level(logging.ERROR):
        job = site.judge_job()
        ask(job)
        assert Alarm.objects.filter(rule="A2", resolved_at=None).exists()
    assert "exhausted" in caplog.text
    with at(hours=12):
        ask(job)
    assert not Alarm.objects.filter(rule="A2", resolved_at=None).exists()


def test_a_short_rate_limit_paces_everybody_and_costs_no_attempt(site, sim, redis_url):
    sim.script({"mode": "rate_limit", "retry_after": 20})
    with at():
        first, second = site.judge_job(), site.judge_job()
        ask(first)
        assert ask(second) is None
    with at(seconds=19):
        assert sweeper.sweep() == []
    with at(seconds=20):
        forget_the_hold(redis_url)
        assert sweeper.sweep() == [first.pk, second.pk]
        assert ask(first) is ask(second) is AttemptOutcome.GRADED
    first.refresh_from_db()
    assert first.attempts == 0
    assert states() == [QuotaState.PACING, QuotaState.OPEN]


def test_a_probe_that_meets_a_short_rate_limit_waits_no_longer_than_that(site, sim, redis_url):
    sim.script(Mode.NO_CREDIT, {"mode": "rate_limit", "retry_after": 5})
    with at():
        job = site.judge_job()
        ask(job)
    with at(minutes=1):
        ask(job)
        assert (quota.current().state, quota.current().until) == (QuotaState.PACING, NOON + dt.timedelta(seconds=65))
    with at(minutes=1, seconds=5):
        forget_the_hold(redis_url)
        assert ask(job) is AttemptOutcome.GRADED


@pytest.mark.parametrize("mode", [Mode.AUTH, Mode.FORBIDDEN, Mode.UNKNOWN_MODEL])
def test_a_refused_key_is_tried_at_growing_gaps_until_it_is_mended(site, sim, settings, mode):
    """One call after 1, 2, 4, 8, 15 and again 15 minutes; none in between, and all of them when it is mended."""
    sim.mode = mode
    with at():
        job, other = site.judge_job(), site.judge_job()
        ask(job)
    minutes = 0
    for gap in (1, 2, 4, 8, 15, 15):
        with at(minutes=minutes + gap - 0.1):
            assert sweeper.sweep() == []
            assert ask(job) is None
        minutes += gap
        with at(minutes=minutes):
            assert len(sweeper.sweep()) == 1
            assert ask(job) is AttemptOutcome.DEFERRED
            assert ask(other) is None
    sim.mode = Mode.VERDICT
    with at(minutes=minutes + 15):
        assert ask(job) is ask(other) is AttemptOutcome.GRADED
    assert len(sim.calls) == 1 + 6 + 2
    assert not Quota.objects.out().exists()


@pytest.mark.parametrize("mode", [Mode.AUTH, Mode.FORBIDDEN, Mode.UNKNOWN_MODEL])
def test_another_key_is_asked_at_once(site, sim, settings, mode):
    sim.script(mode)
    with at():
        job = site.judge_job()
        ask(job)
        assert sweeper.sweep() == []
        settings.ANTHROPIC_API_KEY = "another"
        assert sweeper.sweep() == [job.pk]
        assert ask(job) is AttemptOutcome.GRADED
    assert not Quota.objects.out().exists()
    assert not Alarm.objects.filter(resolved_at=None).exists()


def test_a_changed_model_has_a_quota_of_its_own(site, sim, settings):
    sim.script(Mode.UNKNOWN_MODEL)
    job = site.judge_job()
    ask(job)
    settings.JUDGE_MODEL = "claude-opus-5-5"
    assert ask(job) is AttemptOutcome.GRADED


def test_a_person_can_have_it_asked_now(site, sim):
    sim.script(Mode.AUTH)
    job = site.judge_job()
    ask(job)
    assert sweeper.sweep() == []
    quota.probe_now()
    assert quota.current().state == QuotaState.MISCONFIGURED
    assert sweeper.sweep() == [job.pk]
    assert ask(job) is AttemptOutcome.GRADED
    assert quota.current().state == QuotaState.OPEN


def test_an_answer_to_a_call_from_before_the_outage_does_not_end_it(site, sim):
    sim.script(Mode.VERDICT)
    with at():
        early, late = site.judge_job(), site.judge_job()
        attempt = begin_attempt(worker.claim(early.pk), None)
    with at(seconds=5):
        sim.mode = Mode.NO_CREDIT
        sim._queue.clear()
        ask(late)
    with at(seconds=6):
        from grading.judging.core.verdict import Graded

        verdict = Graded(score=0.5, dimensions={}, rationale="", citations=(), reached=None)
        quota.learn(judges.first(), verdict, started_at=attempt.started_at, now=timezone.now())
    assert quota.current().state == QuotaState.EXHAUSTED


def test_an_absurd_reset_is_not_believed(site, sim):
    sim.script({"mode": "usage_limits", "regain": "2099-01-01 at 00:00"})
    with at():
        ask(site.judge_job())
    assert quota.current().until == NOON + dt.timedelta(days=32)


def test_the_row_names_the_key_without_giving_it_away(sim):
    held = quota.current()
    assert judge_cast.KEY not in f"{held.key} {held.model} {held.detail}"
    assert len(held.key) == 16


def test_without_a_key_waiting_jobs_say_so(site, sim, settings):
    job = site.judge_job()
    settings.ANTHROPIC_API_KEY = ""
    assert sweeper.sweep() == []
    assert Grade.objects.get(session=job.session).reason == Reason.NOT_CONFIGURED
    assert JudgeJob.objects.get(pk=job.pk).is_open
    assert not sim.calls
