"""Whose turn it is: one of many schedulers, not too early, and a turn that was missed is seen."""

import datetime as dt
import threading
from contextlib import suppress

import pytest
import time_machine
from celery.schedules import crontab, schedule
from django.conf import settings
from django.db import connection
from django.utils import timezone

from grading import housekeeping, tasks
from grading.health import periodic
from grading.models import PeriodicJob
from gradingsite.beat import RowScheduler
from gradingsite.celery import app

pytestmark = pytest.mark.django_db

MINUTELY, NIGHTLY = schedule(60), crontab(hour="2", minute="30")
NOW = timezone.now


def at(clock):
    return dt.datetime.fromisoformat(f"2026-11-21T{clock}+00:00")


def test_every_job_of_the_schedule_is_one_that_a_worker_knows():
    assert set(settings.CELERY_BEAT_SCHEDULE) == set(tasks.PERIODIC)
    assert set(settings.HOST_JOBS) == set(housekeeping.JOBS)
    assert {(*entry["args"],) for entry in settings.CELERY_BEAT_SCHEDULE.values()} == {
        (name,) for name in tasks.PERIODIC
    }


def test_of_two_messages_one_does_the_job():
    done = []
    assert periodic.run("prioritise", lambda: done.append(1))
    assert not periodic.run("prioritise", lambda: done.append(2))
    assert done == [1]
    PeriodicJob.objects.update(started_at=NOW() - dt.timedelta(seconds=50))
    assert periodic.run("prioritise", lambda: done.append(3))
    assert done == [1, 3]
    assert PeriodicJob.objects.get().turns == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_once_one_has_the_turn():
    PeriodicJob.objects.create(name="prioritise")
    start, mine = threading.Barrier(8), []

    def claim():
        start.wait()
        mine.append(periodic.claim("prioritise", NOW()))
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(mine) == [False] * 7 + [True]


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_still_at_a_job_does_not_begin_it_again():
    """Else one that takes longer than its interval would take up all threads of a worker, and nobody would judge."""
    at_it, ends, done = threading.Event(), threading.Event(), []

    def work():
        at_it.set()
        ends.wait(60)

    def first():
        done.append(periodic.run("sweep", work))
        connection.close()

    thread = threading.Thread(target=first)
    thread.start()
    assert at_it.wait(60)
    PeriodicJob.objects.update(started_at=NOW() - dt.timedelta(hours=1))
    began_twice = periodic.run("sweep", int)
    periodic.run("notices", lambda: done.append("another"))
    ends.set()
    thread.join()
    assert (began_twice, done) == (False, ["another", True])
    for work in (lambda: 1 / 0, int):
        PeriodicJob.objects.update(started_at=None)
        with suppress(ZeroDivisionError):
            assert periodic.run("sweep", work)
    assert PeriodicJob.objects.get(name="sweep").turns == 3


@pytest.mark.parametrize(
    ("plan", "now", "began", "ended", "is_so"),
    [
        (MINUTELY, "12:00:50", "12:00:00", "12:00:01", True),  # a message that comes a little early
        (MINUTELY, "12:00:40", "12:00:00", "12:00:01", False),
        (MINUTELY, "12:00:00", "13:00:00", "12:00:01", True),  # by a clock that has been put back since
        (NIGHTLY, "02:30:01", "01:00:00", "01:00:05", True),
        (NIGHTLY, "04:00:00", "02:30:01", "02:30:05", False),
        (NIGHTLY, "04:00:00", "02:30:01", "00:10:00", False),  # it may still be at it
        (NIGHTLY, "05:00:00", "02:30:01", "00:10:00", True),  # its worker died meanwhile
    ],
)
def test_a_job_is_due_when_its_time_has_come(plan, now, began, ended, is_so):
    row = PeriodicJob(started_at=at(began), ended_at=at(ended))
    with time_machine.travel(at(now), tick=False):
        assert periodic.is_due(plan, row, at(now)) is is_so


def test_a_job_that_fails_says_so_on_its_row_and_misses_its_turns():
    """I132, an outage that looks like an idle day: alarm (A47). A job that keeps failing is told."""
    with pytest.raises(ZeroDivisionError):
        periodic.run("sweep", lambda: 1 / 0)
    assert "ZeroDivisionError" in PeriodicJob.objects.get().error
    later = NOW() + dt.timedelta(seconds=60 + 3 * settings.SWEEP_SECONDS + 1)
    assert periodic.missed(NOW()) == []
    (missed,) = periodic.missed(later)
    assert (missed.name, "ZeroDivisionError" in missed.error) == ("sweep", True)
    PeriodicJob.objects.update(started_at=None)
    assert periodic.run("sweep", int)
    assert PeriodicJob.objects.get().error == ""


def test_a_message_that_went_astray_is_sent_again():
    scheduler = RowScheduler(app=app)
    entry = scheduler.schedule["at night"]
    sent = entry.last_run_at = NOW()
    yesterday = NOW() - dt.timedelta(hours=25)
    PeriodicJob.objects.create(name="at night", started_at=yesterday, ended_at=yesterday)
    scheduler.sync_with_rows()
    assert entry.last_run_at == yesterday
    assert entry.is_due().is_due
    PeriodicJob.objects.update(started_at=sent, ended_at=sent)
    scheduler.sync_with_rows()
    assert not entry.is_due().is_due


@pytest.mark.parametrize("name", ["prioritise", "at night"])
@pytest.mark.parametrize("by_row", [True, False])
def test_a_scheduler_goes_on_when_its_clock_is_put_back(name, by_row):
    scheduler = RowScheduler(app=app)
    entry = scheduler.schedule[name]
    began = entry.last_run_at = NOW()
    if by_row:
        PeriodicJob.objects.create(name=name, started_at=began, ended_at=began)
    with time_machine.travel(began - dt.timedelta(hours=25)):
        scheduler.sync_with_rows()
        is_due, seconds = entry.is_due()
        assert is_due or seconds <= periodic.interval(entry.schedule).total_seconds()
        assert is_due is by_row


def test_a_job_that_fails_is_seen_after_its_clock_was_put_back():
    year = dt.timedelta(days=365)
    ahead = NOW() + year
    PeriodicJob.objects.create(name="sweep", started_at=ahead, ended_at=ahead)
    with pytest.raises(ZeroDivisionError):
        periodic.run("sweep", lambda: 1 / 0)
    assert periodic.missed(NOW()) == []
    (missed,) = periodic.missed(NOW() + dt.timedelta(minutes=2))
    assert missed.name == "sweep"
    assert missed.ended_at < NOW()
