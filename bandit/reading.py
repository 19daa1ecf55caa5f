"""Posteriors for pages, the API and selection: buckets are read once and folded under the effective policy.

There are two clocks. A reading on the day `today` leaves out what happened later. One `known_by` a moment leaves out
what was recorded later, whatever it was about: rewards, corrections, policies and calibrations.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from types import MappingProxyType

from django.conf import settings
from django.db.models import Max, Q, Sum
from django.utils import timezone

from bandit import versions
from bandit.buckets import read_sums
from bandit.core.calibration import VERDICT_DAYS, verdict_sources
from bandit.core.change import DecidedBreak
from bandit.core.policy import Policy
from bandit.core.posterior import Outlook, Posterior, fold, plain_means
from bandit.core.posterior import outlook as outlook_on
from bandit.core.residual import Baseline, apply_baseline, baseline
from bandit.core.table import ABSTAINED, RewardRow, RewardRows
from bandit.models import (
    Arm,
    Bandit,
    BanditKind,
    BreakDecision,
    Bucket,
    CalibrationVersion,
    PolicyVersion,
)

# The pages of one bandit need a dozen.
CACHED_READINGS = 64
# Separates the two parts of an arm's name.
PART = "/"


@dataclass(frozen=True, kw_only=True, eq=False)
class BanditReading:
    """A bandit's reward rows on one day, and what follows from them.

    `productive` and `abstentions` count, by the arm's name, the rewards above PRODUCTIVE and the observations that
    could not be graded; arms without any are left out.
    """

    rows: RewardRows
    posterior: Posterior
    productive: Mapping[str, int]
    abstentions: Mapping[str, int]

    @cached_property
    def plain_means(self) -> dict[str, float]:
        """The mean of each arm's rewards as the policy reads them, without prior and decay."""
        posterior = self.posterior
        return plain_means(self.rows, arms=posterior.names, policy=posterior.policy, today=posterior.day)

    @cached_property
    def baseline(self) -> Baseline:
        """The arms' means, as the baseline of another bandit, before merges are taken into account."""
        return baseline(self.rows, self.posterior.policy, self.posterior.day)

    @cached_property
    def rewarded(self) -> dict[str, int]:
        """The number of each arm's rewards, without abstentions: 0 for an arm that has only those."""
        counts = Counter[str]()
        for kind, (n, *_) in self.rows.totals():
            counts[kind.arm] += 0 if kind.source == ABSTAINED else n
        return counts


def read(bandit: Bandit, policy: Policy, arms: Iterable[str], today: date) -> BanditReading:
    """The reading of these arms on the day `today`; cached until the bandit's revision changes.

    `bandit` must be freshly loaded, in this transaction if there is one, because its revision is the cache key. A
    revision is never used twice (`ledger.touch`), so one that was rolled back does no harm. At revision 0 nothing was
    recorded yet, and nothing is cached.
    """
    names = tuple(sorted(set(arms)))
    if not bandit.revision:
        return _fold(bandit, policy, names, today, known_by=None)
    return _read(bandit, bandit.revision, policy, names, today)


# The one cache of rows in this package: folded posteriors, by the bandit's revision. Every page of a bandit and every
# decision needs one, and most come between two rewards. CPU of `posterior_of` on a machine of two cores, SQLite:
#
#     buckets of the bandit      2,000   20,000   60,000
#     read and folded            23 ms   110 ms   345 ms
#     cached                      6 ms     5 ms     7 ms
@lru_cache(maxsize=CACHED_READINGS)
def _read(
    bandit: Bandit,
    revision: int,  # noqa: ARG001 - part of the key
    policy: Policy,
    arms: tuple[str, ...],
    today: date,
) -> BanditReading:
    return _fold(bandit, policy, arms, today, known_by=None)


