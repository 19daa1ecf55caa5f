"""Whether an arm is still what it was: breaks and drift, read from what judges and people gave it.

All rewards that one judge gave an arm are a series x_d of daily means, of n_d rewards each. Its level is taken to move
a little every day (a local level model: Harvey 1989; Durbin and Koopman 2012, chapter 2),

    x_d = level_d + noise, of variance σ²/n_d        level_d = level_{d−1} + step, of variance κ·σ²

σ² is what rewards of one day differ by. Arms have good and bad days, too: where the policy asks for it, the noise of a
day's mean is σ²·(1/n_d + ρ), so that its n_d rewards count as n_d/(1 + ρ·n_d). ρ is shared by the bandit's arms: the
mean of a small grid, each by its prior and by how well it foretells all series.

How well each κ of a small grid foretells every day from the days before it (a Kalman filter) gives its likelihood; its
prior is shared by the bandit's arms and learnt from them (empirical Bayes), so that an arm with few rewards is taken to
be as steady as the others are.

A *break* is a day before which all is to be forgotten. Candidates are where the standardised difference of the means
before and after is largest (the CUSUM statistic, Page 1954),

    z = (mean after − mean before) / (σ·√(1/n_before + 1/n_after))

and one is believed where forgetting foretells the series better than any drift does, by a Bayes factor of e⁸: that is
3,000 to one, against perhaps one break in a thousand days of an arm. With it the drift is what is left. Then each part
after it is looked at in the same way.

A judge that changes its mind moves all of its arms. So a break is not believed where what the same judge said of the
other arms since then fits that shift better than none; and another judge is another series, with nothing to compare.

All follows from integer sums of the days before today, so that a correction takes a false break back bit for bit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache
from typing import Self

import numpy as np

from bandit.core.agents import AgentCaps
from bandit.core.rectify import Stratum
from bandit.core.table import GRADED, MICRO, Flags, Floats, Ints, RewardRow, RewardRows, distinct, positions, summed

# The witness who is the graded agent itself.
CLAIMED = "claimed"
# Rewards on either side without which nothing is called a break, the z that makes a day worth asking, and the
# logarithm of the Bayes factor that is believed.
LEAST, ASKED, BELIEVED = 8, 3.5, 8.0
# How many breaks of a series are looked for, one in what another left.
ROUNDS = 6
# Sets of series whose changes are remembered.
REMEMBERED = 64
# Before its first reward a level is anywhere: mean and variance.
LEVEL, ANYWHERE = 0.5, 0.04
# Variances of a day's step in σ², how likely each is at first, and how many arms' worth that is.
STEPS = np.array([0.0, 0.001, 0.0025, 0.006, 0.016, 0.04, 0.1])
STEPS_PRIOR = np.array([0.4, 0.1, 0.12, 0.13, 0.12, 0.07, 0.06])
PRIOR_ARMS, ITERATIONS = 0.3, 40
# Variances between the days of an arm in σ², and how likely each is at first.
DAY_VARIANCES = np.array([0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8])
DAY_VARIANCES_PRIOR = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.07, 0.03])
# What rewards of a day differ by until they tell, and how many of them that is worth: of a judge's, and of a series'.
NOISE, NOISE_REWARDS, SERIES_REWARDS = 0.04, 10.0, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedBreak:
    """What a person said on the day `decided` of a break of `arm` on `day`: it stands, or is taken back.

    One that is `kept` stands whatever the rewards say later. One that is taken back is none, and no day up to
    `decided` is.
    """

    arm: str
    day: date
    kept: bool
    decided: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """What `arm` earned before `day` counts no more. `before` and `after` are the mean rewards that say so, of
    `n_before` and `n_after`, or None where a person said so. `kept`: a person wants it to stand.
    """

    arm: str
    day: date
    before: float | None = None
    after: float | None = None
    n_before: int = 0
    n_after: int = 0
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeShift:
    """On `day` what one judge gives moved by `shift`, of `arm` as of the others: that is the judge, and no break."""

    arm: str
    day: date
    shift: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmChanges:
    """`breaks` by arm, the last of each; `shifts` of judges; `drift` κ ≥ 0 of each arm, in the order of the names;
    `day_variance` ρ ≥ 0 of all arms.
    """

    breaks: Mapping[str, Break]
    shifts: tuple[JudgeShift, ...]
    drift: Floats
    day_variance: float = 0.0


def changes(
    rows: Iterable[RewardRow],
    names: tuple[str, ...],
    today: date,
    *,
    offsets: Mapping[Stratum, float],
    contexts: Mapping[str, float],
    counted: Mapping[str, float],
    decisions: Collection[DecidedBreak] = (),
    caps: AgentCaps | None = None,
    varies_by_day: bool = False,
) -> ArmChanges:
    """What changed before `today` in each of the arms `names`, sorted; the rows are in any order.

    Read are rewards of judges and people that nothing speaks against: not of a standing that `counted` weighs below 1,
    and not vouched for by the graded alone. `offsets` and `contexts` move them as in `bandit.core.rectify`; `caps` are
    those of agents. Where it `varies_by_day`, the variance between days is estimated, and an arm with fewer than LEAST
    such rewards is read by those that the graded alone vouches for, each as much as `counted` says. Remembered for a
    while, since it is the same until something about a past day is.
    """
    held = RewardRows.of(rows)
    past = held.where(held.which(lambda kind: kind.source in GRADED) & (held.day < today.toordinal()))
    told = past.which(lambda kind: kind.witness != CLAIMED and counted.get(kind.standing, 1.0) >= 1)
    if varies_by_day:
        vouched = Counter[str]()
        for kind, (n, *_) in past.where(told).totals():
            vouched[kind.arm] += n
        told |= past.which(lambda kind: kind.witness == CLAIMED and vouched[kind.arm] < LEAST)
    said = past.where(told)
    verdicts = sorted(decisions, key=lambda each: (each.arm, each.day))
    known = tuple(each for each in verdicts if each.day <= today and each.arm in names)
    series = Series.of(said, names, offsets, contexts, caps or AgentCaps(), counted=counted)
    return _changes(series, names, known, varies_by_day=varies_by_day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """That the series `series` breaks before its day `at`: its means before and after, and of how many rewards."""

    series: int
    at: int
    before: float
    after: float
    n_before: float
    n_after: float

    @property
    def shift(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """Daily sums of what one judge gave one arm: m series, the days of each in a row, those of i from `start[i]` on.

    By series: `arm` and `judge` as numbers, `noise` σ². By day, all of them: its ordinal, how many `rewards` it has, as
    how many `n` > 0 of independent days they count, and their mean `x`. Equal are those of the same sums.
    """

    arm: Ints
    judge: Ints
    start: Ints
    noise: Floats
    day: Ints
    rewards: Floats
    n: Floats
    x: Floats

    @classmethod
    def of(
        cls,
        rows: Iterable[RewardRow],
        names: tuple[str, ...],
        offsets: Mapping[Stratum, float],
        contexts: Mapping[str, float],
        caps: AgentCaps,
        *,
        counted: Mapping[str, float],
    ) -> Self:
        """The series of these rows, moved by offsets and contexts, and weighed by standing and by agents' caps."""
        held, arm_at = RewardRows.of(rows), positions(names)
        judges = [f"{kind.source} {kind.judge}" for kind in held.kinds]
        judge_at = positions(tuple(sorted(set(judges))))
        named = np.array(
            [(arm_at[kind.arm], judge_at[judge]) for kind, judge in zip(held.kinds, judges, strict=True)],
            dtype=np.int64,
        ).reshape(-1, 2)
        arm, judge = np.ascontiguousarray(named.T)[:, held.kind]
        left, of_agent = caps.apart(held)
        weight = held.each(lambda kind: counted.get(kind.standing, 1.0), np.float64)
        standings, of_standing = np.unique(weight, return_inverse=True)
        factors: Floats = np.outer(standings, left).ravel()
        factor = of_standing * len(left) + of_agent
        step = held.each(
            lambda kind: round(
                (offsets.get((kind.arm, kind.source, kind.stratum), 0.0) + contexts.get(kind.context, 0.0)) * MICRO
            )
        )
        given, s, q = (held.sums[:, column] for column in range(3))
        moved: Ints = np.array((given, s + step * given, q + 2 * step * s + step**2 * given), dtype=np.int64).T
        keys, sums = summed(np.array((arm, judge, held.day, factor)).T, moved)
        # What caps leave of the rewards of one day: added up in the order of what they leave.
        first = np.append(True, (keys[1:, :3] != keys[:-1, :3]).any(axis=1))[: len(keys)]
        of, weighed = np.cumsum(first) - 1, factors[keys[:, 3]][:, None] * sums
        moments = np.column_stack([np.bincount(of, weights=each, minlength=int(first.sum())) for each in weighed.T])
        counts = moments[:, 0] > 0
        arm, judge, day = keys[first][counts, :3].T
        count, total, squares = moments[counts].T
        judge = distinct(judge)[1]
        begins: Ints = np.flatnonzero((np.diff(arm, prepend=-1) != 0) | (np.diff(judge, prepend=-1) != 0))
        n: Floats = count
        x: Floats = total / MICRO / n
        # Within days; and where days in a row have one reward each, half the square of their difference.
        within: Floats = np.maximum(squares / MICRO**2 - n * x**2, 0.0)
        free: Floats = np.maximum(n - 1, 0.0)
        single = np.append(False, (count[1:] == 1) & (count[:-1] == 1))
        single[begins] = False
        within += np.where(single, np.diff(x, prepend=0.0) ** 2 / 2, 0.0)
        free += single
        arm, judge = arm[begins], judge[begins]
        own, freedom = (np.add.reduceat(each, begins) if len(begins) else each for each in (within, free))
        usual_sum, usual_freedom = (np.bincount(judge, weights=each) for each in (own, freedom))
        usual = ((usual_sum + NOISE_REWARDS * NOISE) / (usual_freedom + NOISE_REWARDS))[judge]
        noise: Floats = (own + SERIES_REWARDS * usual) / (freedom + SERIES_REWARDS)
        return cls(arm=arm, judge=judge, start=begins, noise=noise, day=day, rewards=n, n=n, x=x)

    @cached_property
    def count(self) -> Ints:
        """The days of each series."""
        found: Ints = np.diff(self.start, append=len(self.day))
        return found

    @cached_property
    def of_day(self) -> Ints:
        """The series of each day."""
        return np.repeat(np.arange(len(self.arm)), self.count)

    @cached_property
    def begins(self) -> Flags:
        """Which days are the first of a series."""
        found = np.zeros(len(self.day), dtype=np.bool_)
        found[self.start] = True
        return found

    def counting(self, day_variance: float) -> Self:
        """The same, where the n rewards of a day count as n/(1 + ρ·n)."""
        return replace(self, n=self.rewards / (1 + day_variance * self.rewards)) if day_variance else self

    def first_days(self, of: Flags, day: int) -> list[int]:
        """The first day from `day` on of each of these series that has one."""
        found = []
        for number in np.flatnonzero(of):
            start, count = int(self.start[number]), int(self.count[number])
            at = int(np.searchsorted(self.day[start : start + count], day))
            if at < count:
                found.append(start + at)
        return found

    def candidates(self, cut: Flags, barred: Flags) -> Iterator[Candidate]:
        """Of each part of each series the day where a break is likeliest, if it is likely at all."""
        parts = np.flatnonzero(self.begins | cut)
        part = np.repeat(np.arange(len(parts)), np.diff(parts, append=len(self.day)))
        n, s = self.n, self.n * self.x
        all_n, all_s = (np.add.reduceat(each, parts) for each in (n, s))
        n_before, s_before = (np.cumsum(each) - each for each in (n, s))
        n_before, s_before = (each - each[parts][part] for each in (n_before, s_before))
        n_after = all_n[part] - n_before
        able = (n_before >= LEAST) & (n_after >= LEAST) & ~barred
        before = s_before / np.maximum(n_before, 1)
        after = (all_s[part] - s_before) / np.maximum(n_after, 1)
        spread = np.sqrt(self.noise[self.of_day] * (1 / np.maximum(n_before, 1) + 1 / np.maximum(n_after, 1)))
        z = np.where(able, np.abs(after - before) / spread, 0.0)
        for number in np.flatnonzero(np.maximum.reduceat(z, parts) > ASKED):
            end = parts[number + 1] if number + 1 < len(parts) else len(z)
            at = int(parts[number] + np.argmax(z[parts[number] : end]))
            n_first, n_since = (self.rewards[of].sum() for of in (slice(parts[number], at), slice(at, end)))
            yield Candidate(
                series=int(self.of_day[at]),
                at=at,
                before=float(before[at]),
                after=float(after[at]),
                n_before=float(n_first),
                n_after=float(n_since),
            )

    def likelihood(self, cut: Flags, only: int | None = None) -> Floats:
        """The logarithm of how likely each series is by each of STEPS, shape (m, steps); of one alone, (1, steps)."""
        chosen = np.arange(len(self.arm)) if only is None else np.array([only])
        chosen = chosen[np.argsort(-self.count[chosen], kind="stable")]
        start, count, noise = self.start[chosen], self.count[chosen], self.noise[chosen]
        shape = len(chosen), len(STEPS)
        level, variance, found = np.full(shape, LEVEL), np.full(shape, ANYWHERE), np.zeros(shape)
        steps = STEPS * noise[:, None]
        for step in range(int(count[0])):
            # The longest come first: those that still go on.
            held = int(np.searchsorted(-count, -step))
            at = start[:held] + step
            if step:
                gap = self.day[at] - self.day[at - 1]
                grown = np.minimum(variance[:held] + steps[:held] * gap[:, None], ANYWHERE)
                fresh = cut[at][:, None]
                variance[:held], level[:held] = np.where(fresh, ANYWHERE, grown), np.where(fresh, LEVEL, level[:held])
            own = (noise[:held] / self.n[at])[:, None]
            total, off = variance[:held] + own, self.x[at][:, None] - level[:held]
            found[:held] -= (np.log(total) + off**2 / total) / 2
            level[:held] += variance[:held] / total * off
            variance[:held] *= own / total
        return found[np.argsort(chosen, kind="stable")]

    def is_the_judges(self, found: Candidate) -> bool:
        """Whether what the same judge gave other arms, before that day and since, fits this shift better than none."""
        day, of_day = self.day[found.at], self.of_day
        others = (self.judge == self.judge[found.series]) & (self.arm != self.arm[found.series])
        m = len(self.arm)
        n, s, then = self.n, self.n * self.x, self.day < day
        n_before, s_before, n_after, s_after = (
            np.bincount(of_day, weights=each * when, minlength=m) for when in (then, ~then) for each in (n, s)
        )
        told = others & (n_before > 0) & (n_after > 0)
        if n_after[told].sum() < LEAST:
            return False
        moved = s_after[told] / n_after[told] - s_before[told] / n_before[told]
        variance = self.noise[told] * (1 / n_before[told] + 1 / n_after[told])
        return bool(((moved**2 - (moved - found.shift) ** 2) / variance).sum() > 0)

    @cached_property
    def _sums(self) -> tuple[bytes, ...]:
        columns = (self.arm, self.judge, self.start, self.noise, self.day, self.n, self.x)
        return tuple(column.tobytes() for column in columns)

    def __hash__(self) -> int:
        return hash(self._sums)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Series) and self._sums == other._sums


