"""A clock that jumps an hour: nothing is lost, asked for twice at a price, or left waiting."""

import datetime as dt
import threading

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from grading import clock
from grading.judging import sweeper, worker
from grading.judging.allowance import quota
from grading.judging.core.retry import PARKED_FOR
from grading.models import JudgeJob, Quota
from grading.models.judging import AttemptOutcome, JobState
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.vocabulary import Reason
from tests.processes import wait_for

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forth", "back"])
@pytest.mark.parametrize("when", ["queued", "leased"])
def test_a_job_is_judged_once_whatever_the_clock_does(site, sim, jump, when):
    job = site.judge_job()
    if when == "leased":
        worker.claim(job.pk)
    with time_machine.travel(timezone.now() + jump, tick=True):
        sweeper.sweep()
        sweeper.sweep()
        worker.pump()
        worker.pump()
    job.refresh_from_db()
    assert job.state == JobState.DONE
    assert rewards.live(job.session).source == "judge"
    assert len(sim.calls) == 1


@pytest.mark.parametrize("days", [-0.1, 400], ids=["back", "forth"])
def test_a_verdict_counts_whatever_the_clock_does_while_the_judge_is_asked(site, sim, settings, tmp_path, days):
    shift = tmp_path / "shift"
    shift.write_text("0")
    settings.CLOCK_SHIFT_FILE = str(shift)
    sim.mode = "hang"

    def jump() -> None:
        wait_for(lambda: sim.calls)
        shift.write_text(str(days * 86_400))
        sim.release()

    jumping = threading.Thread(target=jump)
    jumping.start()
    job = site.judge_job()
    assert worker.run(job.pk) is AttemptOutcome.GRADED
    jumping.join()
    held = rewards.live(job.session)
    assert held.source == "judge"
    assert held.grade.duration_ms is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": JobState.QUEUED, "next_attempt_at": dt.timedelta(hours=27)},
        {
            "state": JobState.PARKED,
            "reason": Reason.TIMEOUT,
            "next_attempt_at": PARKED_FOR + HOUR,
            "parked_at": dt.timedelta(0),
        },
    ],
    ids=["queued", "parked"],
)
def test_a_wait_that_is_longer_than_any_is_over(site, sim, wrong):
    job = site.judge_job()
    now = timezone.now()
    columns = {name: now + value if isinstance(value, dt.timedelta) else value for name, value in wrong.items()}
    JudgeJob.objects.filter(pk=job.pk).update(**columns)
    sweeper.sweep()
    assert worker.run(job.pk) is AttemptOutcome.GRADED


def test_a_quota_that_is_out_for_longer_than_ever_is_asked_again(sim):
    row = quota.current()
    now = timezone.now()
    for state, ahead in (
        (QuotaState.MISCONFIGURED, HOUR),
        (QuotaState.PACING, HOUR),
        (QuotaState.EXHAUSTED, dt.timedelta(days=40)),
    ):
        held = Quota(pk=row.pk, state=state, until=now + ahead, changed_at=now)
        assert quota.is_due(held, now)
        held.until = now + dt.timedelta(minutes=5)
        assert not quota.is_due(held, now)


def test_on_postgresql_the_databases_clock_counts(settings):
    """A machine whose own clock is an hour ahead is due when the others are."""
    settings.DATABASE_CLOCK = True
    with time_machine.travel(dt.datetime(2031, 1, 1, tzinfo=dt.UTC)):
        is_own = clock.now().year == 2031
    assert is_own is (connection.vendor != "postgresql")


def test_a_drill_shifts_it(settings, tmp_path):
    shift = tmp_path / "shift"
    shift.write_text("3600")
    settings.CLOCK_SHIFT_FILE = str(shift)
    assert clock.now() - timezone.now() > dt.timedelta(minutes=59)
