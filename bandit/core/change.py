"""Detects breaks and drift of an arm's level from the rewards that judges and people gave it.

The rewards that one judge gave one arm are a series x_d of daily means of n_d rewards each. Its level is modelled as a
random walk (the local level model: Harvey 1989; Durbin and Koopman 2012, chapter 2),

    x_d = level_d + noise, of variance σ²/n_d        level_d = level_{d−1} + step, of variance κ·σ²

σ² is the variance of rewards within a day. If the policy lets days vary, the noise of a day's mean is σ²·(1/n_d + ρ),
so that its n_d rewards count as n_d/(1 + ρ·n_d). ρ is shared by the bandit's arms: the mean of a small grid, weighted
by its prior and by the likelihood of all series.

A Kalman filter that predicts every day from the days before it gives the likelihood of each κ of a small grid. The
prior of κ is shared by the bandit's arms and estimated from them (empirical Bayes), so that an arm with few rewards is
assumed to be as steady as the others.

A *break* is a day before which all rewards are ignored. Candidates are the days with the largest standardised
difference of the means before and after (the CUSUM statistic, Page 1954),

    z = (mean after − mean before) / (σ·√(1/n_before + 1/n_after))

A candidate is accepted if a break predicts the series better than any drift, by a Bayes factor of e⁸, that is 3,000 to
one, against perhaps one break in a thousand days of an arm. Drift is estimated given the breaks. The parts on either
side of a break are searched in the same way.

A judge that changes its standard shifts all of its arms. So a break is rejected if the same judge's rewards of the
other arms fit that shift better than no shift. Another judge is another series, which can't be compared.

All of this depends on integer sums of past days only, so that a correction undoes a false break bit for bit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import numpy as np

from bandit.core.agents import AgentCaps
from bandit.core.offsets import Stratum, shifts
from bandit.core.table import (
    GRADED,
    MICRO,
    Flags,
    Floats,
    Ints,
    RewardRow,
    RewardRows,
    RowKind,
    distinct,
    positions,
    sum_by_key,
)

# The witness of evidence that the graded agent itself reports.
SELF_REPORTED = "claimed"
# A break needs this many rewards on either side, this z, and this logarithm of the Bayes factor.
MIN_REWARDS, MIN_Z, MIN_LOG_BAYES_FACTOR = 8, 3.5, 8.0
# Rounds of the search for breaks; each round searches the parts that the breaks so far leave.
MAX_ROUNDS = 6
# Size of the cache of results, in sets of series.
CACHED_RESULTS = 64
# Mean and variance of a level before its first reward.
PRIOR_LEVEL, PRIOR_LEVEL_VARIANCE = 0.5, 0.04
# The grid of κ, the variance of a day's step in σ²; its initial prior, and how many arms that prior is worth.
STEPS = np.array([0.0, 0.001, 0.0025, 0.006, 0.016, 0.04, 0.1])
STEPS_PRIOR = np.array([0.4, 0.1, 0.12, 0.13, 0.12, 0.07, 0.06])
PRIOR_ARMS, ITERATIONS = 0.3, 40
# The grid of ρ, the variance between the days of an arm in σ², and its prior.
DAY_VARIANCES = np.array([0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8])
DAY_VARIANCES_PRIOR = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.07, 0.03])
# The prior of σ², the rewards it is worth for a judge, and the rewards a judge's σ² is worth for one of its series.
PRIOR_NOISE, JUDGE_PRIOR_REWARDS, SERIES_PRIOR_REWARDS = 0.04, 10.0, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedBreak:
    """A person's decision, made on the day `decided`, on a break of `arm` on `day`.

    If `is_confirmed`, the break stays whatever later rewards show. Otherwise it is rejected, and so is any break of
    the arm from `day` to `decided`.
    """

    arm: str
    day: date
    is_confirmed: bool
    decided: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """Rewards of `arm` before `day` no longer count.

    `before` and `after` are the mean rewards on either side, of `n_before` and `n_after` rewards. A break that a person
    confirmed (`is_confirmed`) has None and 0 for these.
    """

    arm: str
    day: date
    before: float | None = None
    after: float | None = None
    n_before: int = 0
    n_after: int = 0
    is_confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmChanges:
    """Each arm's latest break, each arm's `drift` κ ≥ 0 in the order of the names, and the `day_variance` ρ ≥ 0 that
    all arms share.
    """

    breaks: Mapping[str, Break]
    drift: Floats
    day_variance: float = 0.0


def detect_changes(
    rows: Iterable[RewardRow],
    names: tuple[str, ...],
    today: date,
    *,
    offsets: Mapping[Stratum, float],
    contexts: Mapping[str, float],
    standings: Mapping[str, float],
    decisions: Collection[DecidedBreak] = (),
    caps: AgentCaps | None = None,
    varies_by_day: bool = False,
) -> ArmChanges:
    """The breaks and drift of the arms `names` from their rewards of days before `today`.

    `names` must be sorted; the rows may be in any order. A reward of a judge or a person is trusted if it isn't
    self-reported and isn't contested: its standing has the factor 1 in `standings` (1 if missing). `offsets` and
    `contexts` correct rewards as in `bandit.core.offsets`; `caps` are those of agents.

    Only trusted rewards are used, with one exception: with `varies_by_day`, which also estimates the variance between
    days, an arm with fewer than MIN_REWARDS trusted ones, too few for a break, also uses its self-reported ones,
    weighted by `standings`. Cached: the result depends only on past days.
    """
    table = RewardRows.from_rows(rows)
    past = table.select(table.mask(lambda kind: kind.source in GRADED) & (table.day < today.toordinal()))
    is_trusted = past.mask(lambda kind: kind.witness != SELF_REPORTED and standings.get(kind.standing, 1.0) >= 1)
    is_used = is_trusted
    if varies_by_day:
        trusted_count = Counter[str]()
        for kind, (n, *_) in past.select(is_trusted).totals():
            trusted_count[kind.arm] += n
        is_used = is_trusted | past.mask(
            lambda kind: kind.witness == SELF_REPORTED and trusted_count[kind.arm] < MIN_REWARDS
        )
    ordered = sorted(decisions, key=lambda each: (each.arm, each.day))
    applicable = tuple(each for each in ordered if each.day <= today and each.arm in names)
    used = past.select(is_used)
    series = Series.from_rows(used, names, offsets, contexts, caps or AgentCaps(), standings=standings)
    return _detect_changes(series, names, applicable, varies_by_day=varies_by_day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible break of the series with index `series` before the day with index `at` in `Series.day`.

    `before` and `after` are the means on either side, of `n_before` and `n_after` rewards.
    """

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
    """m series, each the daily means of what one judge gave one arm, as columns.

    Per series, shape (m,): `arm` and `judge` as indexes, `start`, the index of its first day in the columns of days,
    and `noise` σ². Per day with rewards, of all series one after the other: `day` as an ordinal, the weighted number of
    `rewards`, the number `n` > 0 of independent rewards that they count as, and their mean `x`. Series with the same
    columns are equal, so that they can be the key of a cache.
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
    def from_rows(
        cls,
        rows: RewardRows,
        names: tuple[str, ...],
        offsets: Mapping[Stratum, float],
        contexts: Mapping[str, float],
        caps: AgentCaps,
        *,
        standings: Mapping[str, float],
    ) -> Self:
        """The series of these rows, corrected by offsets and contexts, weighted by standing and by agents' caps.

        All rewards count as independent until `with_day_variance` reduces `n`.
        """
        keys, moments = _daily_moments(rows, names, offsets, contexts, caps=caps, standings=standings)
        has_weight = moments[:, 0] > 0
        arm, judge, day = keys[has_weight].T
        count, total, squares = moments[has_weight].T
        _, judge = distinct(judge)  # renumbered without the judges that have no weight
        # The keys are sorted, so that a series begins wherever the arm or the judge changes.
        start: Ints = np.flatnonzero((np.diff(arm, prepend=-1) != 0) | (np.diff(judge, prepend=-1) != 0))
        x: Floats = total / MICRO / count
        noise = _estimate_noise(start, judge[start], count, x, squares / MICRO**2)
        return cls(arm=arm[start], judge=judge[start], start=start, noise=noise, day=day, rewards=count, n=count, x=x)

    @cached_property
    def day_count(self) -> Ints:
        """Number of days of each series, (m,)."""
        counts: Ints = np.diff(self.start, append=len(self.day))
        return counts

    @cached_property
    def series_of_day(self) -> Ints:
        """Index of each day's series."""
        return np.repeat(np.arange(len(self.arm)), self.day_count)

    @cached_property
    def is_first_day(self) -> Flags:
        """Whether each day is the first of its series."""
        flags = np.zeros(len(self.day), dtype=np.bool_)
        flags[self.start] = True
        return flags

    def with_day_variance(self, day_variance: float) -> Self:
        """A copy in which the n rewards of a day count as n/(1 + ρ·n)."""
        return replace(self, n=self.rewards / (1 + day_variance * self.rewards)) if day_variance else self

    def first_days(self, wanted: Flags, day: int) -> list[int]:
        """The index of the first day from `day` on, for each series flagged in `wanted` (m,) that has such a day."""
        indexes = []
        for number in np.flatnonzero(wanted):
            start, count = int(self.start[number]), int(self.day_count[number])
            offset = int(np.searchsorted(self.day[start : start + count], day))
            if offset < count:
                indexes.append(start + offset)
        return indexes

    def find_candidates(self, cut: Flags, barred: Flags) -> list[Candidate]:
        """The day with the largest z of each part of each series, if that z is above MIN_Z.

        A part begins with its series or at a day that `cut` flags. z compares a part's mean from a day on with its mean
        before that day (the module's docstring has the formula). A candidate needs MIN_REWARDS independent rewards of
        the part on either side; days that `barred` flags can't be candidates.
        """
        part_start = np.flatnonzero(self.is_first_day | cut)
        part_of_day = np.repeat(np.arange(len(part_start)), np.diff(part_start, append=len(self.day)))
        n, s = self.n, self.n * self.x  # of each day: the number of independent rewards, and their sum
        n_before, s_before = _sums_before(n, part_start, part_of_day), _sums_before(s, part_start, part_of_day)
        n_after = np.add.reduceat(n, part_start)[part_of_day] - n_before
        s_after = np.add.reduceat(s, part_start)[part_of_day] - s_before
        is_possible = (n_before >= MIN_REWARDS) & (n_after >= MIN_REWARDS) & ~barred
        before = s_before / np.maximum(n_before, 1)
        after = s_after / np.maximum(n_after, 1)
        noise = self.noise[self.series_of_day]
        error = np.sqrt(noise * (1 / np.maximum(n_before, 1) + 1 / np.maximum(n_after, 1)))
        z = np.where(is_possible, np.abs(after - before) / error, 0.0)
        candidates = []
        for part in np.flatnonzero(np.maximum.reduceat(z, part_start) > MIN_Z):
            start = part_start[part]
            end = part_start[part + 1] if part + 1 < len(part_start) else len(z)
            at = int(start + np.argmax(z[start:end]))
            candidates.append(
                Candidate(
                    series=int(self.series_of_day[at]),
                    at=at,
                    before=float(before[at]),
                    after=float(after[at]),
                    n_before=float(self.rewards[start:at].sum()),
                    n_after=float(self.rewards[at:end].sum()),
                )
            )
        return candidates

    def log_likelihood(self, cut: Flags, only: int | None = None) -> Floats:
        """Log-likelihood of each series for each of STEPS, (m, steps), or of the series `only`, (1, steps).

        On each day that `cut` flags the level is unknown again, as on a series' first day. This is the Kalman filter of
        the module's docstring, for all series at once: first their first days, then their second days, and so on.
        """
        chosen = np.arange(len(self.arm)) if only is None else np.array([only])
        # Longest first, so that the series with a k-th day are always the first `active` ones.
        chosen = chosen[np.argsort(-self.day_count[chosen], kind="stable")]
        start, count, noise = self.start[chosen], self.day_count[chosen], self.noise[chosen]
        shape = len(chosen), len(STEPS)
        level, variance = np.full(shape, PRIOR_LEVEL), np.full(shape, PRIOR_LEVEL_VARIANCE)
        result = np.zeros(shape)
        step_variance = STEPS * noise[:, None]
        for k in range(int(count[0])):
            active = int(np.searchsorted(-count, -k))
            at = start[:active] + k
            # Predict the level of this day: its variance grows with the days since, up to that of an unknown level.
            if k:
                gap = self.day[at] - self.day[at - 1]
                grown = np.minimum(variance[:active] + step_variance[:active] * gap[:, None], PRIOR_LEVEL_VARIANCE)
                is_cut = cut[at][:, None]
                variance[:active] = np.where(is_cut, PRIOR_LEVEL_VARIANCE, grown)
                level[:active] = np.where(is_cut, PRIOR_LEVEL, level[:active])
            # Score the prediction of the day's mean, then correct the level by its error.
            mean_variance = (noise[:active] / self.n[at])[:, None]
            total = variance[:active] + mean_variance
            error = self.x[at][:, None] - level[:active]
            result[:active] -= (np.log(total) + error**2 / total) / 2
            level[:active] += variance[:active] / total * error
            variance[:active] *= mean_variance / total
        return result[np.argsort(chosen, kind="stable")]  # in the order of the series again

    def is_judge_shift(self, candidate: Candidate) -> bool:
        """Whether the same judge's rewards of other arms fit the candidate's shift better than no shift.

        Each other arm's mean from the candidate's day on, less its mean before, is compared with the shift and with 0,
        by squared errors relative to its variance. Arms without rewards on both sides are left out. False if the others
        have fewer than MIN_REWARDS rewards from that day on.
        """
        series = candidate.series
        is_other = (self.judge == self.judge[series]) & (self.arm != self.arm[series])
        is_before = self.day < self.day[candidate.at]
        n, s = self.n, self.n * self.x
        n_before, s_before = self._sum_by_series(n * is_before), self._sum_by_series(s * is_before)
        n_after, s_after = self._sum_by_series(n * ~is_before), self._sum_by_series(s * ~is_before)
        compared = is_other & (n_before > 0) & (n_after > 0)
        if n_after[compared].sum() < MIN_REWARDS:
            return False
        shift = s_after[compared] / n_after[compared] - s_before[compared] / n_before[compared]
        variance = self.noise[compared] * (1 / n_before[compared] + 1 / n_after[compared])
        return bool(((shift**2 - (shift - candidate.shift) ** 2) / variance).sum() > 0)

    def _sum_by_series(self, values: Floats) -> Floats:
        """Sum of the `values` of days over each series, (m,)."""
        return np.bincount(self.series_of_day, weights=values, minlength=len(self.arm)).astype(np.float64, copy=False)

    @cached_property
    def _key(self) -> tuple[bytes, ...]:
        columns = (self.arm, self.judge, self.start, self.noise, self.day, self.n, self.x)
        return tuple(column.tobytes() for column in columns)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Series) and self._key == other._key


