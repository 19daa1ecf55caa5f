"""Turns reward rows into a table of evidence under a policy, and computes the weight of each row."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple, Self

import numpy as np

from bandit.core.agents import AgentCaps, agent_caps
from bandit.core.calibration import STAND_IN_VARIANCE, CalibrationLine, Key, Scale, find_line, starting_line
from bandit.core.change import ArmChanges, detect_changes
from bandit.core.policy import Policy
from bandit.core.rectify import rectified_by_group
from bandit.core.table import (
    ABSTAINED,
    FULL_WEIGHT,
    GRADED,
    JUDGE,
    MICRO,
    NO_LINE,
    Flags,
    Floats,
    Ints,
    RewardRow,
    RewardRows,
    RowKind,
    Table,
    WeightFactors,
    concatenate,
    distinct,
    sums_by_group,
    tabulate,
)

# The range of e: the upper bound keeps a few alike grades from being overwhelming evidence.
SCALE_RANGE = (1.0, 8.0)
# The range on a common scale. It is wider, because there an arm's grades differ only if its work does.
COMMON_SCALE_RANGE = (1.0, 30.0)
# The least variance assumed of sources that were never compared with a judge.
MIN_VARIANCE = 0.02
# The scale starts from "no better than a coin" with this many pseudo-grades behind it, so that it moves smoothly.
SCALE_PRIOR = 10.0

Sums = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """The evidence on the day `today`: its table, the calibration lines that its rows refer to by index, and the caps
    of agents.

    Nothing here is clipped or capped row by row, so that how rows are split changes no bit.
    """

    table: Table
    lines: tuple[CalibrationLine, ...]
    policy: Policy
    today: date
    changes: ArmChanges | None = None
    caps: AgentCaps = field(default_factory=AgentCaps)

    @classmethod
    def read(
        cls,
        rows: Iterable[RewardRow],
        names: tuple[str, ...],
        policy: Policy,
        today: date,
        context: "EvidenceContext | None" = None,
    ) -> Self:
        """Read the rows that still count. The scale's lines, if there are any, map the rows of its sources; all others
        are shifted by the rectifier and the baseline.

        If there are lines at all, a row of the scale's sources that none maps has weight 0. Abstentions without a line
        are left out. Those with one are mapped last, since their fallback is the mean of the arm's other sessions.
        `context` may be passed in if it was computed from the same rows; only rows of today without an agent may
        differ. Raises KeyError for a row of an arm not in `names`.
        """
        rows = RewardRows.from_rows(rows)
        caps, arm_changes = evidence_context(rows, names, policy, today) if context is None else context
        rows = _current_rows(rows, policy, today, arm_changes)
        sources = tuple(sorted({kind.source for kind in rows.kinds}))
        cap_table = caps.factor_table(rows)
        lines = () if policy.scale is None else _lines(policy.scale, rows, sources, today, cap_table)
        # Without lines, caps, abstentions and reduced standings all rows are unmapped and have the full weight.
        unmapped, by_mapping = rows, dict[tuple[LineMapping, WeightFactors], RewardRows]()
        weight_factors: Sequence[WeightFactors] = (FULL_WEIGHT,)
        factor_index = np.zeros(len(rows), dtype=np.int64)
        if lines or caps or ABSTAINED in sources or any(kind.standing in policy.standings for kind in rows.kinds):
            line_index = {line.key: index for index, line in enumerate(lines)}
            unmapped, weight_factors, factor_index, by_mapping = _split_by_line(rows, policy, line_index, cap_table)
        if policy.rectifier or policy.baseline:
            unmapped, factor_index = rectified_by_group(unmapped, factor_index, policy.rectifier, policy.baseline)
        tables = [tabulate(unmapped, names, today, sources, weight_factors=weight_factors, factor_index=factor_index)]
        abstentions = []
        for (mapping, factors), mapped_rows in sorted(by_mapping.items()):
            table = tabulate(mapped_rows, names, today, sources).with_factors(*factors)
            if lines[mapping.line].source == ABSTAINED:
                abstentions.append((table, mapping))
            else:
                tables.append(_map_table(table, lines, mapping))
        graded = cls(table=concatenate(tables), lines=lines, policy=policy, today=today, changes=arm_changes, caps=caps)
        if not abstentions:
            return graded
        means = graded.means()
        for table, mapping in abstentions:
            raw = means[table.arm] * table.n
            tables.append(_map_table(replace(table, s=raw, raw=raw), lines, mapping))
        return replace(graded, table=concatenate(tables))

    def means(self) -> Floats:
        """Each arm's weighted mean, (arms,), without decay and the policy's caps. An arm without weight has the mean of
        all arms, or .5 if no arm has any weight.
        """
        n, s, _ = self.sums(self._undecayed_weights())
        overall = float(s.sum() / n.sum()) if n.sum() else 0.5
        return np.where(n > 0, s / np.where(n > 0, n, 1.0), overall)

    def charged(self) -> Self:
        """A copy with rewards less the cost C of their sessions at the policy's price: S' = clip(S − price·C, 0, N).

        An unknown cost is assumed to be the mean of the arm's known costs, or of all known costs if the arm has none.
        Mapped rows are not clipped here, because `sums` clips them once for each (arm, source).
        """
        table, price = self.table, self.policy.cost_weight
        if not price or not table.costed.sum():
            return self
        overall = table.cost.sum() / table.costed.sum()
        costed_by_arm = table.by_arm(table.costed)
        mean_cost = np.where(costed_by_arm > 0, table.by_arm(table.cost) / np.maximum(costed_by_arm, 1), overall)
        cost = table.cost + (table.n - table.costed) * mean_cost[table.arm]
        s = table.s - price * cost
        s = np.where(table.line == NO_LINE, np.clip(s, 0, table.n), s)
        return replace(self, table=replace(table, s=s, f=table.n - s))

    def is_from(self, sources: Iterable[str]) -> Flags:
        """Whether each row is of one of these sources."""
        wanted = set(sources)
        return np.isin(self.table.source, [i for i, source in enumerate(self.table.sources) if source in wanted])

    def decay(self, half_life: float) -> Floats:
        """The factor λ^age = 2^(−age/half_life) of each row, with age and half-life in days."""
        decay: Floats = np.exp2(-self.table.age / half_life)
        return decay

    def weights(self, half_life: float, scale: float) -> Floats:
        """Weight of a reward in each row, in [0, 1], decayed over the `half_life` in days and capped.

        `scale` is e, the pseudo-observations that a reward of weight 1 is worth: the policy's caps are in these.
        """
        decay = self.decay(half_life)
        weight = self._undecayed_weights() * decay
        table, caps = self.table, self.policy.caps
        if caps and len(weight):
            # Scale down a source whose evidence in an arm exceeds its cap.
            cap = np.array([caps.get(source, math.inf) for source in table.sources])[table.source]
            total = np.bincount(table.slot, weights=scale * weight * table.n)[table.slot]
            is_over = total > cap
            weight = weight * np.where(is_over, cap / np.where(is_over, total, 1.0), 1.0)
        return self._with_abstentions(self._cap_mapped(weight), decay) if self.lines else weight

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
        """Σw·N, Σw·S and Σw·(N − S) of each arm, w the `weight` of each row.

        Mapped rewards may be outside [0, 1], so their S is clipped to [0, Σw·N], once for each (arm, source) and not by
        row. Before that, the mean of each (arm, line, source) is raised to the scale's `failure_floor` if the line's
        view is one of its `floored` views.
        """
        table, is_mapped = self.table, self.table.line != NO_LINE
        unmapped = np.where(is_mapped, 0.0, weight) if self.lines else weight
        n, s, f = (table.by_arm(unmapped * each) for each in (table.n, table.s, table.f))
        scale = self.policy.scale
        if not self.lines or scale is None:
            return n, s, f
        # The sums of mapped rows by (arm, line, source): first floored, then summed over lines and clipped.
        shape = len(table.names), len(self.lines), len(table.sources)
        cell = (table.arm * shape[1] + table.line) * shape[2] + table.source
        mapped_n, mapped_s = (
            np.bincount(cell[is_mapped], weights=(weight * each)[is_mapped], minlength=math.prod(shape)).reshape(shape)
            for each in (table.n, table.s)
        )
        min_mean = np.array([scale.failure_floor if line.view in scale.floored else -math.inf for line in self.lines])
        has_weight = mapped_n > 0
        min_s = min_mean[None, :, None] * np.where(has_weight, mapped_n, 1.0)
        mapped_s = np.where(has_weight, np.maximum(mapped_s, min_s), 0.0)
        mapped_n, mapped_s = mapped_n.sum(axis=1), mapped_s.sum(axis=1)
        mapped_s = np.clip(mapped_s, 0.0, mapped_n)
        return n + mapped_n.sum(axis=1), s + mapped_s.sum(axis=1), f + (mapped_n - mapped_s).sum(axis=1)

    def evidence_scale(self) -> float:
        """The evidence scale e = μ(1−μ)/σ²: how many coin tosses one grade is worth. σ² is the variance within arms.

        It is computed from grades of past days. Without a calibration these are the grades of judges and people; with a
        fitted one, also the mapped grades. With a calibration at its start, they are the grades of judges and people
        or, if there are none yet, of the sources to calibrate, with a σ² of at least MIN_VARIANCE.
        """
        scale = self.policy.scale
        if scale is None:
            return _scale_of_grades(self.table, self.is_from(GRADED), highest=SCALE_RANGE[1])
        if not scale.is_start:
            return self._scale_of_lines()
        if self.is_from(GRADED).any():
            return _scale_of_grades(self.table, self.is_from(GRADED), highest=COMMON_SCALE_RANGE[1])
        is_uncompared = self.is_from(scale.sources)
        return _scale_of_grades(self.table, is_uncompared, highest=SCALE_RANGE[1], min_variance=MIN_VARIANCE)

    @property
    def source_weights(self) -> Mapping[str, float]:
        """Weight of a reward by source, before any cap: the policy's, or what the scale estimates for its sources."""
        scale, weights = self.policy.scale, self.policy.weights
        return weights if scale is None or not self.lines else scale.replace_weights(weights, self.today)

    def _undecayed_weights(self) -> Floats:
        """Weight of a reward in each row before decay and caps: source × factor × agent's cap × salience, reduced for
        the variance between days.
        """
        table, policy, source_weights = self.table, self.policy, self.source_weights
        weight: Floats = np.array([source_weights.get(source, 0.0) for source in table.sources])[table.source]
        if policy.scale is not None and self.lines:
            # A row without a line has the index NO_LINE = -1, which is the trailing False.
            has_usable_line = np.array([*(not line.backwards for line in self.lines), False])[table.line]
            weight = np.where(self.is_from(policy.scale.sources) & ~has_usable_line, 0.0, weight)
        salience_factor = 1 - (1 - policy.salience_floor) * (1 - table.salience)
        weight = weight * table.factor * table.capped * salience_factor
        return weight * self._day_factors(weight * table.n)

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

    def _cap_mapped(self, weight: Floats) -> Floats:
        """The weights, with mapped rows scaled down in an arm and source whose total exceeds `Scale.cap`."""
        table, is_mapped = self.table, self.table.line != NO_LINE
        if self.policy.scale is None or not is_mapped.any():
            return weight
        amount = np.where(is_mapped, weight * table.n, 0.0)
        slots = len(table.names) * len(table.sources)
        total = np.bincount(table.slot, weights=amount, minlength=slots)
        variance = np.bincount(table.slot, weights=amount * table.line_variance, minlength=slots)
        caps = np.full(slots, math.inf)
        for slot in np.flatnonzero(total):
            arm, source = divmod(int(slot), len(table.sources))
            mean_variance = float(variance[slot] / total[slot])
            caps[slot] = self.policy.scale.cap(table.names[arm], table.sources[source], mean_variance)
        factors = np.where(total > caps, caps / np.where(total > 0, total, 1.0), 1.0)
        capped: Floats = np.where(is_mapped, weight * factors[table.slot], weight)
        return capped

    def _with_abstentions(self, weight: Floats, decay: Floats) -> Floats:
        """The weights, with each abstention given the mean weight of its arm's other sessions at its own `decay`.

        Abstentions move an arm's mean but are no evidence of their own. So all weights of an arm with other sessions
        are then scaled down to the total that those others have alone. An abstention's value is only known with a
        variance V, so an arm's total is also at most σ²/(p²·V), p the abstentions' share of it and σ² the variance of
        verdicts within arms.
        """
        table, scale = self.table, self.policy.scale
        is_abstention = self.is_from([ABSTAINED]) & (table.line != NO_LINE)
        if scale is None or not is_abstention.any():
            return weight
        # By arm: the other sessions' decayed number, their weighted number, and their mean weight before decay, 1 if
        # there are none.
        n = table.by_arm(np.where(is_abstention, 0.0, decay) * table.n)
        graded = table.by_arm(np.where(is_abstention, 0.0, weight) * table.n)
        mean_weight = np.where(n > 0, graded / np.where(n > 0, n, 1.0), 1.0)
        weight = np.where(is_abstention, mean_weight[table.arm] * decay, weight)
        total = table.by_arm(weight * table.n)
        abstained = table.by_arm(weight * table.n * is_abstention)
        variance = table.by_arm(weight * table.n * (is_abstention * table.line_variance))
        # p²·V·total, with p = abstained/total and V = variance/abstained.
        uncertainty = abstained * variance / np.where(total > 0, total, 1.0)
        cap = np.where(uncertainty > 0, total * scale.variance / np.where(uncertainty > 0, uncertainty, 1.0), math.inf)
        target = np.minimum(np.where(n > 0, graded, total), cap)
        factors = np.where(total > 0, target / np.where(total > 0, total, 1.0), 1.0)
        scaled: Floats = weight * factors[table.arm]
        return scaled

    def _scale_of_lines(self) -> float:
        """The evidence scale e of past grades on the common scale; σ² is pooled over all lines.

        A session mapped by a line has σ² = b²·var(r) + s², with b the line's `slope`, r the fallback and s² the line's
        `residual`. Judge and human grades, which no line maps, count with b = 1 and s² = 0. Without grades e is the
        least one. A prior of SCALE_PRIOR grades has the variance of a coin's toss.
        """
        table = self.table
        weight = np.where(table.age > 0, self._undecayed_weights(), 0.0)
        is_read = self.is_from(GRADED) | (table.line != NO_LINE)
        within = freedom = count = total = 0.0
        for line_index in (NO_LINE, *range(len(self.lines))):
            line_weight = np.where((table.line == line_index) & is_read, weight, 0.0)
            n, s, raw, q = (table.by_arm(line_weight * column) for column in (table.n, table.s, table.raw, table.q))
            line = None if line_index == NO_LINE else self.lines[line_index]
            slope, residual = (1.0, 0.0) if line is None else (line.slope, line.residual)
            line_squares = float(np.maximum(q - raw**2 / np.where(n > 0, n, 1.0), 0.0).sum())
            line_freedom = float(np.maximum(n - 1, 0.0).sum())
            within = within + slope**2 * line_squares + residual * line_freedom
            freedom += line_freedom
            count += float(n.sum())
            total += float(s.sum())
        mean = min(max(total / count, 0.0), 1.0) if count else 0.5
        coin = mean * (1 - mean)
        variance = (within + SCALE_PRIOR * coin) / (freedom + SCALE_PRIOR)
        return float(np.clip(coin / variance, *COMMON_SCALE_RANGE)) if count and variance > 0 else COMMON_SCALE_RANGE[0]


