"""How far a judge's grades are from people's: bias and mean absolute error over pairs, each with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeHumanPair:
    """A judge's and a person's grade of the same session, both in [0, 1].

    `probability` in (0, 1] is the probability with which the session was sampled.
    """

    judge: float
    human: float
    probability: float = 1.0

    @property
    def gap(self) -> float:
        """Judge minus human, in [−1, 1]: above 0 if the judge's grade is higher."""
        return self.judge - self.human


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """A mean with its 90 % interval; the interval is None for fewer than two pairs."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The mean gap (`bias`, in [−1, 1]) and the mean absolute gap (`error`, in [0, 1]) of `n` pairs; None if n is 0."""

    n: int
    bias: MeanEstimate | None = None
    error: MeanEstimate | None = None


def measure_agreement(pairs: Sequence[JudgeHumanPair]) -> Agreement:
    """Bias and mean absolute error over independent pairs."""
    if not pairs:
        return Agreement(n=0)
    weights = [1 / pair.probability for pair in pairs]
    bias = estimate_mean([pair.gap for pair in pairs], weights, low=-1)
    return Agreement(n=len(pairs), bias=bias, error=estimate_mean([abs(pair.gap) for pair in pairs], weights, low=0))


def estimate_mean(values: Sequence[float], weights: Sequence[float], *, low: float) -> MeanEstimate:
    """The weighted mean of `values` (at least one) and a t interval, cut to [low, 1].

    Hájek's ratio estimator with its linearised variance and n − 1 degrees of freedom (Särndal, Swensson and Wretman
    1992, 5.7); with equal weights that is the ordinary mean and its t interval.
    """
    from scipy.special import stdtrit

    n = len(values)
    total_weight = sum(weights)
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / total_weight
    if n == 1:
        return MeanEstimate(mean=mean)
    squares = sum((w * (x - mean)) ** 2 for w, x in zip(weights, values, strict=True))
    half_width = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * math.sqrt(n / (n - 1) * squares) / total_weight
    return MeanEstimate(mean=mean, low=max(mean - half_width, low), high=min(mean + half_width, 1.0))
