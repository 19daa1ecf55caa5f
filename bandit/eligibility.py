"""Which arms may be chosen, decided before any draw, and the feedback from recent consumption sessions."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from bandit.core.agents import AgentCaps
from bandit.core.table import MICRO, RewardRow, RewardRows
from bandit.core.thompson import Feedback, feedback
from bandit.models import Arm, Bandit, Bucket, LedgerEntry, PolicyVersion, Selection
from bandit.reading import weights_of

NO_WORK, NOT_OFFERED = "no work available", "not in the supply given"
# An arm whose last sessions today, this many, were all run by other arms is left out until the day is over.
MIN_SUBSTITUTED = 3
# If this many of an arm's decisions in a row led to no finished session, the explanation says so.
MIN_UNFINISHED = 10
# The odds of an arm don't matter if it had no work in MIN_WITHOUT_WORK of the latest SUPPLY_DECISIONS ones.
SUPPLY_DECISIONS, MIN_WITHOUT_WORK = 20, 16
# Decisions whose arm was drawn, not named by an override.
DRAWN = Q(override__isnull=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayUse:
    """What counts against a day's limits: the number of `consumption` sessions, and of decisions for each arm.

    `decided` is by the id of the arm that ran; before one ran, the chosen arm.
    """

    consumption: int = 0
    decided: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What eligibility depends on: the caller's `supply` and `context`, the policy, and what happened so far.

    `rewarded` counts each arm's rewards by its name. `own` is the asking agent's use today, `fleet` that of all agents.
    `substitutes` has the arms that the agent seems unable to run today, because other arms ran in each of its last
    MIN_SUBSTITUTED sessions with them. It maps the arm's id to the name of the arm that ran last instead.
    """

    version: PolicyVersion
    supply: Mapping[str, int] | None
    context: Arm | None
    rewarded: Mapping[str, int]
    own: DayUse
    fleet: DayUse
    substitutes: Mapping[int, str]

    def is_on_probation(self, arm: Arm) -> bool:
        return is_on_probation(arm, self.rewarded.get(arm.name, 0), self.version)


def is_on_probation(arm: Arm, rewards: int, version: PolicyVersion) -> bool:
    """Whether the arm is on probation, which ends with the number of rewards in the policy."""
    return arm.probation and rewards < version.probation_sessions


def out_of_use(arm: Arm) -> str:
    """Why the arm is never chosen, retired or paused; empty if it is in use."""
    if arm.retired_at:
        return f"retired on {arm.retired_at:%Y-%m-%d}"
    return "paused" if arm.paused else ""


def context_of(bandit: Bandit, text: str) -> Arm | None:
    """The arm of the bandit's baseline that the caller works in; None for a blank text.

    Raises UnknownArm, or ValueError for a bandit without a baseline.
    """
    if not text:
        return None
    if bandit.baseline is None:
        raise ValueError(f"the bandit {bandit.name!r} takes no context; got {text[:50]!r}: leave it out")
    return Arm.objects.resolve(bandit.baseline.name, text)


def reason_against(arm: Arm, now: Circumstances) -> str:
    """Why the arm may not be chosen in the circumstances `now`; empty if it may."""
    if reason := out_of_use(arm):
        return reason
    if now.supply is not None and not now.supply.get(arm.name):
        return NO_WORK if arm.name in now.supply else NOT_OFFERED
    version, own, fleet = now.version, now.own, now.fleet
    if arm.is_consumption:
        reason = used_up(own.consumption, version.consumption_per_agent, "consumption sessions")
        reason = reason or used_up(fleet.consumption, version.consumption_per_day, "consumption sessions of all agents")
        if reason:
            return reason
    if arm.pk in now.substitutes:
        return f"substituted: its last {MIN_SUBSTITUTED} sessions today were run by {now.substitutes[arm.pk]}"
    if not now.is_on_probation(arm):
        return ""
    if now.context is not None and not now.context.is_low_stakes:
        return f"on probation, so it is chosen only for low-stakes work, and {now.context.name} is not low-stakes"
    reason = used_up(own.decided.get(arm.pk, 0), version.probation_per_agent, "sessions")
    reason = reason or used_up(fleet.decided.get(arm.pk, 0), version.probation_per_day, "sessions of all agents")
    return f"on probation: {reason}" if reason else ""


