"""An estimated mean, its standard error and its 90 % interval."""

from dataclasses import dataclass

import numpy as np

from bandit.core.table import Floats

LEVEL = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A `mean`, its standard `error`, and the bounds `low` and `high` of its central 90 % interval."""

    mean: float
    error: float
    low: float
    high: float


def estimate(mean: float, variance: float, freedom: float, *, least: float = 0.0, most: float = 1.0) -> Estimate:
    """Student's interval of a mean with this variance and `freedom` > 0 degrees of freedom, cut to [least, most]."""
    from scipy.special import stdtrit

    error = float(np.sqrt(variance))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    mean, low, high = (float(min(max(each, least), most)) for each in (mean, mean - half, mean + half))
    return Estimate(mean=mean, error=error, low=low, high=high)


def signed(value: float) -> str:
    """A difference as text, with a sign and a typographic minus.

    >>> signed(-0.0164)
    '−0.016'
    """
    return f"{value:+.3f}".replace("-", "−")


def about(count: int) -> str:
    """An expected number of sessions as text, rounded to its two leading digits.

    >>> about(1187)
    '1,200'
    """
    return f"{round(count, 2 - len(str(count))):,}"


def weighted_mean(values: Floats, weights: Floats) -> tuple[float, float]:
    """The mean Σwx/Σw of `values`, shape (n,), n ≥ 2, and its variance.

        var = n/(n − 1) · Σ w²(x − mean)² / (Σw)²

    The ratio estimator with its linearised variance (Hájek 1971; Särndal, Swensson and Wretman 1992, 5.7); with equal
    weights the ordinary mean and s²/n. `weights` are at least 0 and not all 0.
    """
    n, total = len(values), weights.sum()
    mean = float((weights * values).sum() / total)
    return mean, float(n / (n - 1) * (weights**2 * (values - mean) ** 2).sum() / total**2)
