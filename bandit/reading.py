"""Posteriors for pages, the API and selection: read the buckets once, fold them with the policy in force.

There are two clocks. A reading of the day `today` leaves out what happened later; one `known_by` a moment leaves
out what was learnt later: rewards, corrections, policies and rectifiers alike, whatever they were about.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property, lru_cache
from types import MappingProxyType

from django.conf import settings
from django.db.models import BigIntegerField, Case, Q, Sum, Value, When
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from bandit import buckets, calibrating, rectifying, versions
from bandit.buckets import RewardSums
from bandit.core.advice import jumps
from bandit.core.change import DecidedBreak
from bandit.core.policy import Policy
from bandit.core.posterior import Outlook, Posterior, fold, plain_means
from bandit.core.posterior import outlook as outlook_on
from bandit.core.residual import Baseline, ContextRewards, apply_baseline, baseline
from bandit.core.table import ABSTAINED, RewardRow, RewardRows
from bandit.models import (
    PRODUCTIVE,
    SUMS,
    Arm,
    Bandit,
    BanditKind,
    BreakDecision,
    CalibrationVersion,
    LedgerEntry,
    PolicyVersion,
    Rectifier,
)

# The pages of a bandit ask for a dozen.
CACHED_READINGS = 64
# What stands between the two parts of an arm's name.
PART = "/"


@dataclass(frozen=True, kw_only=True, eq=False)
class BanditReading:
    """A bandit's rows on one day, and what follows from them.

    `productive` and `abstentions` count, by the arm's name, the rewards above PRODUCTIVE and the observations that
    could not be graded; arms without any are left out.
    """

    rows: RewardRows
    posterior: Posterior
    productive: Mapping[str, int]
    abstentions: Mapping[str, int]

    @cached_property
    def plain_means(self) -> dict[str, float]:
        """The mean of each arm's rewards as they are read, without prior and decay."""
        read = self.posterior
        return plain_means(self.rows, arms=read.names, policy=read.policy, today=read.day)

    @cached_property
    def jumps(self) -> dict[str, float]:
        """How far one more reward would move each arm's mean at most."""
        return jumps(self.rows, self.posterior)

    @cached_property
    def baseline(self) -> Baseline:
        """The means of these arms that another bandit's rewards are freed of, as if no arm was merged."""
        read = self.posterior
        return baseline(ContextRewards(rows=self.rows, policy=read.policy), read.day)

    @cached_property
    def rewarded(self) -> dict[str, int]:
        """How many rewards each arm has had."""
        counts = Counter[str]()
        for kind, (n, *_) in self.rows.totals():
            counts[kind.arm] += n * (kind.source != ABSTAINED)
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What a reading follows from: equal questions have equal readings. `bandit` at another revision is another."""

    bandit: Bandit = field(compare=False)
    key: tuple[int, int]
    policy: Policy = field(hash=False)
    arms: tuple[str, ...]
    today: date


def read(bandit: Bandit, policy: Policy, arms: Iterable[str], today: date) -> BanditReading:
    """What the ledger amounts to for these arms on the day `today`; cached until the bandit's revision is another.

    `bandit` is to be fresh from the database, of this transaction where there is one: its revision is believed. A
    revision is never used twice (`ledger.touch`), so that one that was rolled back says nothing of a later one; at 0
    nothing was ever said, and nothing is cached.
    """
    names, key = tuple(sorted(set(arms))), (bandit.pk, bandit.revision)
    question = _Question(bandit=bandit, key=key, policy=policy, arms=names, today=today)
    return _read(question) if bandit.revision else _read.__wrapped__(question)


# The one cache of this package: folded posteriors, by the bandit's revision. Every page of a bandit and every decision
# needs one, and most come between two rewards. CPU of `posterior_of` on a machine of two cores, SQLite:
#
#     buckets of the bandit      2,000   20,000   60,000
#     read and folded            23 ms   110 ms   345 ms
#     cached                      6 ms     5 ms     7 ms
@lru_cache(maxsize=CACHED_READINGS)
def _read(question: _Question) -> BanditReading:
    return _folded(question.bandit, question.policy, question.arms, question.today, known_by=None)


def _folded(
    bandit: Bandit, policy: Policy, arms: Iterable[str], today: date, known_by: datetime | None
) -> BanditReading:
    sums = _sums_of(bandit, policy, today, known_by)
    rows = sums.rows(with_abstentions=policy.reads_abstentions)
    posterior = fold(rows, arms=arms, policy=policy, today=today)
    return BanditReading(rows=rows, posterior=posterior, productive=sums.productive, abstentions=sums.abstentions)


def fresh(bandit: Bandit) -> Bandit:
    """The bandit as it is now, which its row at hand may not know yet."""
    return Bandit.objects.fresh(bandit.pk)


def site_day(now: datetime) -> date:
    """The day of `now` in the site's time zone."""
    return timezone.localtime(now, timezone.get_default_timezone()).date()


