"""The order of jobs: the worth of each, and which jobs are judged in single calls and which in a batch."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from django.conf import settings
from django.db.models import Case, QuerySet, When, Window
from django.db.models.functions import RowNumber

from grading import clock
from grading.judging import judges
from grading.judging.allowance import quota
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob, JudgePolicy
from grading.models.judging import BatchState, JudgeRole, Purpose
from grading.review import priority
from grading.reward.reserve import may_go_first

CHUNK_SIZE = 500
# How long the backlog is sent one by one after the provider refused a batch.
REFUSED_FOR = dt.timedelta(minutes=15)
# The number of latest calls of which reserved jobs may have no more than their share.
CALLS_SHARED = 50
# The order of jobs before the agents take turns; without "reserved" once reserved jobs have had their share.
TIERS, TIERS_UNRESERVED = ("-stale", "-reserved", "backlog"), ("-stale", "backlog")


def prioritise(now: dt.datetime | None = None) -> int:
    """Set the worth of every queued job: how much its verdict should change the reward of the bandit's next choice. A
    session of unknown category gets the worth of the median arm.

    Also mark jobs queued longer than JUDGE_NEW_MINUTES as backlog, except the jobs of stale verdicts. Returns how many
    jobs changed.
    """
    now = now or clock.now()
    new_since = now - dt.timedelta(minutes=settings.JUDGE_NEW_MINUTES)
    queued = JudgeJob.objects.queued()
    changed = queued.filter(backlog=False, stale=False, created_at__lt=new_since).update(backlog=True)
    # Further readings come after everything else: their worth stays 0.
    jobs = list(queued.exclude(purpose=Purpose.SAMPLE).order_by("pk").values_list("pk", "session__category", "worth"))
    if not jobs:
        return changed
    worths = priority.by_arm(now)
    median_worth = sorted(worths.values())[len(worths) // 2] if worths else 0.0
    jobs_by_worth: dict[float, list[int]] = defaultdict(list)
    for job, arm, old_worth in jobs:
        worth = median_worth if arm is None else worths.get(arm, median_worth)
        if worth != old_worth:
            jobs_by_worth[worth].append(job)
    for worth, keys in jobs_by_worth.items():
        for start in range(0, len(keys), CHUNK_SIZE):
            JudgeJob.objects.filter(pk__in=keys[start : start + CHUNK_SIZE]).update(worth=worth)
    return changed + sum(map(len, jobs_by_worth.values()))


def due_jobs(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The queued jobs whose time has come, for judges in these roles."""
    return JudgeJob.objects.queued().filter(next_attempt_at__lte=now, judge__in=roles)


def batched_roles(now: dt.datetime, roles: Collection[JudgeRole], policy: JudgePolicy | None = None) -> list[JudgeRole]:
    """Those of `roles` whose judge's backlog is sent in batches now; none if the policy does not use batches.

    The judge's quota must be open, enough jobs must wait for it, and the provider must not have refused a batch of this
    role recently.
    """
    if not (policy or JudgePolicy.objects.current()).use_batches:
        return []
    configured = judges.configured()
    least = settings.JUDGE_BATCH_LEAST
    batched: list[JudgeRole] = []
    for role in roles:
        if role not in configured or quota.current(configured[role]).is_out:
            continue
        refused = JudgeBatch.objects.filter(judge=role, state=BatchState.ENDED, provider_id="")
        if refused.filter(ended_at__gt=now - REFUSED_FOR).exists():
            continue
        if batch_jobs(now, role)[:least].count() == least:
            batched.append(role)
    return batched


def single_call_jobs(now: dt.datetime, roles: Collection[JudgeRole]) -> QuerySet[JudgeJob]:
    """The due jobs that are judged in calls of their own, the most urgent first. A backlog that is sent in batches is
    left out.

    The order: jobs of stale verdicts; reserved jobs, while they had less than their share of the latest calls; jobs of
    new sessions; the backlog. Within each group the agents take turns. An agent's jobs go by worth, those of the same
    worth by age.
    """
    policy = JudgePolicy.objects.current()
    jobs = due_jobs(now, roles).exclude(backlog=True, reserved=False, judge__in=batched_roles(now, roles, policy))
    calls = JudgeAttempt.objects.filter(judge__in=roles, batch=None).order_by("-pk")
    latest_calls = list(calls.values_list("job__reserved", "job__session__agent")[:CALLS_SHARED])
    reserved_calls = sum(is_reserved for is_reserved, _agent in latest_calls)
    reserved_go_first = may_go_first(reserved_calls, len(latest_calls), policy.reserved_share)
    tiers = TIERS if reserved_go_first else TIERS_UNRESERVED
    return by_turns(jobs, tiers, [agent for _is_reserved, agent in latest_calls])


def by_turns(jobs: QuerySet[JudgeJob], tiers: Sequence[str], latest_agents: Iterable[int] = ()) -> QuerySet[JudgeJob]:
    """Order jobs by `tiers`, and within a tier in rounds with one job of each agent.

    `latest_agents` are the agents of the latest calls, the last call first. In each round, the agent whose last call is
    longest ago comes first.
    """
    # By agent, how many other agents have had a call since its last one.
    calls_ago = {agent: number for number, agent in enumerate(dict.fromkeys(latest_agents))}
    turn = Window(
        RowNumber(),
        partition_by=[*(tier.removeprefix("-") for tier in tiers), "session__agent"],
        order_by=["-worth", "pk"],
    )
    jobs = jobs.annotate(turn=turn)
    order = [*tiers, "turn"]
    if calls_ago:
        whens = [When(session__agent=agent, then=number) for agent, number in calls_ago.items()]
        jobs = jobs.annotate(calls_ago=Case(*whens, default=len(calls_ago)))
        order.append("-calls_ago")
    return jobs.order_by(*order, "-worth", "pk")


def batch_jobs(now: dt.datetime, role: JudgeRole) -> QuerySet[JudgeJob]:
    """The due jobs that may go in a batch, the most urgent first."""
    return by_turns(due_jobs(now, [role]).filter(backlog=True, reserved=False), TIERS)
