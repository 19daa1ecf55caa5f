"""Periodic jobs: each is a row, claimed by a conditional UPDATE, so that two schedulers do no harm.

The scheduler's message only suggests that a job is due; the row decides, and shows missed turns.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from grading.models import Heartbeat, PeriodicJob
from grading.plain import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from celery.schedules import BaseSchedule

logger = logging.getLogger(__name__)

# How early a message may be, as a share of the interval, so that a late message doesn't cancel the next one.
EARLY_SHARE = 0.2
# How far in the future a time written by another machine may be; later ones are ignored.
MAX_CLOCK_SKEW = dt.timedelta(minutes=1)
DAY = dt.timedelta(days=1)
# A job has missed its turns after three of its intervals and a minute; a nightly one after a day and two hours.
MISSED, MINUTE, NIGHTLY_DELAY = 3, dt.timedelta(minutes=1), dt.timedelta(hours=2)
MAX_ERROR = 500  # characters


def schedules() -> Mapping[str, BaseSchedule]:
    """The schedules of CELERY_BEAT_SCHEDULE and HOST_JOBS by the names of the jobs."""
    from celery.schedules import maybe_schedule  # slow to import, and seldom needed

    intervals = {name: entry["schedule"] for name, entry in settings.CELERY_BEAT_SCHEDULE.items()} | settings.HOST_JOBS
    return {name: maybe_schedule(every) for name, every in intervals.items()}


def interval(schedule: BaseSchedule) -> dt.timedelta:
    """The time from one turn to the next; a day for jobs at a fixed hour."""
    every: dt.timedelta = getattr(schedule, "run_every", DAY)
    return every


def is_due(schedule: BaseSchedule, row: PeriodicJob, now: dt.datetime) -> bool:
    """Whether a job may run, because its time has come or it never ran.

    It may also run if its last start lies in the future, because the clock was set back; or, for a job at a fixed hour,
    if its last run began more than NIGHTLY_DELAY ago and never ended.
    """
    began = row.started_at
    if began is None or began > now + MAX_CLOCK_SKEW:
        return True
    every = getattr(schedule, "run_every", None)
    if every is not None:
        return bool(now - began >= (1 - EARLY_SHARE) * every)
    return bool(schedule.is_due(began).is_due) or (row.ended_at < began and now - began > NIGHTLY_DELAY)


def claim(name: str, now: dt.datetime, host: str = "") -> bool:
    """Claim the job's turn if it is due. Returns whether it was claimed. `host` is empty unless each host runs the job.

    If the last end lies in the future, because the clock was set back, it is set to now. Otherwise failures would go
    unnoticed until then.
    """
    row, _new = PeriodicJob.objects.get_or_create(name=name, host=host)
    if not is_due(schedules()[name], row, now):
        return False
    unclaimed = PeriodicJob.objects.filter(pk=row.pk, turns=row.turns)
    return bool(unclaimed.update(started_at=now, ended_at=min(row.ended_at, now), turns=F("turns") + 1))


_under_way: dict[str, threading.Lock] = {}


def run(name: str, work: Callable[[], object], host: str = "") -> bool:
    """Do the job's work if it is due. Returns whether it was done. An exception is recorded and raised again.

    A process runs a job once at a time: a job that takes longer than its interval would otherwise occupy one thread of
    the worker after the other, until none was left for the judge.
    """
    lock = _under_way.setdefault(name, threading.Lock())
    if not lock.acquire(blocking=False):
        return False
    try:
        if not claim(name, timezone.now(), host):
            return False
        row = PeriodicJob.objects.filter(name=name, host=host)
        try:
            work()
        except Exception as error:
            row.update(error=plain_text(f"{type(error).__name__}: {error}", MAX_ERROR))
            raise
        row.update(ended_at=timezone.now(), error="")
        return True
    finally:
        lock.release()


def missed(now: dt.datetime) -> list[PeriodicJob]:
    """The rows of jobs that have not succeeded for too long. A job without a row is new. Two queries."""
    all_schedules = schedules()
    overdue = []
    for row in current_rows(now):
        every = interval(all_schedules[row.name])
        patience = MISSED * every + MINUTE if every < DAY else every + NIGHTLY_DELAY
        if row.ended_at < now - patience:
            overdue.append(row)
    return overdue


def current_rows(now: dt.datetime) -> list[PeriodicJob]:
    """The rows of jobs that should run. If each host runs a job, these are the rows of the running hosts.

    If no running host has a row of the job, its latest row counts: the site's backups are missed even if the host that
    made them is gone.
    """
    running = {"", *Heartbeat.objects.recent(now).values_list("host", flat=True)}
    rows = defaultdict(list)
    for row in PeriodicJob.objects.filter(name__in=schedules()).order_by("name", "ended_at"):
        rows[row.name].append(row)
    current = []
    for job_rows in rows.values():
        on_running_hosts = [row for row in job_rows if row.host in running]
        current += on_running_hosts or job_rows[-1:]
    return current
