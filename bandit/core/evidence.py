"""Turns reward rows into a table of evidence under a policy, and computes the weight of each row."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Self

import numpy as np

from bandit.core.agents import AgentCaps, agent_caps
from bandit.core.calibration import (
    MAX_PSEUDO,
    VERDICT_DAYS,
    FallbackCalibration,
    Kind,
    fallback_share,
    verdict_sources,
)
from bandit.core.change import ArmChanges, detect_changes
from bandit.core.offsets import add_offsets, shifts
from bandit.core.policy import Policy
from bandit.core.table import (
    ABSTAINED,
    GRADED,
    GRADES,
    MICRO,
    Flags,
    Floats,
    Ints,
    RewardRow,
    RewardRows,
    RowGroup,
    RowKind,
    Table,
    distinct,
    positions,
    sum_by_key,
    tabulate,
)

# The range of e: the upper bound keeps a few alike grades from being overwhelming evidence.
SCALE_RANGE = (1.0, 8.0)
# With a calibration it is wider, because then fallbacks hardly count.
CALIBRATED_SCALE_RANGE = (1.0, 30.0)
# e starts from "no better than a coin" with this many pseudo-grades behind it, so that it moves smoothly.
SCALE_PRIOR = 10.0
# The `estimate` of rows that count in no way.
LEFT_OUT = -2

Sums = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """The evidence on the day `today`: its table, the agents' caps, and the `fallback_shares` (arms,): the share of
    their weight that fallbacks have in each arm.

    Nothing here is clipped or capped row by row, so that how rows are split changes no bit.
    """

    table: Table
    policy: Policy
    today: date
    fallback_shares: Floats
    changes: ArmChanges | None = None
    caps: AgentCaps = field(default_factory=AgentCaps)

    @classmethod
    def read(
        cls,
        rows: Iterable[RewardRow],
        names: tuple[str, ...],
        policy: Policy,
        today: date,
    ) -> Self:
        """Read the rows that still count, shifted by the calibration, the offsets and the baseline.

        With a calibration, abstentions, and fallbacks in arms with enough verdicts, are estimated from judged sessions
        of their kind; those of a kind that the calibration doesn't know are left out. Without one, abstentions are left
        out and fallbacks are read like any other grade. Raises KeyError for a row of an arm not in `names`.
        """
        rows = RewardRows.from_rows(rows)
        caps, arm_changes = _caps_and_changes(rows, names, policy, today)
        rows = _current_rows(rows, policy, today, arm_changes)
        sources = tuple(sorted({kind.source for kind in rows.kinds}))
        verdicts = recent_verdicts(rows, names, policy, today).tolist()
        shares = {name: fallback_share(n) for name, n in zip(names, verdicts, strict=True)}
        rows, groups, group_index = _group_rows(rows, policy, shares, caps)
        calibration = policy.calibration
        shifts = {} if calibration is None else calibration.shifts
        if policy.offsets or policy.baseline or shifts:
            rows, group_index = add_offsets(rows, group_index, policy.offsets, policy.baseline, shifts)
        table = tabulate(rows, names, today, sources, groups=groups, group_index=group_index)
        evidence = cls(
            table=table,
            policy=policy,
            today=today,
            fallback_shares=np.array([shares[name] for name in names]),
            changes=arm_changes,
            caps=caps,
        )
        if calibration is None or not evidence.is_estimated.any():
            return evidence
        # What an unjudged session of each kind is worth in each arm, (kinds, arms).
        differences = np.array([[kind.difference_in(name) for name in names] for kind in calibration.kinds])
        worth = np.clip(evidence.means() + differences, 0.0, 1.0)
        s = np.where(evidence.is_estimated, table.n * worth[table.estimate, table.arm], table.s)
        return replace(evidence, table=replace(table, s=s, f=table.n - s))

    @property
    def is_estimated(self) -> Flags:
        """Whether each row's value is estimated, not graded."""
        is_estimated: Flags = self.table.estimate != GRADES
        return is_estimated

    def means(self) -> Floats:
        """Each arm's weighted mean of grades other than fallbacks, (arms,), without decay and caps.

        An arm without such grades has the mean of its fallbacks; without these too, the overall mean before today, or
        .5.
        """
        weight = self._undecayed_weights()
        all_n, all_s, _ = self.sums(weight)
        if self.policy.calibration is not None:
            weight = np.where(self.is_from(self.policy.calibration.sources), 0.0, weight)
        graded_n, graded_s, _ = self.sums(weight)
        past_n, past_s, _ = self.sums(np.where(self.table.age > 0, weight, 0.0))
        overall = float(past_s.sum() / past_n.sum()) if past_n.sum() else 0.5
        is_graded = graded_n > 0
        n, s = np.where(is_graded, graded_n, all_n), np.where(is_graded, graded_s, all_s)
        return _divide(s, n, default=overall)

    def charged(self) -> Self:
        """A copy with rewards less the cost C of their sessions at the policy's price: S' = clip(S − price·C, 0, N).

        An unknown cost is assumed to be the mean of the arm's known costs; if it has none, of all known costs before
        today, 0 without any.
        """
        table, price = self.table, self.policy.cost_weight
        if not price or not table.costed.sum():
            return self
        is_past = table.age > 0
        overall = table.cost[is_past].sum() / max(table.costed[is_past].sum(), 1)
        costed_by_arm = table.by_arm(table.costed)
        mean_cost = np.where(costed_by_arm > 0, table.by_arm(table.cost) / np.maximum(costed_by_arm, 1), overall)
        cost = table.cost + (table.n - table.costed) * mean_cost[table.arm]
        s = np.clip(table.s - price * cost, 0, table.n)
        return replace(self, table=replace(table, s=s, f=table.n - s))

    def is_from(self, sources: Iterable[str]) -> Flags:
        """Whether each row is of one of these sources."""
        wanted = set(sources)
        return np.isin(self.table.source, [i for i, source in enumerate(self.table.sources) if source in wanted])

    def decay(self, half_life: float) -> Floats:
        """The factor λ^age = 2^(−age/half_life) of each row, with age and half-life in days."""
        decay: Floats = np.exp2(-self.table.age / half_life)
        return decay

    def before_today(self) -> Self:
        """A copy without the rewards of today."""
        table, is_past = self.table, self.table.age > 0
        n, s, f = (np.where(is_past, each, 0.0) for each in (table.n, table.s, table.f))
        return replace(self, table=replace(table, n=n, s=s, f=f))

    def weights(self, half_life: float, scale: float) -> Floats:
        """Weight of a session in each row, in [0, 1]: that of its grade, or that of an estimate."""
        return self.with_estimates(self.grade_weights(half_life, scale), self.decay(half_life))

    def grade_weights(self, half_life: float, scale: float) -> Floats:
        """Weight of a grade in each row, in [0, 1], decayed over the `half_life` in days and capped; 0 for estimates.

        `scale` is e, the pseudo-observations that a reward of weight 1 is worth: caps are in these.
        """
        weight = self._undecayed_weights() * self.decay(half_life)
        table, caps = self.table, self.policy.caps
        if caps and len(weight):
            # Scale down a source whose evidence in an arm exceeds its cap.
            cap = np.array([caps.get(source, math.inf) for source in table.sources])[table.source]
            total: Floats = np.bincount(table.slot, weights=scale * weight * table.n).astype(np.float64)[table.slot]
            weight = weight * _cap_factors(total, cap)
        if self.policy.calibration is None:
            return weight
        # Scale down the fallbacks of an arm if all of them together exceed theirs.
        is_fallback = self.is_from(self.policy.calibration.sources)
        fallbacks = scale * table.by_arm(np.where(is_fallback, weight, 0.0) * table.n)
        factors = _cap_factors(fallbacks, MAX_PSEUDO * self.fallback_shares)
        capped: Floats = np.where(is_fallback, weight * factors[table.arm], weight)
        return capped

    def drift_factors(self, half_life: float) -> Floats:
        """The fraction of each row's evidence that survives drift, in (0, 1].

        With N the evidence of an arm on a day, in rewards of variance σ² decayed by λ, and κσ² the variance of a day's
        step (`bandit.core.change`), g days later it is

            N' = λ^g·N / (1 + κ·N·(1 − λ^g)/(1 − λ))

        as in a Kalman filter, where 1/N is the variance in σ². λ^g is the ordinary decay and not part of the factor.
        """
        table = self.table
        if self.changes is None or not self.changes.drift.any():
            return np.ones(len(table.n))
        arms, is_past = len(table.names), table.age > 0  # today's rewards lose nothing
        days, day = distinct(-table.age[is_past].astype(np.int64))
        arm = table.arm[is_past]
        amount = (self._undecayed_weights() * table.n)[is_past]
        added: Floats = np.bincount(day * arms + arm, weights=amount, minlength=len(days) * arms).astype(np.float64)
        loss = _drift_loss(days, added.reshape(len(days), arms), self.changes.drift, half_life)
        # A row loses what its arm's evidence loses from the row's day until today.
        factors = np.ones(len(table.n))
        factors[is_past] = np.exp(loss[day, arm] - loss[-1][arm])
        return factors

    def sums(self, weight: Floats) -> Sums:
        """Σw·N, Σw·S and Σw·(N − S) of each arm, w the `weight` of each row."""
        table = self.table
        n, s, f = (table.by_arm(weight * each) for each in (table.n, table.s, table.f))
        return n, s, f

    def evidence_scale(self) -> float:
        """The evidence scale e = μ(1−μ)/σ²: how many coin tosses one grade is worth. σ² is the variance within arms.

        It is computed from grades of judges and people on past days, and pooled with that of a coin's toss. It is at
        its lower bound, 1, if there are no such grades, or if all are 0 or all are 1: these show no variance.
        """
        table = self.table
        bounds = SCALE_RANGE if self.policy.calibration is None else CALIBRATED_SCALE_RANGE
        weight = np.where((table.age > 0) & self.is_from(GRADED), table.capped, 0.0)
        n, s, q = (table.by_arm(weight * column) for column in (table.n, table.s, table.q))
        if not n.sum():
            return bounds[0]
        mean = s.sum() / n.sum()
        coin = mean * (1 - mean)
        # The squares around each arm's mean, with n − 1 degrees of freedom each, pooled with SCALE_PRIOR coin tosses.
        within = np.maximum(q - s**2 / np.maximum(n, 1), 0).sum() + SCALE_PRIOR * coin
        variance = within / (np.maximum(n - 1, 0).sum() + SCALE_PRIOR)
        return float(np.clip(coin / variance, *bounds)) if variance > 0 else bounds[0]

    def _undecayed_weights(self) -> Floats:
        """Weight of a reward in each row before decay and caps: source × factors × fallbacks' share, reduced for the
        variance between days; 0 for estimates.
        """
        table, policy = self.table, self.policy
        weight: Floats = np.array([policy.weights.get(source, 0.0) for source in table.sources])[table.source]
        if policy.calibration is not None:
            is_fallback = self.is_from(policy.calibration.sources)
            weight = np.where(is_fallback, weight * self.fallback_shares[table.arm], weight)
            weight = np.where(self.is_estimated, 0.0, weight)
        weight = weight * self._row_factors()
        return weight * self._day_factors(weight * table.n)

    def _row_factors(self) -> Floats:
        """Each row's factor for its standing, its agent's cap and its salience, in [0, 1]."""
        table = self.table
        salience_factor = 1 - (1 - self.policy.salience_floor) * (1 - table.salience)
        return table.factor * table.capped * salience_factor

    def _day_factors(self, amount: Floats) -> Floats:
        """Each row's factor for the variance ρ between days, in (0, 1]: 1/(1 + ρ·N), N the arm's total `amount` (n,)
        on that day.
        """
        if self.changes is None or not self.changes.day_variance:
            return np.ones(len(amount))
        table = self.table
        _, day = distinct(table.age.astype(np.int64))
        arm_day = day * len(table.names) + table.arm
        total = np.bincount(arm_day, weights=amount)[arm_day]
        factors: Floats = 1 / (1 + self.changes.day_variance * total)
        return factors

    def with_estimates(self, weight: Floats, decay: Floats) -> Floats:
        """The weights of grades, with each estimated session given the mean weight of its arm's graded ones.

        `decay` is the factor of each row for its age. Estimates move an arm's mean but are no evidence of their own, so
        all weights of an arm are scaled down to the total that its grades have alone.
        """
        table, is_estimated = self.table, self.is_estimated
        if not is_estimated.any():
            return weight
        factors = decay * self._row_factors()
        graded = table.by_arm(weight * table.n)
        graded_factors = table.by_arm(np.where(is_estimated, 0.0, factors) * table.n)
        mean_weight = _divide(graded, graded_factors, default=0.0)
        weight = np.where(is_estimated, mean_weight[table.arm] * factors, weight)
        scale = _divide(graded, table.by_arm(weight * table.n), default=1.0)
        scaled: Floats = weight * scale[table.arm]
        return scaled


