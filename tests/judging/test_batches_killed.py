"""Batches whose sender or reader is killed with -9: real processes on the test database."""

import datetime as dt
import signal
import subprocess
import sys

import pytest
import time_machine
from django.utils import timezone

from grading.judging import batches
from grading.models import Grade, JudgeAttempt, JudgeBatch, JudgeJob
from grading.models.judging import AttemptOutcome, BatchState, JobState
from gradingsite.supervisor import die_with_parent
from tests.casts import judge as judge_cast
from tests.processes import for_the_site, wait_for

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def sim(sim, settings):
    judge_cast.in_batches(settings)
    return sim


def process(sim, what):
    """Another process that sends or polls."""
    code = f"import django; django.setup(); from grading.judging import batches; batches.{what}()"
    environment = for_the_site() | {
        "ANTHROPIC_API_KEY": judge_cast.KEY,
        "ANTHROPIC_BASE_URL": sim.url,
        "JUDGE_BATCH_LEAST": "2",
        "JUDGE_BATCH_POLL_SECONDS": "0",
    }
    return subprocess.Popen([sys.executable, "-c", code], env=environment, preexec_fn=die_with_parent)


def kill(running):
    running.send_signal(signal.SIGKILL)
    running.wait()


def later(minutes):
    return time_machine.travel(timezone.now() + dt.timedelta(minutes=minutes), tick=True)


def assert_one_verdict_each(jobs):
    assert {job.state for job in JudgeJob.objects.all()} == {JobState.DONE}
    verdicts = Grade.objects.chain().verdicts()
    assert sorted(verdicts.values_list("session", flat=True)) == sorted(job.session_id for job in jobs)
    assert not JudgeAttempt.objects.filter(outcome=AttemptOutcome.RUNNING).exists()


def test_a_sender_killed_in_the_middle_of_the_call_costs_time_and_no_verdict(site, sim):
    jobs = [site.judge_job() for _ in range(3)]
    sim.batches.script_calls("hang")
    sender = process(sim, "send")
    wait_for(lambda: sim.batches.calls)
    kill(sender)
    assert JudgeBatch.objects.get().state == BatchState.SENDING
    sim.release()  # the service takes it in all the same
    wait_for(lambda: sim.batches.by_id)
    batch = next(iter(sim.batches.by_id.values()))
    batch.poll(timezone.now())
    with later(minutes=13):
        batches.poll()
    with later(minutes=20):
        assert batches.poll() == 3
    assert JudgeBatch.objects.get().provider_id == batch.id
    assert JudgeAttempt.objects.count() == 3, "nothing was paid for twice"
    assert_one_verdict_each(jobs)


@pytest.mark.slow
def test_a_reader_killed_among_the_results_is_followed_by_another(site, sim):
    jobs = [site.judge_job() for _ in range(40)]
    assert batches.send() == 40
    reader = process(sim, "poll")
    wait_for(lambda: Grade.objects.verdicts().count() >= 2)
    kill(reader)
    left = JudgeJob.objects.filter(state=JobState.SENT).count()
    assert 0 < left < 40
    with later(minutes=5):
        assert batches.poll() == left
    assert_one_verdict_each(jobs)
