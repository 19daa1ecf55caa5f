"""Which of the due jobs are asked for one by one, and which wait to be sent together."""

import datetime as dt
from collections.abc import Collection

from django.conf import settings
from django.db.models import QuerySet

from grading.judging import judges
from grading.judging.allowance import quota
from grading.models import JudgeBatch, JudgeJob, JudgePolicy
from grading.models.judging import BatchState, JobState, JudgeRole

# For so long after the provider took no batch in, the backlog goes one by one.
REFUSED_FOR = dt.timedelta(minutes=15)


def due(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The queued jobs whose time has come, for judges in these roles, in the order in which they are promised."""
    return JudgeJob.objects.filter(state=JobState.QUEUED, next_attempt_at__lte=now, judge__in=roles)


def together(now: dt.datetime, roles: Collection[JudgeRole]) -> list[JudgeRole]:
    """The judges, of those in `roles`, to which the backlog goes in batches now."""
    if not JudgePolicy.objects.current().use_batches:
        return []
    configured = judges.configured()
    return [role for role in roles if role in configured and _takes_batches(role, now)]


def one_by_one(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The due jobs but for a backlog that goes in batches."""
    return due(now, roles).exclude(backlog=True, judge__in=together(now, roles))


def backlog(now: dt.datetime, role: JudgeRole) -> QuerySet[JudgeJob]:
    """The due jobs that may go in a batch, in the order in which they are promised."""
    return due(now, [role]).filter(backlog=True)


def _takes_batches(role: JudgeRole, now: dt.datetime) -> bool:
    if quota.current(judges.configured()[role]).is_out:
        return False
    refused = JudgeBatch.objects.filter(judge=role, state=BatchState.ENDED, provider_id="")
    if refused.filter(ended_at__gt=now - REFUSED_FOR).exists():
        return False
    return backlog(now, role)[: settings.JUDGE_BATCH_LEAST].count() == settings.JUDGE_BATCH_LEAST