def _divide(numerator: Floats, denominator: Floats, *, default: float) -> Floats:
    """The quotient, or `default` where the denominator, which is never below 0, is 0."""
    is_positive = denominator > 0
    return np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), default)


def _cap_factors(total: Floats, cap: Floats) -> Floats:
    """The factor in [0, 1] that reduces each total to its cap, 1 if it isn't above that."""
    is_over = total > cap
    return np.where(is_over, cap / np.where(is_over, total, 1.0), 1.0)


def _caps_and_changes(
    rows: RewardRows, names: tuple[str, ...], policy: Policy, today: date
) -> tuple[AgentCaps, ArmChanges | None]:
    """The agents' caps, and the arms' changes or None if the policy doesn't follow change.

    Rows of today without an agent make no difference to either.
    """
    rows = _rows_in_reach(rows, policy.days_read, today)
    caps = agent_caps(rows, policy.agent_cap, today, alone=policy.agent_cap_alone)
    if not policy.follows_change:
        return caps, None
    arm_changes = detect_changes(
        rows,
        names,
        today,
        offsets=policy.offsets,
        contexts=policy.baseline,
        standings=policy.standings,
        decisions=policy.decisions,
        caps=caps,
        varies_by_day=policy.varies_by_day,
    )
    return caps, arm_changes