def version_of(bandit: Bandit, known_by: datetime | None = None) -> PolicyVersion:
    """The latest version of the bandit's policy, or the latest of those made by then; version 0, the defaults, where
    there is none.
    """
    held = versions.latest(PolicyVersion, bandit, known_by)
    return held or PolicyVersion(bandit=bandit, version=0, by="defaults")


def weights_of(version: PolicyVersion) -> dict[str, float]:
    """What each source counts: the site's own weights, but for what this version says."""
    return {**settings.EVIDENCE_WEIGHTS, **version.weights}


@dataclass(frozen=True, kw_only=True, eq=False)
class InForce:
    """All that a bandit is read by, now or as it was `known_by` then, read once for whatever is asked of it.

    `bandit` is fresh from the database. `rectifier` and `calibration` are the last versions, on or off; the `policy` is
    that of those that are on, without what the rewards are freed of. `said` is what people said of breaks, where the
    `version` knows any.
    """

    bandit: Bandit
    known_by: datetime | None
    version: PolicyVersion
    rectifier: Rectifier | None
    calibration: CalibrationVersion | None
    said: Sequence[BreakDecision]
    policy: Policy

    @cached_property
    def arms(self) -> list[Arm]:
        """All of its arms, by name."""
        return arms_of(self.bandit)

    def policy_on(self, today: date) -> Policy:
        """The policy with what the rewards are freed of on the day `today`."""
        if today not in self._policies:
            self._policies[today] = with_baseline(self.bandit, self.policy, today, self.known_by)
        return self._policies[today]

    @cached_property
    def _policies(self) -> dict[date, Policy]:
        return {}

    def rows(self, today: date) -> RewardRows:
        """What the ledger amounts to on the day `today`, as `rows_of` has it; those of the cached reading, for now."""
        if self.known_by is None:
            return self.outlook(today)[0].rows
        return rows_of(self.bandit, self.policy, today, self.known_by)

    def outlook(self, today: date, policy: Policy | None = None) -> tuple[BanditReading, Outlook]:
        """The bandit's rows and what it believes on the day `today`, or would with another policy; as `outlook_at`."""
        return _outlook_at(self.bandit, policy or self.policy_on(today), today, self.known_by, self.arms)


def in_force(bandit: Bandit, known_by: datetime | None = None) -> InForce:
    """What this bandit, fresh from the database, is read by: four queries at most."""
    version = version_of(bandit, known_by)
    rectifier, calibration = rectifying.latest(bandit, known_by), calibrating.latest(bandit, known_by)
    said = told(bandit, known_by) if version.follows_change else []
    return InForce(
        bandit=bandit,
        known_by=known_by,
        version=version,
        rectifier=rectifier,
        calibration=calibration,
        said=said,
        policy=policy_from(version, versions.on(rectifier), versions.on(calibration), _latest_said(said)),
    )


def policy_of(bandit: Bandit, known_by: datetime | None = None) -> Policy:
    """The policy in force with its rectifier and its calibration, or what was in force then: four queries, or three."""
    return policy_with(version_of(bandit, known_by), known_by)


def policy_with(version: PolicyVersion, known_by: datetime | None = None) -> Policy:
    """A version of a policy, saved or not, with what else is in force, now or then: four queries at most."""
    bandit = version.bandit
    rectifier, calibration = rectifying.in_force(bandit, known_by), calibrating.in_force(bandit, known_by)
    return policy_from(version, rectifier, calibration, decided_breaks(version, known_by))


def decided_breaks(version: PolicyVersion, known_by: datetime | None = None) -> tuple[DecidedBreak, ...]:
    """What people said of the breaks of arms, or had said by then: the last of each arm and day. None where the version
    knows no breaks; else one query.
    """
    return _latest_said(told(version.bandit, known_by)) if version.follows_change else ()


def _latest_said(said: Iterable[BreakDecision]) -> tuple[DecidedBreak, ...]:
    latest = {(each.arm.name, each.day): each for each in said}
    return tuple(
        DecidedBreak(arm=arm, day=day, is_confirmed=each.kept, decided=site_day(each.created_at))
        for (arm, day), each in sorted(latest.items())
    )