def _judge_name(kind: RowKind) -> str:
    return f"{kind.source} {kind.judge}"


def _daily_moments(
    rows: RewardRows,
    names: tuple[str, ...],
    offsets: Mapping[Stratum, float],
    contexts: Mapping[str, float],
    *,
    caps: AgentCaps,
    standings: Mapping[str, float],
) -> tuple[Ints, Floats]:
    """The distinct (arm, judge, day) of the rows, (k, 3), sorted, and the n, Σr and Σr² of each, (k, 3).

    Arms are indexes into `names`, judges are numbered in the order of their names, days are ordinals. Rewards are in
    micro-units, corrected by offsets and contexts, and weighted by standing and by agents' caps.
    """
    arm_at = positions(names)
    judge_at = positions(tuple(sorted({_judge_name(kind) for kind in rows.kinds})))
    arm = rows.map_kinds(lambda kind: arm_at[kind.arm])
    judge = rows.map_kinds(lambda kind: judge_at[_judge_name(kind)])
    # A row's weight is the product of two factors with few values each. So first the rows of equal weight are summed,
    # as exact integers, and then these few sums are weighted: neither order nor splitting of rows changes a bit.
    cap_factors, cap_index = caps.factor_table(rows)
    standing = rows.map_kinds(lambda kind: standings.get(kind.standing, 1.0), np.float64)
    standing_factors, standing_index = np.unique(standing, return_inverse=True)
    factors: Floats = np.outer(standing_factors, cap_factors).ravel()
    factor_index = standing_index * len(cap_factors) + cap_index
    shift = shifts(rows, offsets, contexts, {})
    n, s, q = (rows.sums[:, column] for column in range(3))
    shifted: Ints = np.array((n, s + shift * n, q + 2 * shift * s + shift**2 * n), dtype=np.int64).T
    keys, sums = sum_by_key(np.array((arm, judge, rows.day, factor_index)).T, shifted)
    weighted = factors[keys[:, 3]][:, None] * sums
    # Add up the weighted sums of each (arm, judge, day), in the order of their factors: `day_index` numbers these keys.
    is_new = np.ones(len(keys), dtype=np.bool_)
    is_new[1:] = (keys[1:, :3] != keys[:-1, :3]).any(axis=1)
    day_index, days = np.cumsum(is_new) - 1, int(is_new.sum())
    columns = [np.bincount(day_index, weights=each, minlength=days) for each in weighted.T]
    moments: Floats = np.column_stack(columns).astype(np.float64, copy=False)
    return keys[is_new, :3], moments


