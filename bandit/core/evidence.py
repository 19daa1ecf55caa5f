"""What a policy makes of rows: whole columns of evidence, each row with the weight that it has."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Self

import numpy as np

from bandit.core.agents import AgentCaps, agent_caps
from bandit.core.calibration import STAND_IN, CalibrationLine, Key, Scale, reads, start
from bandit.core.change import ArmChanges, DecidedBreak, changes
from bandit.core.policy import Policy
from bandit.core.rectify import Stratum, rectified_apart
from bandit.core.table import (
    ABSTAINED,
    GRADED,
    JUDGE,
    MICRO,
    NO_LINE,
    WHOLE,
    Flags,
    Floats,
    Ints,
    Left,
    RewardRow,
    RewardRows,
    RowKind,
    Table,
    distinct,
    joined,
    sums_of,
    tabulate,
)

SCALE_RANGE = (1.0, 8.0)
# The same on a common scale, where nothing but the work makes grades of one arm differ.
COMMON_RANGE = (1.0, 30.0)
# Grades that nobody compared with anything are taken to scatter at least so much (variance).
LEAST_VARIANCE = 0.02
# The scale starts from "no better than a coin" with this many pseudo-grades behind it, so that it moves smoothly.
SCALE_PRIOR = 10.0
# Sets of rows whose caps and changes are remembered.
REMEMBERED = 8
# Tables that are remembered: a page asks several things of one.
TABLES = 3

Sums = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """Rows as a table on the day `today`, and the lines by which some of them are read, by their number there.

    Nothing here is clipped or capped row by row, so that how rows are split changes no bit. `caps` says where those of
    agents act.
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
        known: "Known | None" = None,
    ) -> "EvidenceTable":
        """The rows that still count, moved by the rectifier and the baseline, and mapped by the scale, if there is one.

        A row of a source that the scale reads, for which there is no line, stays as it is and weighs nothing, but at
        the start where there is no verdict to go by. Abstentions without one are left out. `known` is what such a table
        found of the same rows but for today's of nobody's; where it is not given, the rows are asked. Raises KeyError
        for a row of an arm not in `names`.
        """
        if known is not None:
            return cls._read(RewardRows.of(rows), names, policy, today, known)
        return _table(_Read(rows=RewardRows.of(rows), names=names, policy=policy, today=today))

    @classmethod
    def _read(cls, held: RewardRows, names: tuple[str, ...], policy: Policy, today: date, known: "Known") -> Self:
        caps, changed = known
        held = _counted(held, policy, today, changed)
        sources = tuple(sorted({kind.source for kind in held.kinds}))
        capped = caps.apart(held)
        lines = () if policy.scale is None else _lines(policy.scale, held, sources, today, capped)
        plain, through = held, dict[Way, RewardRows]()
        lefts: Sequence[Left] = (WHOLE,)
        left = np.zeros(len(held), dtype=np.int64)
        if lines or caps or ABSTAINED in sources or any(kind.standing in policy.standings for kind in held.kinds):
            numbers = {line.key: number for number, line in enumerate(lines)}
            plain, lefts, left, through = _apart(held, policy, numbers, capped)
        if policy.rectifier or policy.baseline:
            plain, left = rectified_apart(plain, left, policy.rectifier, policy.baseline)
        tables = [tabulate(plain, names, today, sources, lefts=lefts, left=left)]
        silent = []
        for way, own in sorted(through.items()):
            table = tabulate(own, names, today, sources)
            if lines[way[0]].source == ABSTAINED:
                silent.append((table, way))
            else:
                tables.append(_mapped(table, lines[way[0]], way))
        spoken = cls(table=joined(tables), lines=lines, policy=policy, today=today, changes=changed, caps=caps)
        if not silent:
            return spoken
        said = spoken.means()
        for table, way in silent:
            raw = said[table.arm] * table.n
            tables.append(_mapped(replace(table, s=raw, raw=raw), lines[way[0]], way))
        return replace(spoken, table=joined(tables))

    def means(self) -> Floats:
        """Each arm's mean by weight, without decay and caps; that of all arms where it has none, .5 without any."""
        n, s, _ = self.sums(self._before_decay())
        usual = float(s.sum() / n.sum()) if n.sum() else 0.5
        return np.where(n > 0, s / np.where(n > 0, n, 1.0), usual)

    def charged(self) -> Self:
        """The rewards less their cost at the policy's price k: S' = clip(S − k·C, 0, N). An unknown cost is taken for
        the arm's mean known one, or where it has none for the mean of all; it is never nothing.
        """
        table, per_dollar = self.table, self.policy.cost_weight
        if not per_dollar or not table.costed.sum():
            return self
        overall = table.cost.sum() / table.costed.sum()
        known = table.by_arm(table.costed)
        usual = np.where(known > 0, table.by_arm(table.cost) / np.maximum(known, 1), overall)
        cost = table.cost + (table.n - table.costed) * usual[table.arm]
        s = table.s - per_dollar * cost
        s = np.where(table.line == NO_LINE, np.clip(s, 0, table.n), s)
        return replace(self, table=replace(table, s=s, f=table.n - s))

    def of(self, sources: Iterable[str]) -> Flags:
        """Which rows are of these sources."""
        wanted = set(sources)
        return np.isin(self.table.source, [i for i, source in enumerate(self.table.sources) if source in wanted])

    def decay(self, half_life: float) -> Floats:
        """λ^age of each row, the half-life in days."""
        left: Floats = np.exp2(-self.table.age / half_life)
        return left

    def weights(self, half_life: float, scale: float) -> Floats:
        """What a reward of each row counts, in [0, 1], decayed and capped; `scale` is e."""
        decay = self.decay(half_life)
        weight = self._before_decay() * decay
        table, caps = self.table, self.policy.caps
        if caps and len(weight):
            # Scaled down where what a source amounts to in an arm is over its cap.
            most = np.array([caps.get(source, math.inf) for source in table.sources])[table.source]
            total = np.bincount(table.slot, weights=scale * weight * table.n)[table.slot]
            over = total > most
            weight = weight * np.where(over, most / np.where(over, total, 1.0), 1.0)
        return self._with_silent(self._earned(weight), decay) if self.lines else weight

    def kept(self, half_life: float) -> Floats:
        """What drift leaves of each row, in (0, 1]. With N what an arm's evidence amounts to on a day, in rewards of
        variance σ² decayed by λ, and κσ² the variance of a day's step (`bandit.core.change`), g days leave of it

            N' = λ^g·N / (1 + κ·N·(1 − λ^g)/(1 − λ))

        as a Kalman filter does, whose 1/N is the variance in σ²; λ^g is the decay's own.
        """
        table = self.table
        if self.changes is None or not self.changes.drift.any():
            return np.ones(len(table.n))
        arms, past = len(table.names), table.age > 0  # nothing is lost of today's
        days, day = distinct(-table.age[past].astype(np.int64))
        amount = (self._before_decay() * table.n)[past]
        given = np.bincount(day * arms + table.arm[past], weights=amount, minlength=len(days) * arms)
        lost = _lost(days.astype(np.float64).tobytes(), given.tobytes(), self.changes.drift.tobytes(), half_life)
        kept = np.ones(len(table.n))
        kept[past] = np.exp(lost[day, table.arm[past]] - lost[-1][table.arm[past]])
        return kept

    def sums(self, weight: Floats) -> Sums:
        """Σw·N, Σw·S and Σw·(N − S) of each arm. What lines read is clipped once for each (arm, source)."""
        table, mapped = self.table, self.table.line != NO_LINE
        plain = np.where(mapped, 0.0, weight) if self.lines else weight
        n, s, f = (table.by_arm(plain * each) for each in (table.n, table.s, table.f))
        if not self.lines or self.policy.scale is None:
            return n, s, f
        shape = len(table.names), len(self.lines), len(table.sources)
        cell = (table.arm * shape[1] + table.line) * shape[2] + table.source
        amount, value = (
            np.bincount(cell[mapped], weights=(weight * each)[mapped], minlength=math.prod(shape)).reshape(shape)
            for each in (table.n, table.s)
        )
        scale = self.policy.scale
        least = np.array([scale.least if line.view in scale.floored else -math.inf for line in self.lines])
        given = amount > 0
        value = np.where(given, np.maximum(value, least[None, :, None] * np.where(given, amount, 1.0)), 0.0)
        amount, value = (each.sum(axis=1) for each in (amount, value))
        value = np.clip(value, 0.0, amount)
        return n + amount.sum(axis=1), s + value.sum(axis=1), f + (amount - value).sum(axis=1)

    def scale(self) -> float:
        """The evidence scale e = μ(1−μ)/σ² of the grades of past days, σ² within arms.

        Of judges and people; on a common scale with what is read through it, where a session's σ² = b²·var(r) + s²; and
        at the start without verdicts, of the sources themselves.
        """
        scale = self.policy.scale
        if scale is None:
            return _scale_of(self.table, self.of(GRADED), most=SCALE_RANGE[1])
        if self.lines and not scale.is_start:
            return self._common_scale()
        if self.of(GRADED).any():
            return _scale_of(self.table, self.of(GRADED), most=COMMON_RANGE[1])
        return _scale_of(self.table, self.of(scale.sources), most=SCALE_RANGE[1], least_variance=LEAST_VARIANCE)

    @property
    def weighs(self) -> Mapping[str, float]:
        """What a reward of each source weighs, before any cap: the policy's weights, or what a source has earned."""
        scale, weights = self.policy.scale, self.policy.weights
        return weights if scale is None or not self.lines else scale.weighed(weights, self.today)

    def _before_decay(self) -> Floats:
        table, policy, weighs = self.table, self.policy, self.weighs
        source: Floats = np.array([weighs.get(source, 0.0) for source in table.sources])[table.source]
        if policy.scale is not None and self.lines:
            counts = np.array([*(not line.backwards for line in self.lines), False])[table.line]
            source = np.where(self.of(policy.scale.sources) & ~counts, 0.0, source)
        weight = source * table.factor * table.capped * (1 - (1 - policy.salience_floor) * (1 - table.salience))
        return weight * self._of_day(weight * table.n)

    def _of_day(self, amount: Floats) -> Floats:
        """What good and bad days leave of each row, in (0, 1]: 1/(1 + ρ·N), N what its arm has on its day."""
        if self.changes is None or not self.changes.day_variance:
            return np.ones(len(amount))
        table = self.table
        _, day = distinct(table.age.astype(np.int64))
        place = day * len(table.names) + table.arm
        of_day = np.bincount(place, weights=amount)[place]
        left: Floats = 1 / (1 + self.changes.day_variance * of_day)
        return left

    def _earned(self, weight: Floats) -> Floats:
        """The weights, scaled down where what lines read amounts to more than it may in an arm."""
        table, mapped = self.table, self.table.line != NO_LINE
        if self.policy.scale is None or not mapped.any():
            return weight
        amount = np.where(mapped, weight * table.n, 0.0)
        size = len(table.names) * len(table.sources)
        total, doubt = (
            np.bincount(table.slot, weights=each, minlength=size) for each in (amount, amount * table.doubt)
        )
        most = np.full(size, math.inf)
        for slot in np.flatnonzero(total):
            arm, source = divmod(int(slot), len(table.sources))
            doubtful = float(doubt[slot] / total[slot])
            most[slot] = self.policy.scale.cap(table.names[arm], table.sources[source], doubtful)
        kept = np.where(total > most, most / np.where(total > 0, total, 1.0), 1.0)
        earned: Floats = np.where(mapped, weight * kept[table.slot], weight)
        return earned

    def _with_silent(self, weight: Floats, decay: Floats) -> Floats:
        """With abstentions, each counting as much as the arm's other sessions do: they keep their share p of the arm,
        and say no more of it than the others. What they were worth is known with a variance V: all that an arm amounts
        to is no more than σ²/(p²·V).
        """
        table, scale = self.table, self.policy.scale
        silent = self.of([ABSTAINED]) & (table.line != NO_LINE)
        if scale is None or not silent.any():
            return weight
        n, counted = (table.by_arm(np.where(silent, 0.0, each) * table.n) for each in (decay, weight))
        usual = np.where(n > 0, counted / np.where(n > 0, n, 1.0), 1.0)
        weight = np.where(silent, usual[table.arm] * decay, weight)
        whole, unseen, doubt = (table.by_arm(weight * table.n * each) for each in (1.0, silent, silent * table.doubt))
        # p²·V·whole, with p = unseen/whole and V the mean doubt over what is unseen.
        over = unseen * doubt / np.where(whole > 0, whole, 1.0)
        most = np.where(over > 0, whole * scale.variance / np.where(over > 0, over, 1.0), math.inf)
        kept = np.where(
            whole > 0, np.minimum(np.where(n > 0, counted, whole), most) / np.where(whole > 0, whole, 1.0), 1.0
        )
        left: Floats = weight * kept[table.arm]
        return left

    def _common_scale(self) -> float:
        table = self.table
        weight = np.where(table.age > 0, self._before_decay(), 0.0)
        read = self.of(GRADED) | (table.line != NO_LINE)
        within = freedom = count = total = 0.0
        for number in (NO_LINE, *range(len(self.lines))):
            at = np.where((table.line == number) & read, weight, 0.0)
            n, s, raw, q = (table.by_arm(at * column) for column in (table.n, table.s, table.raw, table.q))
            line = None if number == NO_LINE else self.lines[number]
            slope, residual = (1.0, 0.0) if line is None else (line.slope, line.residual)
            squares = float(np.maximum(q - raw**2 / np.where(n > 0, n, 1.0), 0.0).sum())
            free = float(np.maximum(n - 1, 0.0).sum())
            within, freedom = within + slope**2 * squares + residual * free, freedom + free
            count, total = count + float(n.sum()), total + float(s.sum())
        mean = min(max(total / count, 0.0), 1.0) if count else 0.5
        coin = mean * (1 - mean)
        variance = (within + SCALE_PRIOR * coin) / (freedom + SCALE_PRIOR)
        return float(np.clip(coin / variance, *COMMON_RANGE)) if count and variance > 0 else COMMON_RANGE[0]


