"""An arm's mean from the judge's grades of all its sessions, corrected by people's grades of a few of them.

Prediction-powered inference with power tuning (Angelopoulos, Duchi and Zrnic, "PPI++: Efficient Prediction-Powered
Inference", 2023, arXiv:2311.01453), for a mean. There are n pairs of grades (y by a person, f by the judge), and the
judge's grades f̃ of the N other sessions:

    θ̂ = λ·mean(f̃) + mean(y − λ·f)        λ = cov(y, f) / ((1 + n/N)·var(f)), cut to [0, 1]
    var(θ̂) = var(y − λ·f)/n + λ²·var(f̃)/N

If the judge's grades tell nothing about people's grades, λ is 0 and θ̂ is the mean of people's grades. If the judge's
grades are too high or too low by the same amount everywhere, mean(y − λ·f) corrects that fully.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grading.review.agreement import LEVEL, JudgeHumanPair, MeanEstimate

# With fewer pairs λ and the variance are guesses.
FEWEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeSums:
    """A judge's grades in [0, 1], added up: their number `n`, their sum `s` and their sum of squares `q`."""

    n: int = 0
    s: float = 0.0
    q: float = 0.0

    @property
    def variance(self) -> float:
        """The unbiased variance of one grade; 0 for fewer than two grades."""
        return max(self.q - self.s**2 / self.n, 0.0) / (self.n - 1) if self.n > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMean:
    """An arm's mean in [0, 1], from `pairs` sessions that a person graded too and `alone` that only the judge graded.

    `mean` is None for fewer than FEWEST pairs, and has a 90 % interval otherwise. `weight` is λ, the weight of the
    judge's grades, in [0, 1].
    """

    pairs: int
    alone: int
    mean: MeanEstimate | None = None
    weight: float = 0.0

    @property
    def missing(self) -> int:
        """How many more pairs the mean needs."""
        return max(FEWEST - self.pairs, 0)


def arm_mean(pairs: Sequence[JudgeHumanPair], alone: GradeSums) -> ArmMean:
    """The mean over an arm's sessions. `pairs` are a random sample of them; each is weighted by 1/probability.

    `alone` are the sums over the other sessions. The interval is Student's with n − 2 degrees of freedom, as for a
    regression, because λ was fitted to the same pairs.
    """
    from scipy.special import stdtrit

    n = len(pairs)
    if n < FEWEST:
        return ArmMean(pairs=n, alone=alone.n)
    weights = 1 / np.array([pair.probability for pair in pairs])
    weights /= weights.sum()
    human = np.array([pair.human for pair in pairs])
    judge = np.array([pair.judge for pair in pairs])
    # The effective sample size (Kish): as many pairs of equal probability would be worth as much as these.
    size = float(1 / (weights**2).sum())
    centred = judge - weights @ judge
    judge_variance = float(weights @ centred**2)
    weight = 0.0
    if alone.n and judge_variance:
        tuned = float(weights @ (centred * human)) / judge_variance / (1 + size / alone.n)
        weight = min(max(tuned, 0.0), 1.0)
    corrections = human - weight * judge
    mean_correction = float(weights @ corrections)
    variance = float(weights @ (corrections - mean_correction) ** 2) / (size - 2)
    mean = mean_correction
    if alone.n:
        mean += weight * alone.s / alone.n
        variance += weight**2 * alone.variance / alone.n
    half_width = float(stdtrit(size - 2, (1 + LEVEL) / 2)) * math.sqrt(variance)
    mean = min(max(mean, 0.0), 1.0)
    estimate = MeanEstimate(mean=mean, low=max(mean - half_width, 0.0), high=min(mean + half_width, 1.0))
    return ArmMean(pairs=n, alone=alone.n, mean=estimate, weight=weight)