def _drift_loss(days: Ints, added: Floats, kappa: Floats, half_life: float) -> Floats:
    """Cumulative −log of the fraction of each arm's evidence that survives drift, shape (m + 1, arms).

    Row i is the loss up to the start of day i, the last row up to today. `days` (m,) are ascending −ages of past days,
    `added` (m, arms) the evidence of each, `kappa` (arms,) is κ. From one day to the next the evidence is multiplied by
    the decay and divided by the growth of its variance, as in `EvidenceTable.drift_factors`.
    """
    decay = math.exp2(-1 / half_life)
    ages = np.append(-days.astype(np.float64), 0.0)
    total, loss = np.zeros(len(kappa)), np.zeros((len(days) + 1, len(kappa)))
    for number, added_today in enumerate(added):
        total += added_today
        decay_to_next = decay ** (ages[number] - ages[number + 1])
        growth = 1 + kappa * total * (1 - decay_to_next) / (1 - decay)
        loss[number + 1] = loss[number] + np.log(growth)
        total *= decay_to_next / growth
    return loss


def _rows_in_reach(rows: RewardRows, days_read: int, today: date) -> RewardRows:
    """The rows of today and of the last `days_read` days before."""
    return rows.select((rows.day <= today.toordinal()) & (rows.day >= today.toordinal() - days_read))


