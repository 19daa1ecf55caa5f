"""By hand: what stands still is tried now."""

import logging

from django.contrib.auth.models import User

from grading import clock
from grading.judging import enqueuing
from grading.models import JudgeJob
from grading.monitoring import operation

logger = logging.getLogger(__name__)


def try_now(*, by: User | None) -> int:
    """Everything that stands still and has a job is due at once; how many. Whatever fails again, waits again."""
    still = (operation.held_back(), operation.parked(), operation.quarantined())
    keys = [key for jobs in still for key in jobs.values_list("pk", flat=True)]
    waiting = JudgeJob.objects.filter(pk__in=keys, state__in=operation.WAITING)
    count = waiting.queue_again(next_attempt_at=clock.now())
    logger.info("%s has %d judgements tried now that stood still", by or "a program", count)
    enqueuing.wake_workers()
    return count
