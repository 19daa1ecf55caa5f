"""Celery's view of the work: one function called. Messages expire; the rows are the queue (L7)."""

from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down
from django.utils import timezone

from grading import judging, monitoring, review
from grading.evidence import transcripts
from grading.intake import naming
from grading.judging.rubrics import rejudge
from grading.models import Evidence
from grading.monitoring.notices import send_due
from grading.reward import one_scale


@worker_shutting_down.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def stop(**_said: Any) -> None:
    judging.stop_pumping()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def judge() -> None:
    judging.pump()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def sweep() -> None:
    for _job in judging.sweep():
        judge.apply_async(expires=60)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def judge_again() -> None:
    rejudge.enqueue()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def catch_up() -> None:
    judging.catch_up()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def batches() -> None:
    judging.attend_batches()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def prioritise() -> None:
    judging.prioritise()
    review.prioritise()
    review.take_turns(timezone.now())


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def notices() -> None:
    send_due()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def at_night() -> None:
    one_scale.renew(timezone.now())
    monitoring.watch_at_night()
    review.ask_about_silence()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def index_transcript(pk: int) -> None:
    for row in Evidence.objects.filter(pk=pk):
        transcripts.build(row)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def name_models() -> None:
    naming.catch_up()