@lru_cache(maxsize=REMEMBERED)
def _changes(
    series: Series, names: tuple[str, ...], decisions: tuple[DecidedBreak, ...], *, varies_by_day: bool
) -> ArmChanges:
    breaks = {each.arm: Break(arm=each.arm, day=each.day, kept=True) for each in decisions if each.kept}
    if not len(series.day):
        return ArmChanges(breaks=breaks, shifts=(), drift=np.zeros(len(names)))
    cut, plain, barred = _decided(series, names, decisions)
    day_variance = _day_variance(series) if varies_by_day else 0.0
    series = series.counting(day_variance)
    likelihood, shifts = series.likelihood(cut), list[JudgeShift]()
    rejected: set[tuple[int, int]] = set()
    for _ in range(ROUNDS):
        fresh = [each for each in series.candidates(cut, barred) if (each.series, each.at) not in rejected]
        for found in fresh:
            arm, day = names[series.arm[found.series]], date.fromordinal(int(series.day[found.at]))
            trial = cut.copy()
            trial[found.at] = True
            better = series.likelihood(trial, found.series)
            over = arm in breaks and day <= breaks[arm].day
            if over or float((_marginal(better) - _marginal(likelihood[[found.series]]))[0]) < BELIEVED:
                rejected.add((found.series, found.at))
            elif series.is_the_judges(found):
                shifts.append(JudgeShift(arm=arm, day=day, shift=found.shift))
                first = series.first_days(series.judge == series.judge[found.series], day.toordinal())
                cut[first] = plain[first] = True
                likelihood = series.likelihood(cut)
            else:
                cut, likelihood[found.series] = trial, better[0]
                breaks[arm] = Break(
                    arm=arm,
                    day=day,
                    before=found.before,
                    after=found.after,
                    n_before=int(found.n_before),
                    n_after=int(found.n_after),
                )
        if not fresh:
            break
    # A break is the end of what an arm was, and no drift of its own; of arms in general it says that they do change.
    moves = _by_arm(series, series.likelihood(plain), len(names))
    rewarded = np.isin(np.arange(len(names)), series.arm)
    shared, likely = STEPS_PRIOR, _odds(moves[rewarded])
    for _ in range(ITERATIONS):
        each = shared * likely
        each /= each.sum(axis=1, keepdims=True)
        shared = (PRIOR_ARMS * STEPS_PRIOR + each.sum(axis=0)) / (PRIOR_ARMS + len(each))
    own = shared * _odds(_by_arm(series, likelihood, len(names)))
    drift = own @ STEPS / own.sum(axis=1)
    return ArmChanges(breaks=breaks, shifts=tuple(shifts), drift=drift, day_variance=day_variance)


