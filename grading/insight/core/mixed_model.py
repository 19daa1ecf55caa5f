"""A linear mixed model of sessions: fixed effects of columns, and random effects of whole days, correlated in time."""

import math
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from grading.insight.core.cells import Floats, Integers, group_sums

# The grid of the unknown parameters of days: their variance, as a multiple of the variance of the mean of an average
# day's sessions, and the correlation of neighbouring days.
DAY_RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
CORRELATIONS = (0.0, 0.25, 0.5, 0.75)
# The prior precision of each coefficient, for values with a standard deviation of 1. It matters only for coefficients
# that the data don't determine (of equal columns, or of a column that is always 0): it gives these a large variance.
RIDGE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class StepData:
    """Cells as rows. `design` (cells, columns) has the values of the columns, `days` numbers the days from 0, and
    `count`, `total` and `squares` are the number, the sum and the sum of squares of a cell's values.
    """

    design: Floats
    days: Integers
    count: Floats
    total: Floats
    squares: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFit:
    """The coefficients of the columns for values minus their `mean`, with their covariance. `deviation` is the standard
    deviation of the values.
    """

    coefficients: Floats
    covariance: Floats
    mean: float
    deviation: float


class _Moments(NamedTuple):
    """Sums over sessions, with X the design and y the values: Xᵀ·X, Xᵀ·y and yᵀ·y. By day: X, y, and the count."""

    columns: Floats
    values: Floats
    square: float
    day_columns: Floats
    day_values: Floats
    day_count: Floats


def fit_steps(data: StepData) -> StepFit | None:
    """Fit a linear mixed model: value = design · coefficients + effect of the day + error.

    The effects of days are an autoregression of order one. Its variance and correlation are integrated out over a grid,
    weighted by the restricted likelihood (Searle, Casella and McCulloch, "Variance Components", 1992, chapter 6), so
    that the covariance allows for not knowing them. None without enough values.
    """
    size = float(data.count.sum())
    freedom = size - data.design.shape[1]
    if freedom < 1:
        return None
    mean = float(data.total.sum()) / size
    deviation = float(np.sqrt(max(0.0, data.squares.sum() / size - mean**2)))
    if deviation == 0:
        return None
    moments = _moments(data, mean, deviation)
    logs, coefficients, covariances = [], [], []
    sessions_a_day = size / max(1, int((moments.day_count > 0).sum()))
    grid = [(0.0, 0.0), *product(DAY_RATIOS, CORRELATIONS)]
    for ratio, correlation in grid:
        log, solution, covariance = _solve(moments, ratio / sessions_a_day, correlation, freedom)
        logs.append(log)
        coefficients.append(solution)
        covariances.append(covariance)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    # The mean over the grid, and the covariance within its points plus that between them.
    center = np.tensordot(weights, np.array(coefficients), 1)
    spread = np.array(coefficients) - center
    covariance = np.tensordot(weights, np.array(covariances), 1) + (spread * weights[:, None]).T @ spread
    return StepFit(
        coefficients=center * deviation, covariance=covariance * deviation**2, mean=mean, deviation=deviation
    )


def _moments(data: StepData, mean: float, deviation: float) -> _Moments:
    """The sums over all sessions and by day, for values that are scaled to mean 0 and standard deviation 1."""
    total = (data.total - mean * data.count) / deviation
    squares = (data.squares - 2 * mean * data.total + mean**2 * data.count) / deviation**2
    weighted = data.design * data.count[:, None]
    days = int(data.days.max()) + 1
    day_columns = np.zeros((days, data.design.shape[1]))
    np.add.at(day_columns, data.days, weighted)
    return _Moments(
        columns=data.design.T @ weighted,
        values=data.design.T @ total,
        square=float(squares.sum()),
        day_columns=day_columns,
        day_values=group_sums(data.days, total, days),
        day_count=group_sums(data.days, data.count, days),
    )


def _solve(moments: _Moments, ratio: float, correlation: float, freedom: float) -> tuple[float, Floats, Floats]:
    """The log of the restricted likelihood, the coefficients and their covariance, if the variance of days is `ratio`
    times that of a session.

    By Woodbury's identity, the largest system of equations has one for each day. Its matrix is tridiagonal, because the
    inverse of the covariance of an autoregression is.
    """
    from scipy.linalg import cho_solve_banded, cholesky_banded

    columns, values, square = moments.columns, moments.values, moments.square
    log = 0.0
    if ratio > 0:
        days = len(moments.day_count)
        scale = 1 / (ratio * (1 - correlation**2))
        bands = np.zeros((2, days))
        bands[0, 1:] = -correlation * scale
        bands[1] = (1 + correlation**2) * scale + moments.day_count
        bands[1, [0, -1]] -= correlation**2 * scale
        factor = cholesky_banded(bands)
        sums = np.column_stack([moments.day_columns, moments.day_values])
        shrunk = sums.T @ cho_solve_banded((factor, False), sums)
        columns = columns - shrunk[:-1, :-1]
        values = values - shrunk[:-1, -1]
        square -= float(shrunk[-1, -1])
        # Half of the log of the determinant of I + N D, with D the covariance of days and N their sessions.
        log = -float(np.log(factor[1]).sum()) - 0.5 * (
            days * math.log(ratio) + (days - 1) * math.log(1 - correlation**2)
        )
    precision = columns + RIDGE * np.eye(len(columns))
    inverse = np.linalg.inv(precision)
    solution = inverse @ values
    residual = max(square - float(values @ solution), 1e-9)
    log -= 0.5 * float(np.linalg.slogdet(precision)[1]) + 0.5 * freedom * math.log(residual)
    return log, solution, np.asarray(residual / freedom * inverse, dtype=np.float64)
