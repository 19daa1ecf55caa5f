"""Posteriors for pages, the API and selection: read the buckets once, fold them with the policy in force."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from bandit import ledger
from bandit.core.posterior import ArmPosterior, Policy, Posterior, fold, oldest_day
from bandit.core.propensity import propensities
from bandit.core.table import Row
from bandit.models import Arm, Bandit, Bucket


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A bandit's posterior, and how often each arm that can be chosen at all would be chosen from it.

    `chances` leaves out paused and retired arms; it knows nothing of supply, limits and feedback, which are a
    decision's own.
    """

    posterior: Posterior
    chances: Mapping[str, float]

    @property
    def arms(self) -> Mapping[str, ArmPosterior]:
        return self.posterior.arms

    def share_of_next_100(self, arm: str) -> float:
        """Expected number of the next hundred decisions that choose this arm."""
        return 100 * self.chances.get(arm, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What may become of one observation: `source` gives it `value` in [0, 1] (None: no reward) on `arm` for `day`."""

    observation: str
    arm: str
    value: float | None
    source: str
    day: date


def site_day(now: datetime) -> date:
    """The day of `now` in the site's time zone."""
    return timezone.localtime(now, timezone.get_default_timezone()).date()


def policy_of(bandit: Bandit) -> Policy:
    return Policy(
        half_life=bandit.half_life_days,
        long_run_half_life=bandit.long_run_half_life_days,
        prior_strength=bandit.prior_strength,
        evidence_scale=bandit.evidence_scale,
        floor=bandit.floor,
        weights=settings.EVIDENCE_WEIGHTS,
        version=f"{bandit.name}/{bandit.policy_version}",
    )


def rows_of(bandit: Bandit, today: date) -> list[Row]:
    """What the ledger amounts to, by arm, source and day: one query, exact integers."""
    read = (oldest_day(policy_of(bandit), today), today)
    buckets = Bucket.objects.filter(bandit=bandit, effective_day__range=read, n__gt=0)
    sums = buckets.values_list("arm__name", "grader__source", "effective_day").annotate(Sum("n"), Sum("s"), Sum("q"))
    return [
        Row(arm=arm, source=source, day=day, n=int(n), s=int(s), q=int(q))
        for arm, source, day, n, s, q in sums.order_by()
    ]


def posterior_of(bandit: str, now: datetime) -> Outlook:
    """What the bandit believes at `now`. Raises UnknownBandit."""
    row, today = Bandit.objects.named(bandit), site_day(now)
    return _outlook(row, list(row.arms.all()), rows_of(row, today), today)


def what_if(
    *,
    bandit: str,
    observation: str,
    arm: str,
    value: float | None,
    source: str,
    effective_day: date,
    now: datetime,
) -> tuple[Outlook, Outlook]:
    """The outlook now, and as it would be if `source` gave this observation `value` (None: no reward) on `arm`.

    As `what_if_many` of this one change, and raises the same.
    """
    change = Change(observation=observation, arm=arm, value=value, source=source, day=effective_day)
    return what_if_many(bandit, [change], now)


def what_if_many(bandit: str, changes: Sequence[Change], now: datetime) -> tuple[Outlook, Outlook]:
    """The outlook now, and as it would be after all of `changes`, in any order.

    What is live for their observations is taken out, on every arm, as corrections would. Nothing is saved. Four
    queries, and one for each arm named. Raises UnknownBandit, UnknownArm, or ValueError for a value outside [0, 1] or
    an observation that is changed twice.
    """
    row, today = Bandit.objects.named(bandit), site_day(now)
    arms, rows = list(row.arms.all()), rows_of(row, today)
    observations = {change.observation for change in changes}
    if len(observations) < len(changes):
        raise ValueError(f"{len(changes)} changes of {len(observations)} observations; change each one once")
    taken = [
        _single(entry.arm.name, entry.grader.source, entry.effective_day, entry.value_micro, -1)
        for entry in ledger.live_entries_of(bandit, observations)
    ]
    changed = [*rows, *taken, *_given(bandit, changes)]
    return _outlook(row, arms, rows, today), _outlook(row, arms, changed, today)


def chances(best: Mapping[str, float], floor: float, factors: Mapping[str, float] | None = None) -> dict[str, float]:
    """π over the arms of `best`: P(best), times an arm's factor if it has one, above the floor. Empty for no arms."""
    if not best:
        return {}
    scaled = np.array([chance * (factors or {}).get(name, 1.0) for name, chance in best.items()])
    return dict(zip(best, propensities(scaled, floor=floor).tolist(), strict=True))


def _given(bandit: str, changes: Iterable[Change]) -> list[Row]:
    """The rewards that the changes would give, as rows."""
    names = {text: Arm.objects.resolve(bandit, text).name for text in {each.arm for each in changes}}
    found = []
    for change in changes:
        if change.value is not None:
            credit = ledger.Credit(value=change.value, grader=ledger.GraderKey(source=change.source))
            found.append(_single(names[change.arm], change.source, change.day, credit.micro, 1))
    return found


def _single(arm: str, source: str, day: date, micro: int, sign: int) -> Row:
    return Row(arm=arm, source=source, day=day, n=sign, s=sign * micro, q=sign * micro**2)


def _outlook(bandit: Bandit, arms: list[Arm], rows: Iterable[Row], today: date) -> Outlook:
    posterior = fold(rows, arms=[arm.name for arm in arms], policy=policy_of(bandit), today=today)
    choosable = [arm.name for arm in arms if not arm.paused and arm.retired_at is None]
    return Outlook(posterior=posterior, chances=chances(posterior.chance_of_best(choosable), bandit.floor))
