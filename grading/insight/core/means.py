"""Means of cells with intervals that allow for differing days."""

import math

import numpy as np

from grading.insight.core.cells import CellTable, Floats, MeasureSums, group_sums
from grading.insight.core.measures import MEASURES, MeasureUnit
from grading.insight.core.results import Mean

LEVEL = 0.90
Z90, Z95 = 1.6448536269514722, 1.959963984540054
# Fewer days are no sample of days.
MIN_CLUSTERS = 4
# What rounding leaves of the variance of equal values, relative to their square.
ROUNDING = 1e-12


def mean_of(table: CellTable, measure: str) -> Mean:
    """The mean of a measure over a table, with a 90 % interval.

    Sessions of one day are alike, so days are the sample (ratio estimator of clusters: Cochran, "Sampling Techniques",
    1977, section 9A.1). With fewer than MIN_CLUSTERS days, sessions are the sample.
    """
    sums = table.sums[measure]
    known, total = float(sums.count.sum()), float(sums.total.sum())
    numbers = {
        "sessions": round(float(table.sessions.sum())),
        "known": round(known),
        "provisional": round(float(table.provisional.sum())),
    }
    if known == 0:
        return Mean(value=None, low=None, high=None, **numbers)
    value = total / known
    half = half_width(table, measure, value)
    if half is None:
        return Mean(value=value, low=None, high=None, **numbers)
    low, high = clamp(measure, value - half), clamp(measure, value + half)
    return Mean(value=value, low=low, high=high, **numbers)


def clamp(measure: str, value: float) -> float:
    """The nearest possible value of a measure: rewards and shares are in [0, 1], and nothing is below 0."""
    unit = MEASURES[measure].unit if measure in MEASURES else None
    highest = 1.0 if unit in {MeasureUnit.REWARD, MeasureUnit.SHARE} else math.inf
    return min(max(value, 0.0), highest)


def half_width(table: CellTable, measure: str, value: float) -> float | None:
    """Half of the width of the 90 % interval of the mean `value`.

    None for a single session, and if the values don't vary: a few equal values don't show how much others would.
    """
    sums = table.sums[measure]
    known = float(sums.count.sum())
    if known <= 1:
        return None
    _, day = np.unique(table.days, return_inverse=True)
    counts = group_sums(day, sums.count, int(day.max()) + 1)
    totals = group_sums(day, sums.total, int(day.max()) + 1)
    days = int((counts > 0).sum())
    if days < MIN_CLUSTERS:
        freedom = known - 1
        variance = _squared_deviations(sums, value) / known / (known - 1)
    else:
        freedom = float(days - 1)
        residual = totals - value * counts
        variance = float((residual**2).sum()) / known**2 * days / (days - 1)
    if variance < ROUNDING * max(1.0, value**2):
        return None
    from scipy.special import stdtrit  # large, and not needed for a page without an interval

    return float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)


def _squared_deviations(sums: MeasureSums, value: float) -> float:
    """The sum of the squared deviations of all values from `value`."""
    squares: Floats = sums.squares - 2 * value * sums.total + value**2 * sums.count
    return max(0.0, float(squares.sum()))