def _estimate_noise(start: Ints, judge: Ints, count: Floats, x: Floats, squares: Floats) -> Floats:
    """σ² of each series, (m,), pooled with that of its `judge` (m,), which is pooled with the prior.

    `start` (m,) is the index of each series' first day. Per day of all series: the number `count` of rewards, their
    mean `x` and the sum of their `squares`.
    """
    # Sum of squared deviations and degrees of freedom within each day. One reward alone doesn't deviate, so successive
    # days with one reward each add half the square of their difference.
    within: Floats = np.maximum(squares - count * x**2, 0.0)
    freedom: Floats = np.maximum(count - 1, 0.0)
    is_single = np.append(False, (count[1:] == 1) & (count[:-1] == 1))
    is_single[start] = False
    within += np.where(is_single, np.diff(x, prepend=0.0) ** 2 / 2, 0.0)
    freedom += is_single
    if len(start):
        within, freedom = np.add.reduceat(within, start), np.add.reduceat(freedom, start)
    judge_within, judge_freedom = np.bincount(judge, weights=within), np.bincount(judge, weights=freedom)
    judge_noise = (judge_within + JUDGE_PRIOR_REWARDS * PRIOR_NOISE) / (judge_freedom + JUDGE_PRIOR_REWARDS)
    noise: Floats = (within + SERIES_PRIOR_REWARDS * judge_noise[judge]) / (freedom + SERIES_PRIOR_REWARDS)
    return noise


