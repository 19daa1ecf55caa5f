"""Posteriors for pages, the API and selection: read the buckets once, fold them with the policy in force."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from bandit import rectifying
from bandit.core.posterior import ArmPosterior, Policy, Posterior, fold, oldest_day
from bandit.core.propensity import propensities
from bandit.core.table import Row
from bandit.models import Bandit, Bucket


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


def site_day(now: datetime) -> date:
    """The day of `now` in the site's time zone."""
    return timezone.localtime(now, timezone.get_default_timezone()).date()


def policy_of(bandit: Bandit) -> Policy:
    """The policy in force, the latest rectifier's offsets included: one query."""
    rectifier = rectifying.in_force(bandit)
    version = f"{bandit.name}/{bandit.policy_version}"
    return Policy(
        half_life=bandit.half_life_days,
        long_run_half_life=bandit.long_run_half_life_days,
        prior_strength=bandit.prior_strength,
        evidence_scale=bandit.evidence_scale,
        floor=bandit.floor,
        weights=settings.EVIDENCE_WEIGHTS,
        version=version if rectifier is None else f"{version} rectifier/{rectifier.version}",
        rectifier={} if rectifier is None else rectifying.offsets_of(rectifier),
    )


def rows_of(bandit: Bandit, today: date) -> list[Row]:
    """What the ledger amounts to, by arm, source, stratum and day: one query, exact integers."""
    read = (oldest_day(bandit.long_run_half_life_days, today), today)
    buckets = Bucket.objects.filter(bandit=bandit, effective_day__range=read, n__gt=0)
    keys = buckets.values_list("arm__name", "grader__source", "grader__stratum", "effective_day")
    sums = keys.annotate(Sum("n"), Sum("s"), Sum("q")).order_by()
    return [
        Row(arm=arm, source=source, stratum=stratum, day=day, n=int(n), s=int(s), q=int(q))
        for arm, source, stratum, day, n, s, q in sums
    ]


def posterior_of(bandit: str, now: datetime) -> Outlook:
    """What the bandit believes at `now`. Raises UnknownBandit."""
    row, today = Bandit.objects.named(bandit), site_day(now)
    return outlook(row, policy_of(row), rows_of(row, today), today)


def chances(best: Mapping[str, float], floor: float, factors: Mapping[str, float] | None = None) -> dict[str, float]:
    """π over the arms of `best`: P(best), times an arm's factor if it has one, above the floor. Empty for no arms."""
    if not best:
        return {}
    scaled = np.array([chance * (factors or {}).get(name, 1.0) for name, chance in best.items()])
    return dict(zip(best, propensities(scaled, floor=floor).tolist(), strict=True))


def outlook(bandit: Bandit, policy: Policy, rows: Iterable[Row], today: date) -> Outlook:
    """What the bandit would believe on the day `today` with this policy and these rows. One query."""
    arms = bandit.arms.all()
    posterior = fold(rows, arms=[arm.name for arm in arms], policy=policy, today=today)
    choosable = [arm.name for arm in arms if not arm.paused and arm.retired_at is None]
    return Outlook(posterior=posterior, chances=chances(posterior.chance_of_best(choosable), bandit.floor))