def _fold(bandit: Bandit, policy: Policy, arms: Iterable[str], today: date, known_by: datetime | None) -> BanditReading:
    """The reading of these arms on the day `today`, from the rows recorded until `known_by`; not cached."""
    sums = read_sums(bandit, days_read(policy, today), known_by)
    rows = sums.rows(with_abstentions=policy.reads_abstentions)
    posterior = fold(rows, arms=arms, policy=policy, today=today)
    return BanditReading(rows=rows, posterior=posterior, productive=sums.productive, abstentions=sums.abstentions)


def rows_of(bandit: Bandit, policy: Policy, today: date, known_by: datetime | None = None) -> RewardRows:
    """The bandit's rewards as rows of exact integers, one for each key, as far back as the policy reads.

    Abstentions are included if the policy's calibration gives them a value. Three queries.
    """
    sums = read_sums(bandit, days_read(policy, today), known_by)
    return sums.rows(with_abstentions=policy.reads_abstentions)


def days_read(policy: Policy, today: date) -> tuple[date, date]:
    """The first and the last day whose rewards count on the day `today`."""
    return date.fromordinal(max(1, today.toordinal() - policy.days_read)), today


def site_day(now: datetime) -> date:
    """The day of `now` in the site's time zone."""
    return timezone.localtime(now, timezone.get_default_timezone()).date()


def arms_of(bandit: Bandit) -> list[Arm]:
    """All of its arms, by name. One query."""
    arms = list(Arm.objects.filter(bandit=bandit).select_related("merged_into"))
    for arm in arms:
        arm.bandit = bandit
    return arms


def verdicts_of(bandit: Bandit, arm: str, weights: Mapping[str, float], today: date) -> int:
    """The arm's verdicts before today, in the VERDICT_DAYS up to the last one. Two queries.

    Those of a source without any of the policy's `weights` don't count.
    """
    sources = verdict_sources(weights)
    verdicts = Bucket.objects.filter(bandit=bandit, arm__name=arm, grader__source__in=sources, n__gt=0)
    verdicts = verdicts.filter(effective_day__lt=today)
    last = verdicts.aggregate(last=Max("effective_day"))["last"]
    if last is None:
        return 0
    recent = verdicts.filter(effective_day__gt=last - timedelta(days=VERDICT_DAYS))
    return int(recent.aggregate(n=Sum("n"))["n"])


# --- the policy ------------------------------------------------------------------------------------------------------


def version_of(bandit: Bandit, known_by: datetime | None = None) -> PolicyVersion:
    """The latest version of the bandit's policy, or the latest made by `known_by`; an unsaved version 0 with the
    defaults if there is none.
    """
    return versions.latest(bandit.policies.all(), known_by) or PolicyVersion(bandit=bandit, version=0, by="defaults")


def weights_of(version: PolicyVersion) -> dict[str, float]:
    """The weight of each source: the site's, unless this version has its own."""
    return {**settings.EVIDENCE_WEIGHTS, **version.weights}


@dataclass(frozen=True, kw_only=True, eq=False)
class EffectivePolicy:
    """All that determines how a bandit is read, now or as recorded until `known_by`; loaded once for many readings.

    `bandit` is freshly loaded. `calibration` is the latest version, enabled or not; the `policy` takes account of it if
    it is enabled, but not of the baseline, which depends on the day. `break_decisions` is empty unless the `version`
    follows change.
    """

    bandit: Bandit
    known_by: datetime | None
    version: PolicyVersion
    calibration: CalibrationVersion | None
    break_decisions: Sequence[BreakDecision]
    policy: Policy

    @cached_property
    def arms(self) -> list[Arm]:
        """All of its arms, by name."""
        return arms_of(self.bandit)

    def policy_on(self, today: date) -> Policy:
        """The policy with the baseline of the day `today`."""
        if today not in self._policies:
            self._policies[today] = with_baseline(self.bandit, self.policy, today, self.known_by)
        return self._policies[today]

    @cached_property
    def _policies(self) -> dict[date, Policy]:
        return {}

    def rows(self, today: date) -> RewardRows:
        """The bandit's rewards on the day `today`, as `rows_of` returns them."""
        if self.known_by is None:
            return self.outlook(today)[0].rows  # of a cached reading
        return rows_of(self.bandit, self.policy, today, self.known_by)

    def outlook(self, today: date, policy: Policy | None = None) -> tuple[BanditReading, Outlook]:
        """The bandit's reading and outlook on the day `today`, under another policy if one is passed in."""
        policy = policy or self.policy_on(today)
        names = [arm.name for arm in self.arms]
        if self.known_by is None:
            reading = read(self.bandit, policy, names, today)
        else:
            reading = _fold(self.bandit, policy, names, today, self.known_by)
        return reading, outlook_on(reading.posterior, _choosable(self.arms))


