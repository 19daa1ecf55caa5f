"""Which of the due jobs are asked for one by one and in which order, and which wait to be sent together."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

from django.conf import settings
from django.db.models import Case, QuerySet, When, Window
from django.db.models.functions import RowNumber

from grading.judging import judges
from grading.judging.allowance import quota
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob, JudgePolicy
from grading.models.judging import BatchState, JudgeRole
from grading.reward.reserve import may_go_first

# How long the backlog is sent one by one after the provider accepted no batch.
REFUSED_FOR = dt.timedelta(minutes=15)
# The calls among which those for drawn abstentions have no more than their share.
CALLS_SHARED = 50
# What goes first whosever it is; where drawn abstentions had their share, they are where they would be otherwise.
TIERS, TIERS_UNRESERVED = ("-stale", "-reserved", "backlog"), ("-stale", "backlog")


def due(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The queued jobs whose time has come, for judges in these roles."""
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
    sessions, backlog; of these the agents take turns, each with what is worth most, then with the oldest.
    """
    policy = JudgePolicy.objects.current()
    jobs = due(now, roles).exclude(backlog=True, reserved=False, judge__in=together(now, roles, policy))
    calls = JudgeAttempt.objects.filter(judge__in=roles, batch=None).order_by("-pk")
    latest = list(calls.values_list("job__reserved", "job__session__agent")[:CALLS_SHARED])
    go_first = may_go_first(sum(reserved for reserved, _agent in latest), len(latest), policy.reserved_share)
    return by_turns(jobs, TIERS if go_first else TIERS_UNRESERVED, [agent for _reserved, agent in latest])


def by_turns(jobs: QuerySet[JudgeJob], tiers: Sequence[str], asked: Iterable[int] = ()) -> QuerySet[JudgeJob]:
    """`jobs` in the order of `tiers`, and within them one of each agent, then the next of each.

    The agent whose last call is longest ago begins; `asked` are those of the latest calls, the last one first.
    """
    ago = {agent: calls for calls, agent in enumerate(dict.fromkeys(asked))}
    turn = Window(
        RowNumber(),
        partition_by=[*(tier.removeprefix("-") for tier in tiers), "session__agent"],
        order_by=["-worth", "pk"],
    )
    jobs, order = jobs.annotate(turn=turn), [*tiers, "turn"]
    if ago:
        calls_ago = Case(*(When(session__agent=agent, then=calls) for agent, calls in ago.items()), default=len(ago))
        jobs, order = jobs.annotate(calls_ago=calls_ago), [*order, "-calls_ago"]
    return jobs.order_by(*order, "-worth", "pk")


def backlog(now: dt.datetime, role: JudgeRole) -> QuerySet[JudgeJob]:
    """The due jobs that may go in a batch, those that go first in front."""
    return by_turns(due(now, [role]).filter(backlog=True, reserved=False), TIERS)
