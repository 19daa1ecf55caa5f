"""Celery's view of the work: one function called. Messages expire; the rows are the queue (L7)."""

from celery import shared_task

from grading import judging


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def judge() -> None:
    judging.pump()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def sweep() -> None:
    for _job in judging.sweep():
        judge.apply_async(expires=60)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def catch_up() -> None:
    judging.catch_up()