# Where the caps of agents act, and what changed, where that is followed.
Known = tuple[AgentCaps, ArmChanges | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What `Known` follows from, which several policies share: these very rows, and some of a policy's numbers."""

    rows: RewardRows
    names: tuple[str, ...]
    today: date
    days_read: int
    agent_cap: int | None
    follows_change: bool
    varies_by_day: bool
    decisions: tuple[DecidedBreak, ...]
    offsets: Mapping[Stratum, float] = field(hash=False)
    contexts: Mapping[str, float] = field(hash=False)
    counted: Mapping[str, float] = field(hash=False)

    @classmethod
    def of(cls, rows: RewardRows, names: tuple[str, ...], policy: Policy, today: date) -> Self:
        return cls(
            rows=rows,
            names=names,
            today=today,
            days_read=policy.days_read,
            agent_cap=policy.agent_cap,
            follows_change=policy.follows_change,
            varies_by_day=policy.varies_by_day,
            decisions=tuple(policy.decisions),
            offsets=policy.rectifier,
            contexts=policy.baseline,
            counted=policy.standings,
        )


@lru_cache(maxsize=REMEMBERED)
def _known(asked: Asked) -> Known:
    held = _of_days(asked.rows, asked.days_read, asked.today)
    caps = agent_caps(held, asked.agent_cap, asked.today)
    if not asked.follows_change:
        return caps, None
    changed = changes(
        held,
        asked.names,
        asked.today,
        offsets=asked.offsets,
        contexts=asked.contexts,
        counted=asked.counted,
        decisions=asked.decisions,
        caps=caps,
        varies_by_day=asked.varies_by_day,
    )
    return caps, changed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What a table follows from: these very rows, whose arms these are, and how they are read."""

    rows: RewardRows
    names: tuple[str, ...]
    policy: Policy = field(hash=False)
    today: date


@lru_cache(maxsize=TABLES)
def _table(asked: _Read) -> EvidenceTable:
    known = _known(Asked.of(asked.rows, asked.names, asked.policy, asked.today))
    return EvidenceTable._read(asked.rows, asked.names, asked.policy, asked.today, known)  # noqa: SLF001


def lines_of(rows: RewardRows, names: tuple[str, ...], policy: Policy, today: date) -> tuple[CalibrationLine, ...]:
    """The lines of such an `EvidenceTable`, without the table."""
    scale = policy.scale
    if scale is None or not scale.is_start:
        return () if scale is None else scale.lines
    caps, changed = _known(Asked.of(rows, names, policy, today))
    held = _counted(rows, policy, today, changed)
    return _lines(scale, held, {kind.source for kind in held.kinds}, today, caps.apart(held))


@lru_cache(maxsize=REMEMBERED)
def _lost(days: bytes, given: bytes, drift: bytes, half_life: float) -> Floats:
    """What drift takes of each arm's evidence until each of these days, and at last until today: −log, (m + 1, arms).

    `days` (m,) are before today, as −age in their order, `given` (m, arms) what came on them, `drift` (arms,) is κ.
    """
    (step, day), decay = (np.frombuffer(each) for each in (drift, days)), math.exp2(-1 / half_life)
    came = np.frombuffer(given).reshape(len(day), len(step))
    total, lost = np.zeros(len(step)), np.zeros((len(day) + 1, len(step)))
    ages = np.append(-day, 0.0)
    for number, more in enumerate(came):
        total += more
        left = decay ** (ages[number] - ages[number + 1])
        fading = 1 + step * total * (1 - left) / (1 - decay)
        lost[number + 1] = lost[number] + np.log(fading)
        total *= left / fading
    return lost


def _of_days(rows: RewardRows, days_read: int, today: date) -> RewardRows:
    """The rows that are neither of later days nor too old to count."""
    return rows.where((rows.day <= today.toordinal()) & (rows.day >= today.toordinal() - days_read))


def _counted(rows: RewardRows, policy: Policy, today: date, changed: ArmChanges | None) -> RewardRows:
    """The rows that still count."""
    held = _of_days(rows, policy.days_read, today)
    if changed is None or not changed.breaks:
        return held
    since = {arm: each.day.toordinal() for arm, each in changed.breaks.items()}
    return held.where(held.day >= held.each(lambda kind: since.get(kind.arm, 0)))


# What agents' caps may leave of rows, in order, and which of these each row has, (m,).
Capped = tuple[Floats, Ints]
# The number of a line, whether it stands in for one that is missing, what is added, and what is left of the weight.
Way = tuple[int, bool, float, Left]


def _apart(
    rows: RewardRows, policy: Policy, lines: Mapping[Key, int], capped: Capped
) -> tuple[RewardRows, list[Left], Ints, dict[Way, RewardRows]]:
    """The rows that are read as they stand, what may be left of a weight, the most first, and which of those is left of
    each of them; and the rows that lines read.
    """

    def way(kind: RowKind) -> tuple[float, tuple[int, bool, float] | None]:
        standing, key = policy.standings.get(kind.standing, 1.0), (kind.source, kind.version, kind.view)
        if (number := reads(lines, key)) is None:
            return standing, None
        stratum = kind.arm, kind.source, kind.stratum
        offset = policy.rectifier.get(stratum, 0.0) + policy.baseline.get(kind.context, 0.0)
        return standing, (number, key not in lines, offset)

    ways = [way(kind) for kind in rows.kinds]
    numbers: dict[tuple[float, tuple[int, bool, float] | None], int] = {}
    # Abstentions without a line are left out.
    of = [
        -1 if each[1] is None and kind.source == ABSTAINED else numbers.setdefault(each, len(numbers))
        for kind, each in zip(rows.kinds, ways, strict=True)
    ]
    number, (factors, factor) = np.array(of, dtype=np.int64)[rows.kind], capped
    standings = sorted({standing for standing, line in numbers if line is None}, reverse=True)
    lefts = [(standing, each) for standing in standings for each in reversed(factors.tolist())]
    # Of each number the place of its first left, and none for what is not read as it stands.
    first = [-1 if line is not None else standings.index(standing) * len(factors) for standing, line in numbers]
    place = np.array([*first, -1], dtype=np.int64)[number]
    plain = place >= 0
    left = (place + len(factors) - 1 - factor)[plain]
    through: dict[Way, RewardRows] = {}
    for (standing, line), at in numbers.items():
        if line is not None:
            for each in np.unique(factor[number == at]):
                left_of = standing, float(factors[each])
                through[*line, left_of] = rows.where((number == at) & (factor == each))
    return rows.where(plain), lefts, left, through


def _lines(
    scale: Scale, rows: RewardRows, sources: Collection[str], today: date, capped: Capped
) -> tuple[CalibrationLine, ...]:
    """The scale's lines. At the start: what is between the mean verdict and each source's mean, of the days before; of
    all, for a source that is new today. `sources` are those of the rows.
    """
    if not scale.is_start:
        return scale.lines
    if JUDGE not in sources or set(sources).isdisjoint(scale.sources):
        return ()
    means: dict[str, float] = {}
    factors = capped[0].tolist()
    group = rows.kind * len(factors) + capped[1]
    for counted in (np.ones(len(rows), dtype=np.bool_), rows.day < today.toordinal()):
        summed = sums_of(group[counted], rows.sums[counted, :2], len(rows.kinds) * len(factors)).tolist()
        sums: dict[tuple[str, float], tuple[int, int]] = {}
        for number, (count, total) in enumerate(summed):
            key = rows.kinds[number // len(factors)].source, factors[number % len(factors)]
            n, s = sums.get(key, (0, 0))
            sums[key] = (n + count, s + total)
        for source in sources:
            own = sorted((factor, each) for (of, factor), each in sums.items() if of == source)
            n_left, s_left = (sum(factor * each[i] for factor, each in own) for i in (0, 1))
            if n_left > 0:
                means[source] = s_left / n_left / MICRO
    if JUDGE not in means:
        return ()
    return tuple(start(source, shift=means[JUDGE] - means[source]) for source in scale.sources if source in means)


def _mapped(table: Table, line: CalibrationLine, way: Way) -> Table:
    """The rows' sums on the judge's scale, not clipped: Σr' = b·S + (a + δ + offset)·N."""
    number, stands_in, offset, left = way
    shift = np.array([line.intercept + line.offsets.get(name, 0.0) + offset for name in table.names])
    n, s = table.by_arm(table.n), table.by_arm(table.s)
    fallback = s / np.where(n != 0, n, 1.0)
    extra = STAND_IN if stands_in else 0.0
    doubt = np.array([extra + line.doubt_at(name, x) for name, x in zip(table.names, fallback.tolist(), strict=True)])
    mapped = line.slope * table.s + shift[table.arm] * table.n
    return replace(
        table.weighing(*left),
        s=mapped,
        f=table.n - mapped,
        line=np.full(len(table.n), number),
        doubt=doubt[table.arm],
    )


def _scale_of(table: Table, graded: Flags, *, most: float, least_variance: float = 0.0) -> float:
    """The scale of the past grades of some rows, σ² = Σ(Q − S²/N) / Σ(N − 1) within arms."""
    past = np.where((table.age > 0) & graded, table.capped, 0.0)
    n, s, q = (table.by_arm(past * column) for column in (table.n, table.s, table.q))
    if not n.sum():
        return SCALE_RANGE[0]
    mean = s.sum() / n.sum()
    coin = mean * (1 - mean)
    within = np.maximum(q - s**2 / np.maximum(n, 1), 0).sum() + SCALE_PRIOR * coin
    variance = max(within / (np.maximum(n - 1, 0).sum() + SCALE_PRIOR), least_variance)
    return float(np.clip(coin / variance, SCALE_RANGE[0], most)) if variance > 0 else SCALE_RANGE[0]
