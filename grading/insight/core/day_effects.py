"""How much whole days differ: sessions of one day have something in common, and bad days tend to follow bad ones."""

from dataclasses import dataclass

import numpy as np

from grading.insight.core.cells import Floats, Integers, group_sums

# The correlation of neighbouring days is limited to this: above it, even many days would show hardly anything.
MAX_CORRELATION = 0.8
# Fewer days leave the variance of days unknown.
MIN_DAYS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DayEffects:
    """The `variance` of the effect that all sessions of a day share, and its `correlation` from day to day.

    `session_variance` is the variance of the sessions of one day. `days` is the number of days that all this was
    estimated from.
    """

    variance: float
    correlation: float
    session_variance: float
    days: int

    def covariance(self, count: int) -> Floats:
        """The covariance of the effects of `count` successive days, an autoregression of order one."""
        return self.variance * correlation_matrix(self.correlation, count)


def correlation_matrix(correlation: float, count: int) -> Floats:
    """The correlation of each two of `count` successive days, correlation^lag."""
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    return np.asarray(correlation**lags, dtype=np.float64)


def estimate_day_effects(days: Integers, groups: Integers, count: Floats, total: Floats, squares: Floats) -> DayEffects:
    """Estimate how much days differ, by the method of moments (Searle, Casella and McCulloch, "Variance Components",
    1992, section 3.6).

    Each cell has a day (an ordinal), a group of like work (numbered from 0), and the count, sum and sum of squares of
    its values; shapes (cells,). A trend within the span counts as differing days: that widens intervals.
    """
    has_values = count > 0
    if not has_values.any():
        return DayEffects(variance=0.0, correlation=0.0, session_variance=0.0, days=0)
    first, last = int(days[has_values].min()), int(days[has_values].max())
    n_days = last - first + 1
    n_groups = int(groups.max()) + 1
    day = np.clip(days - first, 0, n_days - 1)  # cells without values may be outside, and count nothing
    # The deviations of values from the mean of their group, summed by day.
    group_count = group_sums(groups, count, n_groups)
    means = np.divide(group_sums(groups, total, n_groups), group_count, out=np.zeros(n_groups), where=group_count > 0)
    deviation = total - means[groups] * count
    day_count = group_sums(day, count, n_days)
    day_deviation = group_sums(day, deviation, n_days)
    observed = day_count > 0
    n = float(count.sum())
    days_seen = int(observed.sum())
    # The sums of squares of all deviations, of the days' mean deviations, and within days.
    around_groups = max(0.0, float((squares - 2 * means[groups] * total + means[groups] ** 2 * count).sum()))
    between_days = float((day_deviation[observed] ** 2 / day_count[observed]).sum())
    freedom = max(1.0, n - days_seen - float((group_count > 0).sum()) + 1)
    session_variance = max(0.0, around_groups - between_days) / freedom
    if days_seen < MIN_DAYS:
        return DayEffects(variance=0.0, correlation=0.0, session_variance=session_variance, days=days_seen)
    # E[between_days] = (days_seen − 1) · session_variance + coefficient · variance
    coefficient = n - float((day_count[observed] ** 2).sum()) / n
    variance = max(0.0, (between_days - (days_seen - 1) * session_variance) / coefficient)
    return DayEffects(
        variance=variance,
        correlation=_correlation(day_deviation, day_count, variance),
        session_variance=session_variance,
        days=days_seen,
    )


def _correlation(deviation: Floats, count: Floats, variance: float) -> float:
    """The correlation of neighbouring days, in [0, MAX_CORRELATION], given each day's sum of deviations and its count.

    Corrected for the bias in short series (Kendall, Biometrika 1954): the estimate from T pairs of days is too low by
    about (1 + 3 r) / T.
    """
    means = np.divide(deviation, count, out=np.zeros(len(count)), where=count > 0)
    both = (count[1:] > 0) & (count[:-1] > 0)
    if variance <= 0 or both.sum() < MIN_DAYS:
        return 0.0
    r = float((means[1:] * means[:-1])[both].mean()) / variance
    return float(np.clip(r + (1 + 3 * r) / both.sum(), 0.0, MAX_CORRELATION))