def used_up(used: int, limit: int | None, what: str) -> str:
    """A sentence that a day's limit is used up; empty if it isn't, or there is no limit."""
    return "" if limit is None or used < limit else f"{used} of {limit} {what} used today"


def circumstances(
    version: PolicyVersion,
    rewarded: Mapping[str, int],
    today: date,
    *,
    agent: str,
    exempt_agents: Collection[str] = (),
    supply: Mapping[str, int] | None,
    context: Arm | None,
) -> Circumstances:
    """The circumstances for this agent on the day `today`: at most seven queries.

    Decisions of `exempt_agents`, and overrides, do not count against limits that all agents share. Overrides count
    against the agent's own limits. A decision counts for the arm that ran, and for the chosen one until then.
    """
    bandit = version.bandit
    ran = Coalesce("executed_arm__merged_into", "executed_arm")
    decisions = _decisions_on(bandit, today).order_by("created", "pk").annotate(ran=ran, is_drawn=DRAWN)
    own_decided: Counter[int] = Counter()
    fleet_decided: Counter[int] = Counter()
    # By the chosen arm: the arms that ran in the agent's sessions, oldest first.
    executed_by_chosen: dict[int, list[int]] = {}
    for chosen, executed, decided_for, is_drawn in decisions.values_list("arm", "ran", "agent", "is_drawn"):
        arm = chosen if executed is None else executed
        if is_drawn and decided_for not in exempt_agents:
            fleet_decided[arm] += 1
        if decided_for == agent:
            own_decided[arm] += 1
            if executed is not None:
                executed_by_chosen.setdefault(chosen, []).append(executed)
    # Counted only if there is a limit, to save the queries.
    own_consumption = consumption_of(bandit, today, agent) if version.consumption_per_agent is not None else 0
    fleet_consumption = 0
    if version.consumption_per_day is not None:
        fleet_consumption = consumption_of_all(bandit, today, exempt_agents)
    return Circumstances(
        version=version,
        supply=supply,
        context=context,
        rewarded=rewarded,
        own=DayUse(consumption=own_consumption, decided=own_decided),
        fleet=DayUse(consumption=fleet_consumption, decided=fleet_decided),
        substitutes=_substitutes(executed_by_chosen),
    )


def _substitutes(executed_by_chosen: Mapping[int, Sequence[int]]) -> dict[int, str]:
    """`Circumstances.substitutes`, from the ids of the arms that ran for each chosen arm, the latest last.

    One session that ran the chosen arm shows that the agent can run it.
    """
    substitutes: dict[int, int] = {}
    for arm, executed_arms in executed_by_chosen.items():
        last = executed_arms[-MIN_SUBSTITUTED:]
        if len(last) == MIN_SUBSTITUTED and arm not in last:
            substitutes[arm] = last[-1]
    if not substitutes:
        return {}
    names = dict(Arm.objects.filter(pk__in=substitutes.values()).values_list("pk", "name"))
    return {arm: names[substitute] for arm, substitute in substitutes.items()}


def is_unfinished(arm: Arm) -> bool:
    """Whether none of the arm's latest MIN_UNFINISHED decisions led to a finished session. False if it has fewer."""
    latest = list(arm.selections.order_by("-created", "-pk").values_list("completed_at", flat=True)[:MIN_UNFINISHED])
    return len(latest) == MIN_UNFINISHED and not any(latest)


def supply_bound(bandit: Bandit) -> dict[str, int]:
    """The arms that had no work in at least MIN_WITHOUT_WORK of the bandit's latest SUPPLY_DECISIONS decisions, each
    with the number of decisions without work for it. Better odds wouldn't help these arms.
    """
    without_work: Counter[str] = Counter()
    for eligible in bandit.selections.values_list("eligible", flat=True)[:SUPPLY_DECISIONS]:  # odds or a reason by arm
        without_work.update(arm for arm, reason in eligible.items() if reason in {NO_WORK, NOT_OFFERED})
    return {arm: n for arm, n in without_work.items() if n >= MIN_WITHOUT_WORK}


