"""Which of the due jobs are asked for one by one and in which order, and which wait to be sent together."""

import datetime as dt
from collections.abc import Collection
from functools import cache

from django.conf import settings
from django.db.models import QuerySet

from bandit.prepared import Prepared
from grading.judging import judges
from grading.judging.allowance import quota
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob, JudgePolicy
from grading.models.judging import BatchState, JudgeRole
from grading.reward.reserve import may_go_first

# For so long after the provider took no batch in, the backlog goes one by one.
REFUSED_FOR = dt.timedelta(minutes=15)
# The calls among which those for drawn abstentions have no more than their share.
CALLS_SHARED = 50
# The promised order, but for drawn abstentions: they are where they would be if nobody had drawn them.
UNRESERVED = ("-stale", "backlog", "-worth", "pk")


def due(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The queued jobs whose time has come, for judges in these roles, in the order in which they are promised."""
    return JudgeJob.objects.queued().filter(next_attempt_at__lte=now, judge__in=roles)


def together(now: dt.datetime, roles: Collection[JudgeRole], policy: JudgePolicy | None = None) -> list[JudgeRole]:
    """The judges, of those in `roles`, to which the backlog goes in batches now."""
    if not (policy or JudgePolicy.objects.current()).use_batches:
        return []
    configured, least = judges.configured(), settings.JUDGE_BATCH_LEAST
    found: list[JudgeRole] = []
    for role in roles:
        if role not in configured or quota.current(configured[role]).is_out:
            continue
        refused = JudgeBatch.objects.filter(judge=role, state=BatchState.ENDED, provider_id="")
        if not refused.filter(ended_at__gt=now - REFUSED_FOR).exists() and backlog(now, role)[:least].count() == least:
            found.append(role)
    return found


def one_by_one(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The due jobs but for a backlog that goes in batches: where the quota is short, in this order.

    Stale verdicts, drawn abstentions as long as they had less than the reserved share of the latest calls, new
    sessions, backlog; of these what is worth most, then the oldest.
    """
    policy = JudgePolicy.objects.current()
    jobs = due(now, roles).exclude(backlog=True, reserved=False, judge__in=together(now, roles, policy))
    calls = JudgeAttempt.objects.filter(judge__in=roles, batch=None).order_by("-pk")
    latest = list(calls.values_list("job__reserved", flat=True)[:CALLS_SHARED])
    go_first = may_go_first(sum(latest), len(latest), policy.reserved_share)
    return jobs if go_first else jobs.order_by(*UNRESERVED)


def first_in_line(now: dt.datetime, roles: Collection[JudgeRole], count: int) -> list[int]:
    """The keys of the first so many of `one_by_one`."""
    policy = JudgePolicy.objects.current()
    if not together(now, roles, policy):
        first = _first_due(len(roles), count).rows(now, *roles)
        # Where no drawn abstention is among the first, none waits that could be: the line is the same either way.
        if not any(reserved for _job, reserved in first):
            return [job for job, _reserved in first]
    return list(one_by_one(now, roles).values_list("pk", flat=True)[:count])


@cache
def _first_due(roles: int, count: int) -> Prepared[tuple[int, bool]]:
    """The first so many due jobs for judges in so many roles, drawn abstentions first; and whether each is one."""
    return Prepared(
        lambda now, *given: due(now, given).values_list("pk", "reserved")[:count], dt.datetime, *[str] * roles
    )


def backlog(now: dt.datetime, role: JudgeRole) -> QuerySet[JudgeJob]:
    """The due jobs that may go in a batch, in the order in which they are promised."""
    return due(now, [role]).filter(backlog=True, reserved=False)