def _sums_before(values: Floats, part_start: Ints, part_of_day: Ints) -> Floats:
    """For each day, the sum of the values of the earlier days of its part.

    `part_start` has the index of each part's first day, `part_of_day` the index of each day's part.
    """
    before = np.cumsum(values) - values
    sums: Floats = before - before[part_start][part_of_day]
    return sums


@lru_cache(maxsize=CACHED_RESULTS)
def _detect_changes(
    series: Series, names: tuple[str, ...], decisions: tuple[DecidedBreak, ...], *, varies_by_day: bool
) -> ArmChanges:
    """Search the series greedily for breaks and judges' shifts, given people's decisions; then estimate drift.

    A cut is a day from which on a series' level is unknown again. Each round tests the candidate of every part between
    cuts. A candidate is accepted as an arm's break, which cuts its series, or as a judge's shift, which cuts all series
    of that judge, or is refused for good. The search ends with a round without candidates, or after MAX_ROUNDS.
    """
    breaks = {each.arm: Break(arm=each.arm, day=each.day, is_confirmed=True) for each in decisions if each.is_confirmed}
    if not len(series.day):
        return ArmChanges(breaks=breaks, drift=np.zeros(len(names)))
    cut, cut_without_break, barred = _flags_from_decisions(series, names, decisions)
    day_variance = _estimate_day_variance(series) if varies_by_day else 0.0
    series = series.with_day_variance(day_variance)
    log_likelihood = series.log_likelihood(cut)
    refused: set[tuple[int, int]] = set()
    for _ in range(MAX_ROUNDS):
        candidates = [each for each in series.find_candidates(cut, barred) if (each.series, each.at) not in refused]
        if not candidates:
            break
        for candidate in candidates:
            number, at = candidate.series, candidate.at
            arm, day = names[series.arm[number]], date.fromordinal(int(series.day[at]))
            if arm in breaks and day <= breaks[arm].day:
                refused.add((number, at))  # only an arm's latest break matters
                continue
            # Compare the series with and without a cut at the candidate, each averaged over all degrees of drift.
            trial_cut = cut.copy()
            trial_cut[at] = True
            trial = series.log_likelihood(trial_cut, number)
            log_bayes_factor = float((_log_marginal(trial) - _log_marginal(log_likelihood[[number]]))[0])
            if log_bayes_factor < MIN_LOG_BAYES_FACTOR:
                refused.add((number, at))
            elif series.is_judge_shift(candidate):
                # The arms did not change, so the jump is neither a break nor drift.
                first_days = series.first_days(series.judge == series.judge[number], day.toordinal())
                cut[first_days] = cut_without_break[first_days] = True
                log_likelihood = series.log_likelihood(cut)
            else:
                cut = trial_cut
                log_likelihood[number] = trial[0]
                breaks[arm] = Break(
                    arm=arm,
                    day=day,
                    before=candidate.before,
                    after=candidate.after,
                    n_before=int(candidate.n_before),
                    n_after=int(candidate.n_after),
                )
    return ArmChanges(
        breaks=breaks,
        drift=_estimate_drift(series, names, log_likelihood, cut_without_break),
        day_variance=day_variance,
    )