def _decisions_on(bandit: Bandit, today: date) -> QuerySet[Selection]:
    """The bandit's decisions of this site-local day."""
    start = timezone.make_aware(datetime.combine(today, time()), timezone.get_default_timezone())
    return Selection.objects.filter(bandit=bandit, created__gte=start, created__lt=start + timedelta(days=1))


def consumption_of(bandit: Bandit, today: date, agent: str) -> int:
    """The agent's consumption sessions on this site-local day: those with a reward, and decisions without one yet.

    An abandoned decision counts, because it may still lead to a session.
    """
    rewarded = Bucket.objects.rewards().filter(**_consumption_filter(bandit, today), grader__agent=agent)
    return _count_rewards(rewarded) + _unrewarded(bandit, today).filter(agent=agent).count()


def consumption_of_all(bandit: Bandit, today: date, exempt_agents: Collection[str] = ()) -> int:
    """The consumption sessions of all agents on this site-local day, counted as `consumption_of` counts one agent's.

    Sessions of exempt agents, and those that an override asked for, are left out.
    """
    unrewarded = _unrewarded(bandit, today).filter(DRAWN).exclude(agent__in=exempt_agents)
    consumption = _consumption_filter(bandit, today)
    rewarded = Bucket.objects.rewards().filter(**consumption).exclude(grader__agent__in=exempt_agents)
    # Buckets don't tell which rewards followed an override: these are counted in the ledger and subtracted.
    overrides = Selection.objects.filter(~DRAWN, bandit=bandit).exclude(observation="").exclude(agent__in=exempt_agents)
    rewards = LedgerEntry.objects.rewards().filter(**consumption).live()
    overridden = rewards.filter(observation__in=overrides.values("observation"))
    return _count_rewards(rewarded) - overridden.count() + unrewarded.count()


def _consumption_filter(bandit: Bandit, today: date) -> dict[str, Any]:
    """The lookups of buckets or ledger entries for the day's rewards of consumption arms."""
    return {"bandit": bandit, "arm__is_consumption": True, "effective_day": today}


def _count_rewards(buckets: QuerySet[Bucket]) -> int:
    return int(buckets.aggregate(total=Sum("n"))["total"] or 0)


def _unrewarded(bandit: Bandit, today: date) -> QuerySet[Selection]:
    """The day's decisions for a consumption arm that have no live reward.

    The arm is the one that ran or, until one ran, the chosen one.
    """
    is_consumption = Q(executed_arm__is_consumption=True) | Q(executed_arm=None, arm__is_consumption=True)
    live = LedgerEntry.objects.rewards().filter(bandit=bandit, observation=OuterRef("observation")).live()
    return _decisions_on(bandit, today).filter(is_consumption).exclude(Exists(live))


def consumption_feedback(
    rows: Iterable[RewardRow],
    names: list[str],
    version: PolicyVersion,
    today: date,
    caps: AgentCaps | None = None,
) -> dict[str, Feedback]:
    """The boost or penalty of each consumption arm in `names`, by its name; arms without either are left out.

    It depends on the mean of the arm's rewards in the policy's window of days, from sources with any weight. Rewards
    beyond an agent's cap count less in the mean.
    """
    since, weights = today - timedelta(days=version.consumption_window_days), weights_of(version)
    table = RewardRows.from_rows(rows)
    has_weight = table.mask(lambda kind: kind.arm in names and bool(weights.get(kind.source)))
    recent = table.select(has_weight & (table.day > since.toordinal()))
    factors = (caps or AgentCaps()).factors(recent)
    arms = recent.map_kinds(lambda kind: kind.arm, object)
    feedback_by_arm = {}
    for name in names:
        own = arms == name
        counts, values = recent.sums[own, :2].T  # the number of rewards in each row, and their sum in micro-units
        weighted_count = math.fsum(factors[own] * counts)
        weighted_sum = math.fsum(factors[own] * values)
        mean = weighted_sum / weighted_count / MICRO if weighted_count else 0.0
        own_feedback = feedback(
            int(counts.sum()),
            mean,
            boost=version.consumption_boost,
            penalty=version.consumption_penalty,
            window=version.consumption_window_days,
            min_samples=version.consumption_min_samples,
        )
        if own_feedback:
            feedback_by_arm[name] = own_feedback
    return feedback_by_arm