def _day_variance(series: Series) -> float:
    """ρ: the mean of DAY_VARIANCES, each by its prior and by how likely it makes all series, breaks or not."""
    uncut = np.zeros(len(series.day), dtype=np.bool_)
    likely = np.array([_marginal(series.counting(each).likelihood(uncut)).sum() for each in DAY_VARIANCES.tolist()])
    weight = DAY_VARIANCES_PRIOR * np.exp(likely - likely.max())
    return float(weight @ DAY_VARIANCES / weight.sum())


def _decided(series: Series, names: tuple[str, ...], decisions: Iterable[DecidedBreak]) -> tuple[Flags, Flags, Flags]:
    """The days at which people cut the series, those of them at which nothing broke, and those that are no candidates,
    as flags.
    """
    cut, plain, barred = (np.zeros(len(series.day), dtype=np.bool_) for _ in range(3))
    arms = positions(names)
    for said in decisions:
        own = series.arm == arms[said.arm]
        first = series.first_days(own, said.day.toordinal())
        cut[first] = True
        if not said.kept:
            plain[first] = True
            within = (series.day >= said.day.toordinal()) & (series.day <= said.decided.toordinal())
            barred |= own[series.of_day] & within
    return cut, plain, barred


def _marginal(likelihood: Floats) -> Floats:
    """The logarithm of how likely each row (steps,) is, whatever its step, by what is likely at first."""
    most = likelihood.max(axis=1)
    found: Floats = most + np.log((STEPS_PRIOR * np.exp(likelihood - most[:, None])).sum(axis=1))
    return found


def _odds(likelihood: Floats) -> Floats:
    """The likelihoods of each row beside its greatest."""
    found: Floats = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return found


def _by_arm(series: Series, likelihood: Floats, count: int) -> Floats:
    """The likelihoods of all series of each arm, shape (arms, steps)."""
    found = np.zeros((count, len(STEPS)))
    np.add.at(found, series.arm, likelihood)
    return found