def _estimate_drift(series: Series, names: tuple[str, ...], log_likelihood: Floats, cut_without_break: Flags) -> Floats:
    """The drift κ of each arm, (arms,): the mean of STEPS, weighted by a prior that the arms share and by likelihood.

    `log_likelihood` (m, steps) is that of the series with all cuts, so that an arm's own breaks don't count as its
    drift. But they do show that arms change, so the shared prior is estimated from the series with only the cuts of
    `cut_without_break`: there, breaks count as drift.
    """
    # The prior, by expectation maximisation: each arm's posterior given the prior, then the prior as their mean.
    breaks_as_drift = _sum_by_arm(series, series.log_likelihood(cut_without_break), len(names))
    has_rewards = np.isin(np.arange(len(names)), series.arm)
    relative = _relative_likelihood(breaks_as_drift[has_rewards])
    prior = STEPS_PRIOR
    for _ in range(ITERATIONS):
        posterior = prior * relative
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = (PRIOR_ARMS * STEPS_PRIOR + posterior.sum(axis=0)) / (PRIOR_ARMS + len(posterior))
    weight = prior * _relative_likelihood(_sum_by_arm(series, log_likelihood, len(names)))
    drift: Floats = weight @ STEPS / weight.sum(axis=1)
    return drift


def _estimate_day_variance(series: Series) -> float:
    """ρ: the mean of DAY_VARIANCES, weighted by their prior and by the likelihood of all series without cuts."""
    uncut = np.zeros(len(series.day), dtype=np.bool_)
    totals = []
    for day_variance in DAY_VARIANCES.tolist():
        log_likelihood = series.with_day_variance(day_variance).log_likelihood(uncut)
        totals.append(_log_marginal(log_likelihood).sum())
    total = np.array(totals)
    weight = DAY_VARIANCES_PRIOR * np.exp(total - total.max())
    return float(weight @ DAY_VARIANCES / weight.sum())