def _current_rows(rows: RewardRows, policy: Policy, today: date, arm_changes: ArmChanges | None) -> RewardRows:
    """The rows that the policy still reads, without those before their arm's latest break in `arm_changes`."""
    rows = _rows_in_reach(rows, policy.days_read, today)
    if arm_changes is None or not arm_changes.breaks:
        return rows
    since = {arm: each.day.toordinal() for arm, each in arm_changes.breaks.items()}
    return rows.select(rows.day >= rows.map_kinds(lambda kind: since.get(kind.arm, 0)))


def value_as_read(row: RewardRow, policy: Policy) -> float:
    """The value in [0, 1] as which the policy reads this single reward, unless it is estimated instead."""
    calibration = policy.calibration
    by_source = {} if calibration is None else calibration.shifts
    (shift,) = shifts(RewardRows.from_rows([row]), policy.offsets, policy.baseline, by_source).tolist()
    return float(min(max(row.s + shift, 0), MICRO)) / MICRO


def recent_verdicts(rows: RewardRows, names: tuple[str, ...], policy: Policy, today: date) -> Ints:
    """The verdicts of judges and people in each arm before today, in the VERDICT_DAYS up to its last one, (arms,).

    Those of a source that the policy gives no weight don't count.
    """
    counting = verdict_sources(policy.weights)
    graded = rows.select(rows.mask(lambda kind: kind.source in counting) & (rows.day < today.toordinal()))
    position = positions(names)
    arms = graded.map_kinds(lambda kind: position[kind.arm])
    keys, sums = sum_by_key(np.array((arms, graded.day)).T, graded.sums[:, :1])
    last, counts = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
    arm, day = keys.T
    np.maximum.at(last, arm, day)
    is_recent = day > last[arm] - VERDICT_DAYS
    np.add.at(counts, arm[is_recent], sums[is_recent, 0])
    return counts


