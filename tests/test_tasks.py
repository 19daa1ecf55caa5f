"""Wakeups and the queue behind them: real Celery worker, real broker, real kills (L7)."""

import os
import signal
import subprocess
import sys
import time

import pytest
import redis
from django.db import transaction

from grading import tasks, wakeup
from grading.models import Grade, JudgeAttempt, JudgeJob, PeriodicJob
from grading.models.judging import AttemptOutcome, JobState
from grading.vocabulary import Source
from tests.casts import judge as judge_cast
from tests.processes import for_the_site, wait_for

LEASE = 3


@pytest.fixture
def sim(sim, settings):
    settings.JUDGE_LEASE_SECONDS = LEASE
    return sim


@pytest.fixture
def worker(sim, start_worker):
    def start(**settings):
        return start_worker(
            ANTHROPIC_API_KEY=judge_cast.KEY,
            ANTHROPIC_BASE_URL=sim.url,
            JUDGE_LEASE_SECONDS=str(LEASE),
            JUDGE_BACKOFF_SECONDS="0.1",
            JUDGE_TIMEOUT="20",
            **settings,
        )

    return start


@pytest.fixture(autouse=True)
def _audible():
    wakeup._silent_until = 0


def is_done(job):
    return JudgeJob.objects.filter(pk=job.pk, state=JobState.DONE).exists()


def verdicts(job):
    return Grade.objects.filter(session=job.session, source=Source.JUDGE, status="scored").count()


@pytest.mark.slow
@pytest.mark.worker
def test_a_commit_rings_and_the_verdict_comes(site, sim, worker):
    worker()
    job = site.judge_job()
    wait_for(lambda: is_done(job))
    assert verdicts(job) == 1


@pytest.mark.worker
def test_a_worker_killed_in_the_middle_of_a_call_costs_a_lease_and_no_verdict(site, sim, worker):
    sim.script("hang")
    victim = worker()
    job = site.judge_job()
    wait_for(lambda: len(sim.calls) == 1)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(5)
    (attempt,) = judge_cast.attempts(job)
    assert attempt.outcome == AttemptOutcome.RUNNING
    worker()
    tasks.sweep()
    assert len(sim.calls) == 1, "the lease still holds"
    time.sleep(LEASE)
    tasks.sweep()
    wait_for(lambda: is_done(job))
    lost, graded = judge_cast.attempts(job)
    assert (lost.outcome, graded.outcome) == (AttemptOutcome.LOST, AttemptOutcome.GRADED)
    assert verdicts(job) == 1
    assert len(sim.calls) == 2


@pytest.mark.slow
@pytest.mark.worker
def test_calls_that_hang_keep_nothing_else_from_being_done(site, sim, worker):
    sim.mode = "hang"
    worker(WORKER_CONCURRENCY="1")
    site.judge_job()
    wait_for(lambda: len(sim.calls) == 1)
    for _ in range(30):
        wakeup.publish()
    wakeup.publish("grading.tasks.take_turn", "notices")
    wait_for(lambda: PeriodicJob.objects.filter(name="notices", turns=1).exists(), seconds=10)
    assert len(sim.calls) == 1


@pytest.mark.slow
@pytest.mark.worker
def test_a_worker_that_is_asked_to_end_finishes_its_calls_and_claims_nothing_more(site, sim, worker):
    sim.latency = 0.5
    jobs = [site.judge_job() for _ in range(60)]
    going = worker()
    wait_for(lambda: len(sim.calls) >= 8)
    going.terminate()
    going.wait(30)
    states = list(JudgeJob.objects.values_list("state", flat=True))
    assert states.count(JobState.LEASED) == 0
    assert 0 < states.count(JobState.QUEUED) < len(jobs)
    assert JudgeAttempt.objects.exclude(outcome=AttemptOutcome.GRADED).count() == 0


@pytest.mark.worker
def test_a_flushed_broker_loses_nothing(site, sim, worker, redis_url):
    jobs = [site.judge_job() for _ in range(5)]
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    worker()
    assert not sim.calls
    tasks.sweep()
    tasks.sweep()
    wait_for(lambda: all(is_done(job) for job in jobs))
    assert [verdicts(job) for job in jobs] == [1] * 5
    assert len(sim.calls) == 5


@pytest.mark.django_db
def test_a_wakeup_without_anything_due_does_nothing(site, sim, redis_url):
    tasks.judge()
    site.judge_job()
    tasks.judge()
    tasks.judge()
    assert len(sim.calls) == 1
    assert JudgeAttempt.objects.count() == 1


def test_a_broker_that_is_away_holds_nobody_up():
    code = (
        "import django, time; django.setup(); from grading import wakeup\n"
        "started = time.monotonic()\n"
        "rung = [wakeup.publish() for _ in range(20)]\n"
        "print(any(rung), time.monotonic() - started)"
    )
    environment = {**for_the_site(), "REDIS_URL": "redis://127.0.0.1:1/0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    rung, seconds = done.stdout.split()
    assert (rung, float(seconds) < 3) == ("False", True)
    assert done.stderr.count("the sweep will find what is due") == 1


@pytest.mark.django_db(transaction=True)
def test_nothing_rings_for_a_job_that_was_rolled_back(site, sim, redis_url):
    with transaction.atomic():
        site.session().with_work().enqueue()
        transaction.set_rollback(True)
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("celery") == 0
    site.session().with_work().enqueue()
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("celery") == 1
