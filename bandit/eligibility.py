"""What may be chosen at all, decided before any draw, and what reading has led to lately."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from bandit.core.feedback import Feedback, Sizes, feedback
from bandit.core.table import MICRO, RewardRow
from bandit.models import Arm, Bandit, Bucket, LedgerEntry, PolicyVersion, Selection
from bandit.reading import weights_of

NO_WORK, NOT_OFFERED = "no work available", "not in the supply given"
# An arm that others ran for so many times in a row today is left out until the day is over.
SUBSTITUTED = 3
# So many decisions in a row that came to no finished session are worth a word.
UNFINISHED = 10
# An arm is bound by supply that had no work in so many of the latest decisions.
LATEST, BOUND = 20, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What decides who may be chosen: the caller's `supply` and `context`, the policy, what happened so far.

    `rewarded` counts each arm's rewards by its name; `decided` today's decisions by the id of the arm that ran, or is
    to run; `substitutes` names who ran for an arm, by its id, each of the last times today.
    """

    version: PolicyVersion
    supply: Mapping[str, int] | None
    context: Arm | None
    consumption: int
    rewarded: Mapping[str, int]
    decided: Mapping[int, int]
    substitutes: Mapping[int, str]

    def is_on_probation(self, arm: Arm) -> bool:
        return is_on_probation(arm, self.rewarded.get(arm.name, 0), self.version)


def is_on_probation(arm: Arm, rewards: int, version: PolicyVersion) -> bool:
    """A probation ends by itself, with as many rewards as the policy asks for."""
    return arm.probation and rewards < version.probation_sessions


def out_of_use(arm: Arm) -> str:
    """Why nobody may choose or draw the arm, whatever else holds; empty if somebody may."""
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
        raise ValueError(f"nothing is a context of the bandit {bandit.name!r}; got {text[:50]!r}: leave it out")
    return Arm.objects.resolve(bandit.baseline.name, text)


def reason_against(arm: Arm, now: Circumstances) -> str:
    """Why the arm may not be chosen now; empty if it may."""
    if reason := out_of_use(arm):
        return reason
    if now.supply is not None and not now.supply.get(arm.name):
        return NO_WORK if arm.name in now.supply else NOT_OFFERED
    limit = now.version.consumption_per_day
    if arm.is_consumption and now.consumption >= limit:
        return f"{now.consumption} of {limit} consumption sessions used today"
    if arm.pk in now.substitutes:
        return f"substituted: its last {SUBSTITUTED} sessions today were run by {now.substitutes[arm.pk]}"
    if not now.is_on_probation(arm):
        return ""
    if now.context is not None and not now.context.is_low_stakes:
        return f"on probation: tried in low-stakes work only, and {now.context.name} is not"
    used, limit = now.decided.get(arm.pk, 0), now.version.probation_per_day
    return f"on probation: {used} of {limit} sessions used today" if used >= limit else ""


def circumstances(
    bandit: Bandit,
    version: PolicyVersion,
    rewarded: Mapping[str, int],
    today: date,
    *,
    supply: Mapping[str, int] | None,
    context: Arm | None,
) -> Circumstances:
    """As they are on the day `today`: three queries."""
    ran = Coalesce("executed_arm__merged_into", "executed_arm")
    decisions = list(_of_day(bandit, today).order_by("created", "pk").annotate(ran=ran).values_list("arm", "ran"))
    consumption = consumption_today(bandit, today)
    runs: dict[int, list[int]] = {}
    for chosen, by in decisions:
        if by is not None:
            runs.setdefault(chosen, []).append(by)
    last = {arm: by[-SUBSTITUTED:] for arm, by in runs.items()}
    substituted = {arm: by[-1] for arm, by in last.items() if len(by) == SUBSTITUTED and arm not in by}
    names: dict[int, str] = {}
    if substituted:
        names = dict(Arm.objects.filter(pk__in=substituted.values()).values_list("pk", "name"))
    return Circumstances(
        version=version,
        supply=supply,
        context=context,
        consumption=consumption,
        rewarded=rewarded,
        decided=Counter(chosen if by is None else by for chosen, by in decisions),
        substitutes={arm: names[by] for arm, by in substituted.items()},
    )


def is_unfinished(arm: Arm) -> bool:
    """Whether none of the arm's latest decisions came to a finished session."""
    latest = list(arm.selections.order_by("-created", "-pk").values_list("completed_at", flat=True)[:UNFINISHED])
    return len(latest) == UNFINISHED and not any(latest)


def supply_bound(bandit: Bandit) -> dict[str, int]:
    """The arms that had no work in most of the latest decisions, and in how many of LATEST: a greater chance brings
    them nothing.
    """
    missing = Counter(
        arm
        for eligible in bandit.selections.values_list("eligible", flat=True)[:LATEST]
        for arm, why in eligible.items()
        if why in {NO_WORK, NOT_OFFERED}
    )
    return {arm: n for arm, n in missing.items() if n >= BOUND}


def _of_day(bandit: Bandit, today: date) -> QuerySet[Selection]:
    start = timezone.make_aware(datetime.combine(today, time()), timezone.get_default_timezone())
    return Selection.objects.filter(bandit=bandit, created__gte=start, created__lt=start + timedelta(days=1))


def consumption_today(bandit: Bandit, today: date) -> int:
    """Consumption sessions of this site-local day: rewarded ones, and decisions for one that have no reward yet.

    An abandoned decision counts: what it started is unknown until the day is over.
    """
    rewarded = Bucket.objects.rewards().filter(bandit=bandit, arm__is_consumption=True, effective_day=today)
    reading = Q(executed_arm__is_consumption=True) | Q(executed_arm=None, arm__is_consumption=True)
    live = LedgerEntry.objects.rewards().filter(bandit=bandit, observation=OuterRef("observation")).live()
    unrewarded = _of_day(bandit, today).filter(reading).exclude(Exists(live)).count()
    return unrewarded + int(rewarded.aggregate(total=Sum("n"))["total"] or 0)


def consumption_feedback(
    rows: list[RewardRow], names: list[str], version: PolicyVersion, today: date
) -> dict[str, Feedback]:
    """The boost or penalty of each consumption arm, from the rewards that carry weight."""
    sizes = Sizes(
        boost=version.consumption_boost,
        penalty=version.consumption_penalty,
        window=version.consumption_window_days,
        least=version.consumption_min_samples,
    )
    since, weights = today - timedelta(days=sizes.window), weights_of(version)
    moved = {}
    for name in names:
        recent = [row for row in rows if row.arm == name and row.day > since and weights.get(row.source)]
        n, s = sum(row.n for row in recent), sum(row.s for row in recent)
        found = feedback(n, s / n / MICRO if n else 0.0, sizes)
        if found:
            moved[name] = found
    return moved
