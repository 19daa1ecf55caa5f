"""Whose turn it is: every periodic job is a row, claimed by a conditional UPDATE, so that two schedulers do no harm.

A message of the scheduler's says that a job is due. Whether it is, the row says; a turn that was missed is seen there.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from grading.models import PeriodicJob
from grading.plain import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from celery.schedules import BaseSchedule

logger = logging.getLogger(__name__)

# How early a message may be, as a share of the job's interval, so that a late one does not delay the next.
EARLY = 0.2
# How far ahead the time of another machine's row may be before it is ignored.
AHEAD = dt.timedelta(minutes=1)
DAY = dt.timedelta(days=1)
# A job has missed its turns after three of its intervals and a minute; one of the night after a day and two hours.
MISSED, MINUTE, LATE_AT_NIGHT = 3, dt.timedelta(minutes=1), dt.timedelta(hours=2)
ERROR = 500


def schedules() -> Mapping[str, BaseSchedule]:
    """The one place where it stands which jobs there are, and when: CELERY_BEAT_SCHEDULE."""
    from celery.schedules import maybe_schedule  # heavy, and most commands plan nothing

    return {name: maybe_schedule(each["schedule"]) for name, each in settings.CELERY_BEAT_SCHEDULE.items()}


def interval(schedule: BaseSchedule) -> dt.timedelta:
    """How long it is from one turn to the next; of one by the clock, a day."""
    every: dt.timedelta = getattr(schedule, "run_every", DAY)
    return every


def is_due(schedule: BaseSchedule, row: PeriodicJob, now: dt.datetime) -> bool:
    """Whether a job may begin again: its time has come, or a turn by the clock was begun and never ended."""
    began = row.started_at
    if began is None or began > now + AHEAD:
        return True
    every = getattr(schedule, "run_every", None)
    if every is not None:
        return bool(now - began >= (1 - EARLY) * every)
    return bool(schedule.is_due(began).is_due) or (row.ended_at < began and now - began > LATE_AT_NIGHT)


def claim(name: str, now: dt.datetime) -> bool:
    """Take the job's turn, if it has one now and nobody else has taken it.

    An end by a clock that has been put back since counts from now on, or a job that fails would not be missed.
    """
    row, _new = PeriodicJob.objects.get_or_create(name=name)
    if not is_due(schedules()[name], row, now):
        return False
    mine = PeriodicJob.objects.filter(pk=row.pk, turns=row.turns)
    return bool(mine.update(started_at=now, ended_at=min(row.ended_at, now), turns=F("turns") + 1))


def run(name: str, work: Callable[[], object]) -> bool:
    """Do the job's work if it is its turn; whether it was. What the work raises is on the row, and raised again.

    It is nobody's turn in a process that is still at it: a job that takes longer than its interval would take up one of
    the worker's threads after the other, until none was left to ask the judge.
    """
    under_way = _under_way.setdefault(name, threading.Lock())
    if not under_way.acquire(blocking=False):
        return False
    try:
        return claim(name, timezone.now()) and _did(name, work)
    finally:
        under_way.release()


_under_way: dict[str, threading.Lock] = {}


def _did(name: str, work: Callable[[], object]) -> bool:
    row = PeriodicJob.objects.filter(name=name)
    try:
        work()
    except Exception as error:
        row.update(error=plain_text(f"{type(error).__name__}: {error}", ERROR))
        raise
    row.update(ended_at=timezone.now(), error="")
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedTurn:
    """A job that has not ended well for too long. `since`: when it last did."""

    name: str
    since: dt.datetime
    error: str


def missed(now: dt.datetime) -> list[MissedTurn]:
    """The jobs that missed their turns: one query. A job without a row has only just been thought of."""
    plan, turns = schedules(), []
    for row in PeriodicJob.objects.filter(name__in=plan).order_by("name"):
        every = interval(plan[row.name])
        patience = MISSED * every + MINUTE if every < DAY else every + LATE_AT_NIGHT
        if row.ended_at < now - patience:
            turns.append(MissedTurn(name=row.name, since=row.ended_at, error=row.error))
    return turns