# The caps of agents, and what changed if the policy follows change.
EvidenceContext = tuple[AgentCaps, ArmChanges | None]


def evidence_context(rows: RewardRows, names: tuple[str, ...], policy: Policy, today: date) -> EvidenceContext:
    """The agents' caps, and the arms' changes or None if the policy doesn't follow change.

    Rows of today without an agent make no difference to either.
    """
    rows = _rows_in_reach(rows, policy.days_read, today)
    caps = agent_caps(rows, policy.agent_cap, today)
    if not policy.follows_change:
        return caps, None
    arm_changes = detect_changes(
        rows,
        names,
        today,
        offsets=policy.rectifier,
        contexts=policy.baseline,
        standings=policy.standings,
        decisions=policy.decisions,
        caps=caps,
        varies_by_day=policy.varies_by_day,
    )
    return caps, arm_changes


def calibration_lines(
    rows: RewardRows, names: tuple[str, ...], policy: Policy, today: date
) -> tuple[CalibrationLine, ...]:
    """The `lines` of the `EvidenceTable` of these rows, computed without the table; empty without a scale."""
    scale = policy.scale
    if scale is None:
        return ()
    if not scale.is_start:
        return scale.lines
    caps, arm_changes = evidence_context(rows, names, policy, today)
    current = _current_rows(rows, policy, today, arm_changes)
    return _lines(scale, current, {kind.source for kind in current.kinds}, today, caps.factor_table(current))


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