def told(bandit: Bandit, known_by: datetime | None = None) -> list[BreakDecision]:
    """What people said of the breaks of its arms, or had said by then, in the order in which they did. One query."""
    return list(BreakDecision.objects.filter(bandit=bandit).told(known_by))


def policy_from(
    version: PolicyVersion,
    rectifier: Rectifier | None = None,
    calibration: CalibrationVersion | None = None,
    decisions: tuple[DecidedBreak, ...] = (),
) -> Policy:
    """A version of a policy as the core reads it, saved or not; one query where its arms share by their parts."""
    names = [str(version)]
    names += [] if rectifier is None else [f"rectifier/{rectifier.version}"]
    names += [] if calibration is None else [f"calibration/{calibration.version}"]
    if decisions:
        text = "\n".join(repr(each) for each in decisions)
        names.append(f"breaks/{hashlib.sha256(text.encode()).hexdigest()[:8]}")
    return Policy(
        half_life=version.half_life_days,
        long_run_half_life=version.long_run_half_life_days,
        prior_strength=version.prior_strength,
        evidence_scale=version.evidence_scale,
        floor=version.floor,
        weights=weights_of(version),
        version=" ".join(names),
        rectifier={} if rectifier is None else rectifying.offsets_under(rectifier, calibration),
        salience_floor=version.salience_floor,
        caps=version.caps,
        evidence_cap=version.evidence_cap,
        cost_weight=version.cost_weight,
        standings=settings.STANDING_WEIGHTS,
        scale=calibrating.scale_of(calibration),
        exploration=version.exploration,
        sharpness=version.sharpness,
        follows_change=version.follows_change,
        varies_by_day=version.varies_by_day,
        decisions=decisions,
        parts=parts_of(version.bandit) if version.pooling else {},
        agent_cap=version.agent_cap,
    )


def parts_of(bandit: Bandit, merging: Mapping[str, str] = MappingProxyType({})) -> dict[str, tuple[str, str]]:
    """The two parts of each arm, by its name first/second; of an arm that is only a first part of others, that alone.
    An arm without either is left out. One query.

    A part that was merged into another counts as that: the first is an arm of this bandit, the second of one that holds
    names. `merging` names first parts that are to be merged, and into which, for a preview.
    """
    arms = Arm.objects.filter(Q(bandit=bandit) | Q(bandit__kind=BanditKind.NAMES))
    names: list[str] = []
    current: tuple[dict[str, str], dict[str, str]] = {}, {}
    for of, name, merged_into in arms.values_list("bandit", "name", "merged_into__name").order_by("pk"):
        own = of == bandit.pk
        names += [name] * own
        if merged_into is not None:
            current[not own][name] = merged_into
    parts = {}
    for name in names:
        one, _, other = name.partition(PART)
        one = current[0].get(one, one)
        parts[name] = merging.get(one, one), current[1].get(other, other)
    first = {one for one, other in parts.values() if other}
    return {name: both for name, both in parts.items() if both[0] in first}


def rows_of(bandit: Bandit, policy: Policy, today: date, known_by: datetime | None = None) -> RewardRows:
    """What the ledger amounts to, one row for each key, as far back as the policy reads: exact integers.

    Abstentions are among them where the policy's scale has something to say of them, and else nowhere. Three queries.
    """
    sums = _sums_of(bandit, policy, today, known_by)
    return sums.rows(with_abstentions=policy.reads_abstentions)


def _sums_of(bandit: Bandit, policy: Policy, today: date, known_by: datetime | None) -> RewardSums:
    """What the buckets hold of the days that the policy reads; or, where only what was recorded by `known_by` counts,
    what the ledger's rows come to.
    """
    days = days_read(policy, today)
    if known_by is None:
        return buckets.read(bandit, days)
    entries = LedgerEntry.objects.filter(bandit=bandit, effective_day__range=days, recorded_at__lte=known_by)
    sums = entries.order_by().values_list(*buckets.KEY).annotate(**signed_sums())
    return RewardSums.of(bandit, sums)


def days_read(policy: Policy, today: date) -> tuple[date, date]:
    """The first and the last day whose rewards count on the day `today`."""
    return date.fromordinal(max(1, today.toordinal() - policy.days_read)), today


def sign_of_entry() -> Case:
    """1 for an apply and −1 for a reverse: their sum over ledger entries is how many rewards are live."""
    return Case(When(op=LedgerEntry.Op.APPLY, then=Value(1)), default=Value(-1), output_field=BigIntegerField())