def policy_of(bandit: Bandit, known_by: datetime | None = None) -> Policy:
    """The effective policy with its calibration, but without a baseline. Three queries at most."""
    return effective_policy(bandit, known_by).policy


def effective_policy(
    bandit: Bandit, known_by: datetime | None = None, *, version: PolicyVersion | None = None
) -> EffectivePolicy:
    """How this freshly loaded bandit is read now, or was as recorded until `known_by`. Three queries at most.

    `version` is used instead of the policy's latest version; it need not be saved.
    """
    version = version or version_of(bandit, known_by)
    calibration = versions.latest(bandit.calibrations.all(), known_by)
    break_decisions: list[BreakDecision] = []
    if version.follows_change:
        decisions = bandit.break_decisions.select_related("arm").order_by("created_at", "pk")
        if known_by is not None:
            decisions = decisions.filter(created_at__lte=known_by)
        break_decisions = list(decisions)
    policy = policy_from(version, versions.if_enabled(calibration), break_decisions)
    return EffectivePolicy(
        bandit=bandit,
        known_by=known_by,
        version=version,
        calibration=calibration,
        break_decisions=break_decisions,
        policy=policy,
    )


def policy_from(
    version: PolicyVersion,
    calibration: CalibrationVersion | None = None,
    break_decisions: Iterable[BreakDecision] = (),
) -> Policy:
    """The `Policy` of this version, saved or not, without a baseline. One query if its arms share evidence by parts.

    `calibration` is None if none is in effect. `break_decisions` are in the order in which they were made; the last one
    for each arm and day counts.
    """
    latest_decisions = {(each.arm.name, each.day): each for each in break_decisions}
    decisions = tuple(
        DecidedBreak(arm=arm, day=day, is_confirmed=each.kept, decided=site_day(each.created_at))
        for (arm, day), each in sorted(latest_decisions.items())
    )
    # The name of the resulting policy. Decisions on breaks have no version number, so a hash stands for them.
    version_names = [str(version)]
    if calibration is not None:
        version_names.append(f"calibration/{calibration.version}")
    if decisions:
        text = "\n".join(repr(each) for each in decisions)
        version_names.append(f"breaks/{hashlib.sha256(text.encode()).hexdigest()[:8]}")
    return Policy(
        half_life=version.half_life_days,
        long_run_half_life=version.long_run_half_life_days,
        prior_strength=version.prior_strength,
        evidence_scale=version.evidence_scale,
        floor=version.floor,
        weights=weights_of(version),
        version=" ".join(version_names),
        offsets={} if calibration is None else calibration.offset_by_stratum,
        salience_floor=version.salience_floor,
        caps=version.caps,
        evidence_cap=version.evidence_cap,
        cost_weight=version.cost_weight,
        standings=settings.STANDING_WEIGHTS,
        calibration=None if calibration is None else calibration.fallback_calibration,
        exploration=version.exploration,
        sharpness=version.sharpness,
        follows_change=version.follows_change,
        varies_by_day=version.varies_by_day,
        decisions=decisions,
        parts=parts_of(version.bandit) if version.pooling else {},
        agent_cap=version.agent_cap,
        agent_cap_alone=version.agent_cap_alone,
    )


