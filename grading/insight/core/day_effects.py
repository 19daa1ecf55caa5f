"""How much whole days differ: sessions of one day share something, such as its work, and bad days follow bad ones."""

from dataclasses import dataclass

import numpy as np

from grading.insight.core.cells import Floats, Integers, group_sums

# The correlation of neighbouring days is taken to be at most this: beyond it no number of days says anything.
MAX_CORRELATION = 0.8
# Fewer days leave the variance of days unknown.
MIN_DAYS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DayEffects:
    """The variance of the effect that all sessions of a day share, and its correlation from day to day. `session`: the
    variance of sessions of one day. `days`: how many days it was estimated from.
    """

    variance: float
    correlation: float
    session: float
    days: int

    def covariance(self, count: int) -> Floats:
        """The covariance of the effects of `count` successive days, an autoregression of order one."""
        return self.variance * correlation_matrix(self.correlation, count)


def correlation_matrix(correlation: float, count: int) -> Floats:
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    return np.asarray(correlation**lags, dtype=np.float64)


def estimate_day_effects(days: Integers, groups: Integers, count: Floats, total: Floats, squares: Floats) -> DayEffects:
    """Estimate how days differ from cells with a day, a group of like work, a number of values, their sum and that of
    their squares. By the method of moments (Searle, Casella and McCulloch, "Variance Components", 1992, section 3.6).

    A trend within the span counts as differing days: that widens intervals, and never narrows them.
    """
    filled = count > 0
    if not filled.any():
        return DayEffects(variance=0.0, correlation=0.0, session=0.0, days=0)
    first = int(days[filled].min())
    day, n_days, n_groups = days - first, int(days[filled].max()) - first + 1, int(groups.max()) + 1
    day = np.clip(day, 0, n_days - 1)
    group_count = group_sums(groups, count, n_groups)
    means = np.divide(group_sums(groups, total, n_groups), group_count, out=np.zeros(n_groups), where=group_count > 0)
    residual = total - means[groups] * count
    day_count, day_residual = group_sums(day, count, n_days), group_sums(day, residual, n_days)
    observed = day_count > 0
    n, days_seen = float(count.sum()), int(observed.sum())
    around_groups = max(0.0, float((squares - 2 * means[groups] * total + means[groups] ** 2 * count).sum()))
    between = float((day_residual[observed] ** 2 / day_count[observed]).sum())
    freedom = max(1.0, n - days_seen - float((group_count > 0).sum()) + 1)
    session = max(0.0, around_groups - between) / freedom
    if days_seen < MIN_DAYS:
        return DayEffects(variance=0.0, correlation=0.0, session=session, days=days_seen)
    spread = n - float((day_count[observed] ** 2).sum()) / n
    variance = max(0.0, (between - (days_seen - 1) * session) / spread)
    return DayEffects(
        variance=variance,
        correlation=_correlation(day_residual, day_count, variance),
        session=session,
        days=days_seen,
    )


def _correlation(residual: Floats, count: Floats, variance: float) -> float:
    """The correlation of neighbouring days, in [0, MAX_CORRELATION], corrected for its bias in short series (Kendall,
    Biometrika 1954): the estimate of a series of length T is too low by about (1 + 3 r) / T.
    """
    means = np.divide(residual, count, out=np.zeros(len(count)), where=count > 0)
    both = (count[1:] > 0) & (count[:-1] > 0)
    if variance <= 0 or both.sum() < MIN_DAYS:
        return 0.0
    r = float((means[1:] * means[:-1])[both].mean()) / variance
    return float(np.clip(r + (1 + 3 * r) / both.sum(), 0.0, MAX_CORRELATION))