def signed_sums() -> dict[str, Sum]:
    """A bucket's columns as sums over ledger entries: applies less reverses."""
    sign = sign_of_entry()
    value, cost = Cast("value_micro", BigIntegerField()), Coalesce("cost_micro", Value(0))
    known = Case(When(cost_micro=None, then=Value(0)), default=sign, output_field=BigIntegerField())
    productive = Case(When(value_micro__gt=PRODUCTIVE, then=sign), default=0, output_field=BigIntegerField())
    sums = (sign, sign * value, sign * value * value, sign * cost, known, productive)
    return {f"total_{name}": Sum(each) for name, each in zip(SUMS, sums, strict=True)}


def with_baseline(
    bandit: Bandit, policy: Policy, today: date, known_by: datetime | None = None, *, moved: Sequence[RewardRow] = ()
) -> Policy:
    """The policy with what this bandit's rewards are freed of on the day `today`; as it is where that is nothing.

    `moved` is added to what those means are taken from, for a what-if.
    """
    found = baseline_of(bandit, today, known_by, moved)
    return policy if found is None else apply_baseline(policy, found)


def evidence_of(bandit: Bandit, today: date) -> tuple[Policy, RewardRows]:
    """The policy in force on the day `today`, what the rewards are freed of included, and the rows that it reads."""
    policy = with_baseline(bandit, policy_of(bandit), today)
    return policy, rows_of(bandit, policy, today)


def baseline_of(
    bandit: Bandit, today: date, known_by: datetime | None = None, moved: Sequence[RewardRow] = ()
) -> Baseline | None:
    """The means that this bandit's rewards are freed of, where it has such a baseline: four queries more."""
    if bandit.baseline_id is None:
        return None
    other = Bandit.objects.fresh(bandit.baseline_id)  # as it is now: its revision is believed
    policy = policy_of(other, known_by)
    if known_by is None and not moved:
        current = dict(other.arms.values_list("name", "merged_into__name"))
        merged = {name: into for name, into in current.items() if into is not None}
        return read(other, policy, current, today).baseline.with_merged(merged)
    merged = dict(other.arms.exclude(merged_into=None).values_list("name", "merged_into__name"))
    rows = rows_of(other, policy, today, known_by).plus(moved)
    return baseline(ContextRewards(rows=rows, policy=policy, merged=merged), today)


def posterior_of(bandit: str, now: datetime, *, known_by: datetime | None = None) -> Outlook:
    """What the bandit believes at `now`, or what it would have, had it known nothing after `known_by`.

    Raises UnknownBandit.
    """
    row, today = Bandit.objects.named(bandit), site_day(now)
    policy = with_baseline(row, policy_of(row, known_by), today, known_by)
    return outlook_at(row, policy, today, known_by)[1]


def present_outlook(bandit: Bandit, policy: Policy, today: date) -> Outlook:
    """What the bandit believes on the day `today` with this policy, remembered as in `read`. One query, or two."""
    return outlook_at(bandit, policy, today)[1]


def outlook_at(
    bandit: Bandit, policy: Policy, today: date, known_by: datetime | None = None
) -> tuple[BanditReading, Outlook]:
    """The bandit's rows with this policy, and what it believes; remembered as in `read` but for what was `known_by`
    then. Two queries at most. `bandit` as in `read`.
    """
    return _outlook_at(bandit, policy, today, known_by, arms_of(bandit))


def _outlook_at(
    bandit: Bandit, policy: Policy, today: date, known_by: datetime | None, arms: Sequence[Arm]
) -> tuple[BanditReading, Outlook]:
    names = [arm.name for arm in arms]
    if known_by is None:
        reading = read(bandit, policy, names, today)
    else:
        reading = _folded(bandit, policy, names, today, known_by)
    return reading, outlook_on(reading.posterior, _choosable(arms))


def outlook(bandit: Bandit, policy: Policy, rows: Iterable[RewardRow], today: date) -> Outlook:
    """What the bandit would believe on the day `today` with this policy and these rows. One query."""
    arms = arms_of(bandit)
    posterior = fold(rows, arms=[arm.name for arm in arms], policy=policy, today=today)
    return outlook_on(posterior, _choosable(arms))


def arms_of(bandit: Bandit) -> list[Arm]:
    """All of its arms, by name. One query."""
    arms = list(Arm.objects.filter(bandit=bandit).select_related("merged_into"))
    for arm in arms:
        arm.bandit = bandit
    return arms


def _choosable(arms: Iterable[Arm]) -> list[str]:
    return [arm.name for arm in arms if arm.is_choosable]