# `AgentCaps.factor_table` of the rows: all factors, ascending, and the index of each row's factor, (m,).
CapTable = tuple[Floats, Ints]


class LineMapping(NamedTuple):
    """How a line maps a row: the line's index, whether it stands in for a missing line, and the offset to add."""

    line: int
    stands_in: bool
    offset: float


def _split_by_line(
    rows: RewardRows, policy: Policy, lines: Mapping[Key, int], cap_table: CapTable
) -> tuple[RewardRows, list[WeightFactors], Ints, dict[tuple[LineMapping, WeightFactors], RewardRows]]:
    """Split rows into those that no line maps and those that lines map; abstentions without a line are dropped.

    `lines` maps the key of each line to its index. Returns the unmapped rows, the possible pairs of their weight
    factors, greatest first, the index of each unmapped row's pair, and the mapped rows by mapping and weight factors.
    """
    cap_factors, cap_index = cap_table
    # Group kinds by their standing's factor and their mapping (None: unmapped); -1 for a dropped kind.
    index_of: dict[tuple[float, LineMapping | None], int] = {}
    group_of_kind = []
    for kind in rows.kinds:
        standing = policy.standings.get(kind.standing, 1.0)
        mapping = _line_mapping(kind, policy, lines)
        is_dropped = mapping is None and kind.source == ABSTAINED
        group_of_kind.append(-1 if is_dropped else index_of.setdefault((standing, mapping), len(index_of)))
    group = np.array(group_of_kind, dtype=np.int64)[rows.kind_index]
    standings = sorted({standing for standing, mapping in index_of if mapping is None}, reverse=True)
    # Each standing has a block of weight factors, one per cap factor, greatest first; `cap_factors` is ascending.
    weight_factors = [(standing, factor) for standing in standings for factor in reversed(cap_factors.tolist())]
    # Where the block of each group starts, -1 if it is mapped; the trailing -1 is for dropped rows.
    block_starts = []
    for standing, mapping in index_of:
        block_starts.append(-1 if mapping is not None else standings.index(standing) * len(cap_factors))
    block_start = np.array([*block_starts, -1], dtype=np.int64)[group]
    is_unmapped = block_start >= 0
    factor_index = (block_start + len(cap_factors) - 1 - cap_index)[is_unmapped]
    by_mapping: dict[tuple[LineMapping, WeightFactors], RewardRows] = {}
    for (standing, mapping), number in index_of.items():
        if mapping is not None:
            for at in np.unique(cap_index[group == number]):
                factors = standing, float(cap_factors[at])
                by_mapping[mapping, factors] = rows.select((group == number) & (cap_index == at))
    return rows.select(is_unmapped), weight_factors, factor_index, by_mapping