def parts_of(bandit: Bandit, preview_merges: Mapping[str, str] = MappingProxyType({})) -> dict[str, tuple[str, str]]:
    """Maps the name of each arm with parts to them: "first/second" to ("first", "second").

    An arm "first", if other arms have that as their first part, is mapped to ("first", ""). All other arms are left
    out. A merged part counts as the one that it was merged into: first parts are arms of this bandit, second parts arms
    of a bandit of kind NAMES. `preview_merges` maps first parts to those that a preview would merge them into. One
    query.
    """
    arms = Arm.objects.filter(Q(bandit=bandit) | Q(bandit__kind=BanditKind.NAMES)).order_by("pk")
    names: list[str] = []
    merged_firsts: dict[str, str] = {}
    merged_seconds: dict[str, str] = {}
    for bandit_id, name, merged_into in arms.values_list("bandit", "name", "merged_into__name"):
        if bandit_id == bandit.pk:
            names.append(name)
        if merged_into is not None:
            merged = merged_firsts if bandit_id == bandit.pk else merged_seconds
            merged[name] = merged_into
    parts = {}
    for name in names:
        first, _, second = name.partition(PART)
        first = merged_firsts.get(first, first)
        parts[name] = preview_merges.get(first, first), merged_seconds.get(second, second)
    firsts_of_pairs = {first for first, second in parts.values() if second}
    return {name: (first, second) for name, (first, second) in parts.items() if first in firsts_of_pairs}


# --- baselines and outlooks ------------------------------------------------------------------------------------------


def with_baseline(
    bandit: Bandit,
    policy: Policy,
    today: date,
    known_by: datetime | None = None,
    *,
    extra_rows: Sequence[RewardRow] = (),
) -> Policy:
    """The policy with the bandit's baseline on the day `today`; unchanged if the bandit has none.

    `extra_rows` are added to the rewards that the baseline is computed from, for a what-if.
    """
    offsets = baseline_of(bandit, today, known_by, extra_rows=extra_rows)
    return policy if offsets is None else apply_baseline(policy, offsets)


def baseline_of(
    bandit: Bandit, today: date, known_by: datetime | None = None, *, extra_rows: Sequence[RewardRow] = ()
) -> Baseline | None:
    """The means of another bandit's arms that this bandit's rewards are adjusted by; None if it has no baseline.

    A merged arm has the mean of its target. `known_by` and `extra_rows` are those of `with_baseline`. Six queries.
    """
    if bandit.baseline_id is None:
        return None
    other = Bandit.objects.get(pk=bandit.baseline_id)  # freshly loaded: its revision is part of the cache's key
    policy = policy_of(other, known_by)
    merged_into = dict(other.arms.values_list("name", "merged_into__name"))
    if known_by is None and not extra_rows:
        offsets = read(other, policy, merged_into.keys(), today).baseline
    else:
        offsets = baseline(rows_of(other, policy, today, known_by).plus(extra_rows), policy, today)
    return offsets.with_merged({name: into for name, into in merged_into.items() if into is not None})


def posterior_of(bandit: str, now: datetime, *, known_by: datetime | None = None) -> Outlook:
    """The bandit's outlook at `now`, from what was recorded until `known_by` if given. Raises UnknownBandit."""
    return effective_policy(Bandit.objects.named(bandit), known_by).outlook(site_day(now))[1]


def outlook(
    bandit: Bandit, policy: Policy, rows: Iterable[RewardRow], today: date, *, arms: Sequence[Arm] | None = None
) -> Outlook:
    """The outlook that the bandit would have on the day `today` with this policy and these rows.

    `arms` are all of its arms, loaded in one query if they aren't passed in.
    """
    arms = arms_of(bandit) if arms is None else arms
    posterior = fold(rows, arms=[arm.name for arm in arms], policy=policy, today=today)
    return outlook_on(posterior, _choosable(arms))


def _choosable(arms: Iterable[Arm]) -> list[str]:
    return [arm.name for arm in arms if arm.is_choosable]