class DecisionFlags(NamedTuple):
    """What follows from people's decisions on breaks: three columns of flags, one for each day in `Series.day`.

    `cut`: the level is unknown again on this day, because a break of it was confirmed or rejected.
    `cut_without_break`: a break of it was rejected. Rewards did jump then, but not because the arm changed, so the jump
    must not count as drift either. `barred`: the search may find no break on this day, because it is from a rejected
    break to the day of its rejection, up to which the person saw the rewards.
    """

    cut: Flags
    cut_without_break: Flags
    barred: Flags


def _flags_from_decisions(series: Series, names: tuple[str, ...], decisions: Iterable[DecidedBreak]) -> DecisionFlags:
    """The flags of these decisions. Each of them, confirmed or rejected, cuts every series of its arm at the first day
    with rewards from the decision's `day` on.
    """
    cut, cut_without_break, barred = (np.zeros(len(series.day), dtype=np.bool_) for _ in range(3))
    arms = positions(names)
    for decision in decisions:
        is_own = series.arm == arms[decision.arm]
        first_days = series.first_days(is_own, decision.day.toordinal())
        cut[first_days] = True
        if not decision.is_confirmed:
            cut_without_break[first_days] = True
            is_barred = (series.day >= decision.day.toordinal()) & (series.day <= decision.decided.toordinal())
            barred[is_own[series.series_of_day] & is_barred] = True
    return DecisionFlags(cut=cut, cut_without_break=cut_without_break, barred=barred)


def _log_marginal(log_likelihood: Floats) -> Floats:
    """Logarithm of each series' likelihood averaged over STEPS_PRIOR, (m,), from the log-likelihoods (m, steps)."""
    highest = log_likelihood.max(axis=1)
    marginal: Floats = highest + np.log((STEPS_PRIOR * np.exp(log_likelihood - highest[:, None])).sum(axis=1))
    return marginal


def _relative_likelihood(log_likelihood: Floats) -> Floats:
    """Each row's likelihoods divided by the greatest of the row, from log-likelihoods (rows, steps)."""
    relative: Floats = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    return relative


def _sum_by_arm(series: Series, log_likelihood: Floats, count: int) -> Floats:
    """Log-likelihood of all series of each arm, (arms, steps), from those of the series; `count` is that of arms."""
    sums = np.zeros((count, len(STEPS)))
    np.add.at(sums, series.arm, log_likelihood)
    return sums