def _line_mapping(kind: RowKind, policy: Policy, lines: Mapping[Key, int]) -> LineMapping | None:
    """How a line maps the rows of this kind; None if none does. `lines` maps the key of each line to its index."""
    key = kind.source, kind.version, kind.view
    index = find_line(lines, key)
    if index is None:
        return None
    offset = policy.rectifier.get((kind.arm, kind.source, kind.stratum), 0.0) + policy.baseline.get(kind.context, 0.0)
    return LineMapping(line=index, stands_in=key not in lines, offset=offset)


def _lines(
    scale: Scale, rows: RewardRows, sources: Collection[str], today: date, cap_table: CapTable
) -> tuple[CalibrationLine, ...]:
    """The scale's lines. At the start, lines that shift each source's mean to the mean verdict; none without verdicts.

    `sources` are those of the rows. The means are of the days before today, or of today for a source that is new.
    """
    if not scale.is_start:
        return scale.lines
    if JUDGE not in sources or set(sources).isdisjoint(scale.sources):
        return ()
    means = _source_means(rows, np.ones(len(rows), dtype=np.bool_), cap_table)
    means |= _source_means(rows, rows.day < today.toordinal(), cap_table)
    if JUDGE not in means:
        return ()
    return tuple(
        starting_line(source, shift=means[JUDGE] - means[source]) for source in scale.sources if source in means
    )


