"""Celery tasks and periodic jobs. Each calls one function. The queue is in the database: messages only wake workers."""

from collections.abc import Callable, Mapping
from functools import cache
from threading import BoundedSemaphore
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import connections
from django.utils import timezone

from grading import letters
from grading.access.sessions import SessionStore
from grading.evidence import care, transcripts
from grading.health import periodic, planner, pulse
from grading.health.liveness import Component
from grading.housekeeping import Housekeeping
from grading.insight import agents, since
from grading.intake import first_word, importing, naming
from grading.intake.categories import changes as categories
from grading.judging import canary, enqueuing, ordering, sweeper, worker
from grading.judging.batches import poll_and_send as poll_and_send_batches
from grading.judging.outlook import daily_costs
from grading.judging.rubrics import rejudge, versions
from grading.models import Evidence
from grading.monitoring.attending import attend
from grading.monitoring.notices import deadman, send_due
from grading.monitoring.watch import watch_at_night
from grading.outcomes import following
from grading.review import calibration, impact, random_slice, unheard
from grading.reward import calibrating, judged_pairs, lessons
from grading.wakeup import publish
from gradingsite import telemetry
from gradingsite.sqlite.base import use_durable_commits


@worker_ready.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def begin(**_kwargs: Any) -> None:
    use_durable_commits()  # verdicts that were paid for must not be lost
    connections.close_all()
    telemetry.start("worker")
    attend(Component.WORKER)
    Housekeeping(is_worker=True).start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def stop(**_kwargs: Any) -> None:
    worker.stop_pumping()


@worker_shutdown.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def end(**_kwargs: Any) -> None:
    pulse.stop()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def judge() -> None:
    # If all slots are taken, the threads in them take the next job anyway.
    if calling().acquire(blocking=False):
        try:
            worker.pump()
        finally:
            calling().release()


@cache
def calling() -> BoundedSemaphore:
    """Limits the worker's threads that call the judge to WORKER_CONCURRENCY."""
    return BoundedSemaphore(settings.WORKER_CONCURRENCY)


def sweep() -> None:
    for _job in sweeper.sweep():
        publish()


def judge_canaries() -> None:
    canary.run_due(timezone.now())


def judge_again() -> None:
    rejudge.enqueue()


def batches() -> None:
    poll_and_send_batches()


def prioritise() -> None:
    ordering.prioritise()
    impact.prioritise()
    random_slice.take_turns(timezone.now())


def recheck_evidence() -> None:
    care.recheck_damaged()


def check_evidence() -> None:
    care.check(timezone.now())


def at_night() -> None:
    calibrating.renew(timezone.now())
    watch_at_night()
    unheard.flag_unheard()
    care.expire(timezone.now())
    SessionStore.clear_expired()
    first_word.forget_addresses(timezone.now())
    importing.forget_files(timezone.now())
    planner.gather_statistics()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def name_models() -> None:
    naming.assign_models()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def categorise() -> None:
    categories.catch_up()


def read_lessons() -> None:
    lessons.store_overviews(timezone.now())


def read_costs() -> None:
    daily_costs.store_spends(timezone.now())


def read_insight() -> None:
    since.store(timezone.now())
    agents.store(timezone.now())


def read_calibration() -> None:
    judged_pairs.store_judgements(timezone.now())
    calibration.store_arm_means(timezone.now())
    versions.store_figures(timezone.now())


def write_letter() -> None:
    letters.write_due(timezone.now())


def follow_commits() -> None:
    following.run_due(timezone.now())


# The jobs of CELERY_BEAT_SCHEDULE, by name. `take_turn` runs them.
PERIODIC: Mapping[str, Callable[[], object]] = {
    "sweep": sweep,
    "judge again": judge_again,
    "canaries": judge_canaries,
    "notices": send_due,
    "batches": batches,
    "prioritise": prioritise,
    "catch up": enqueuing.catch_up,
    "name models": name_models,
    "categorise": categorise,
    "read lessons": read_lessons,
    "read calibration": read_calibration,
    "read costs": read_costs,
    "read insight": read_insight,
    "follow commits": follow_commits,
    "dead man's call": deadman.call,
    "weekly letter": write_letter,
    "recheck evidence": recheck_evidence,
    "at night": at_night,
    "check evidence": check_evidence,
}


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def take_turn(name: str) -> None:
    periodic.run(name, PERIODIC[name])


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def index_transcript(pk: int) -> None:
    for row in Evidence.objects.filter(pk=pk):
        transcripts.build(row)
