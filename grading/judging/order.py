"""Which sessions are judged first: those whose verdict should move what the bandit does most, in reward."""

import datetime as dt
from collections import defaultdict

from django.conf import settings

from grading import clock
from grading.models import JudgeJob
from grading.models.judging import Purpose
from grading.review import priority

CHUNK_SIZE = 500


def prioritise(now: dt.datetime | None = None) -> int:
    """Give every queued job its worth, and call those queued longer than JUDGE_NEW_MINUTES backlog; how many changed.
    Where a verdict is stale its job never is backlog.

    A session of unknown category is worth what the middle arm is.
    """
    now = now or clock.now()
    new_since = now - dt.timedelta(minutes=settings.JUDGE_NEW_MINUTES)
    queued = JudgeJob.objects.queued()
    changed = queued.filter(backlog=False, stale=False, created_at__lt=new_since).update(backlog=True)
    # A further reading waits until everything else was asked: it stays worth nothing.
    held = list(queued.exclude(purpose=Purpose.SAMPLE).order_by("pk").values_list("pk", "session__category", "worth"))
    if not held:
        return changed
    worths = priority.by_arm(now)
    typical = sorted(worths.values())[len(worths) // 2] if worths else 0.0
    anew: dict[float, list[int]] = defaultdict(list)
    for job, arm, before in held:
        value = typical if arm is None else worths.get(arm, typical)
        if value != before:
            anew[value].append(job)
    for value, jobs in anew.items():  # those of the same new worth are written together
        for start in range(0, len(jobs), CHUNK_SIZE):
            JudgeJob.objects.filter(pk__in=jobs[start : start + CHUNK_SIZE]).update(worth=value)
    return changed + sum(map(len, anew.values()))