def _source_means(rows: RewardRows, flags: Flags, cap_table: CapTable) -> dict[str, float]:
    """The mean of each source's flagged rewards, weighted by agents' caps; sources without rewards are left out."""
    cap_factors = cap_table[0].tolist()
    # n and Σr of each (kind, factor), then of each (source, factor): exact integers, so that splitting changes no bit.
    group = rows.kind_index * len(cap_factors) + cap_table[1]
    totals = sums_by_group(group[flags], rows.sums[flags, :2], len(rows.kinds) * len(cap_factors)).tolist()
    sums: dict[tuple[str, float], tuple[int, int]] = {}
    for number, (count, total) in enumerate(totals):
        kind_index, factor_index = divmod(number, len(cap_factors))
        key = rows.kinds[kind_index].source, cap_factors[factor_index]
        n, s = sums.get(key, (0, 0))
        sums[key] = (n + count, s + total)
    means = {}
    for source in {kind.source for kind in rows.kinds}:
        own = sorted((factor, each) for (name, factor), each in sums.items() if name == source)
        weighted_n = sum(factor * n for factor, (n, _) in own)
        weighted_s = sum(factor * s for factor, (_, s) in own)
        if weighted_n > 0:
            means[source] = weighted_s / weighted_n / MICRO
    return means


