"""The process that reads evidence: what kills it, or never ends, costs neither the worker nor the others."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grading.judging import inputs, reader, worker
from grading.judging.core.order import LogBytes, PromptOrder, fill
from grading.judging.core.prompt import Case, Prompt, RubricText
from grading.judging.reader import EvidenceReader, ReaderLost
from grading.models import JudgeJob
from grading.models.judging import AttemptOutcome, JobState
from tests.casts import logs as transcripts
from tests.processes import wait_for

RUBRIC = RubricText(sha256="", text="Grade it.", dimensions=(), bands=())
ORDER = PromptOrder(
    case=Case(metadata={"title": "a session"}),
    logs=(),
    foreign=frozenset(),
    rubric=RUBRIC,
    budget=10_000,
    smaller=1.0,
    chars_per_token=4.0,
)


@pytest.fixture
def made():
    held = EvidenceReader(seconds=20)
    yield held
    held.close()


def test_it_is_one_process_that_knows_no_key_and_no_django(made, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    assert isinstance(made.fill(ORDER), Prompt)
    first = made.process.pid
    made.fill(ORDER)
    assert made.process.pid == first
    folder = Path("/proc") / str(first)
    assert b"sk-secret" not in (folder / "environ").read_bytes()
    assert "django" not in (folder / "maps").read_text()


def test_the_prompt_comes_back_as_it_was_made(made):
    log = transcripts.claude("s-1", ("ls", "a"), ("pytest", "3 passed \ud800 \x00 \u2028"))
    order = replace(
        ORDER, case=replace(ORDER.case, journal="half a pair: \ud83d"), logs=[LogBytes(data=log, filename="s-1.jsonl")]
    )
    back = made.fill(order)
    assert (back, back.citable != frozenset()) == (fill(order), True)


def test_evidence_that_cannot_be_read_is_an_error_in_words_and_the_process_lives(made):
    with pytest.raises(ValueError, match="expected a positive budget"):
        made.fill(replace(ORDER, budget=0))
    held = made.process.pid
    made.fill(ORDER)
    assert made.process.pid == held


def test_one_that_takes_too_long_is_ended_and_replaced(made):
    made.fill(ORDER)
    made.seconds, held = 0.3, made.process.pid
    os.kill(held, signal.SIGSTOP)
    with pytest.raises(ReaderLost, match=r"took longer than 0\.3 s"):
        made.fill(ORDER)
    made.seconds = 20
    assert isinstance(made.fill(ORDER), Prompt)
    assert made.process.pid != held


def test_one_that_wants_too_much_memory_is_replaced():
    made = EvidenceReader(seconds=20, memory=200 * 2**20)
    try:
        with pytest.raises(ReaderLost, match="ended with status"):
            made.fill(replace(ORDER, case=replace(ORDER.case, journal="x" * 150_000_000)))
        assert isinstance(made.fill(ORDER), Prompt)
    finally:
        made.close()


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_url")
def test_three_lost_readers_put_a_session_aside_and_the_worker_lives(site, sim, settings):
    settings.JUDGE_LEASE_SECONDS = 200
    inputs.build(site.session().with_work().session, site.judge_job().rubric, budget=10_000)
    JudgeJob.objects.all().delete()
    poison = site.judge_job()
    for number in range(3):
        JudgeJob.objects.filter(pk=poison.pk).update(next_attempt_at=poison.created_at)
        thread = killer(reader.shared())
        outcome = worker.run(poison.pk)
        thread.join()
        assert outcome is AttemptOutcome.DEFERRED, number
    poison.refresh_from_db()
    assert poison.state == JobState.PARKED
    assert not sim.calls
    other = site.judge_job()
    assert worker.run(other.pk) is AttemptOutcome.GRADED


def killer(held):
    """Whatever the reader is given, it dies of it: it stands still until the order has come, and is then killed."""
    held.fill(ORDER)
    process = held.process
    os.kill(process.pid, signal.SIGSTOP)

    def kill():
        wait_for(held._lock.locked)  # somebody is giving it an order
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread
