"""Celery's view of the work: ids in, one function called. Messages expire; the rows are the queue (L7)."""

from celery import shared_task

from grading import judging


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def judge(job_id: int) -> None:
    judging.run(job_id)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def sweep() -> None:
    for job_id in judging.sweep():
        judge.apply_async((job_id,), expires=60)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]  # Celery ships no types
def catch_up() -> None:
    judging.catch_up()