def _map_table(table: Table, lines: Sequence[CalibrationLine], mapping: LineMapping) -> Table:
    """The table on the judge's scale by one of `lines`, not clipped: Σr' = b·S + (a + δ + offset)·N.

    a, b and δ are the `intercept`, the `slope` and the arm's offset of the line.
    """
    line = lines[mapping.line]
    shift = np.array([line.intercept + line.offsets.get(name, 0.0) + mapping.offset for name in table.names])
    n, s = table.by_arm(table.n), table.by_arm(table.s)
    means = s / np.where(n != 0, n, 1.0)
    extra = STAND_IN_VARIANCE if mapping.stands_in else 0.0
    variance = np.array(
        [extra + line.level_variance_at(name, x) for name, x in zip(table.names, means.tolist(), strict=True)]
    )
    mapped = line.slope * table.s + shift[table.arm] * table.n
    return replace(
        table,
        s=mapped,
        f=table.n - mapped,
        line=np.full(len(table.n), mapping.line),
        line_variance=variance[table.arm],
    )


def _scale_of_grades(table: Table, is_read: Flags, *, highest: float, min_variance: float = 0.0) -> float:
    """The evidence scale e of the rows of past days that `is_read` flags; σ² = Σ(Q − S²/N) / Σ(N − 1) over the arms.

    σ² is pooled with that of a coin's toss and at least `min_variance`. e is from 1 to `highest`; 1 without rows.
    """
    weight = np.where((table.age > 0) & is_read, table.capped, 0.0)
    n, s, q = (table.by_arm(weight * column) for column in (table.n, table.s, table.q))
    if not n.sum():
        return SCALE_RANGE[0]
    mean = s.sum() / n.sum()
    coin = mean * (1 - mean)
    within = np.maximum(q - s**2 / np.maximum(n, 1), 0).sum() + SCALE_PRIOR * coin
    variance = max(within / (np.maximum(n - 1, 0).sum() + SCALE_PRIOR), min_variance)
    return float(np.clip(coin / variance, SCALE_RANGE[0], highest)) if variance > 0 else SCALE_RANGE[0]