def _group_rows(
    rows: RewardRows, policy: Policy, shares: Mapping[str, float], caps: AgentCaps
) -> tuple[RewardRows, list[RowGroup], Ints]:
    """The rows that count, the groups in which they are summed, and the index of each row's group, (m,).

    `shares` is the share of their weight that fallbacks have, by arm.
    """
    cap_factors, cap_index = caps.factor_table(rows)
    estimates = {kind: _estimate_of(kind, policy.calibration, shares) for kind in rows.kinds}
    is_used = rows.mask(lambda kind: estimates[kind] != LEFT_OUT)
    rows, cap_index = rows.select(is_used), cap_index[is_used]
    # The groups are ordered by estimate, then by descending standing, then by descending cap factor. Each estimate and
    # standing is a block of as many groups as there are cap factors, which come in ascending order.
    block_of_kind = [(estimates[kind], -policy.standings.get(kind.standing, 1.0)) for kind in rows.kinds]
    blocks = sorted(set(block_of_kind))
    groups = [RowGroup(-standing, cap, estimate) for estimate, standing in blocks for cap in cap_factors[::-1].tolist()]
    size = len(cap_factors)
    start = np.array([blocks.index(block) * size for block in block_of_kind], dtype=np.int64)[rows.kind_index]
    return rows, groups, start + size - 1 - cap_index


def _estimate_of(kind: RowKind, calibration: FallbackCalibration | None, shares: Mapping[str, float]) -> int:
    """The index of the kind that these sessions' value is estimated by; GRADES if their grades count, LEFT_OUT if
    neither.

    `shares` is the share of their weight that fallbacks have, by arm.
    """
    if kind.source == ABSTAINED:
        unjudged: Kind = (ABSTAINED, kind.view)
    elif calibration is None or kind.source not in calibration.sources or shares[kind.arm]:
        return GRADES
    else:
        unjudged = (kind.source, "")
    kinds = () if calibration is None else calibration.kinds
    return next((index for index, each in enumerate(kinds) if each.kind == unjudged), LEFT_OUT)
