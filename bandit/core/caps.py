"""Recommends a cap on the evidence of a biased source, from sessions that a person graded too.

Any number of its rewards has a mean squared error of at least b² + σ_f²/n_f: b is the mean of (machine − human) over
n_f pairs, and σ_f² the variance of single differences. A pseudo-observation is one toss of a coin, of variance
σ² = μ(1 − μ), μ people's mean. So all of that source's rewards together are worth this many of them:

    cap = σ² / (b² + σ_f²/n_f)

Pairs are weighted by 1/probability of being drawn, and n_f is how many equally weighted pairs they are worth (Kish).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bandit.core.recalibration import MIN_PAIRS, MachineHumanPair


@dataclass(frozen=True, slots=True, kw_only=True)
class CapAdvice:
    """`cap` in pseudo-observations, from `pairs` sessions: bias b, `doubt` its variance σ_f²/n_f, `mean` people's μ."""

    source: str
    cap: float
    pairs: int
    bias: float
    doubt: float
    mean: float

    @property
    def arithmetic(self) -> str:
        """The calculation as text."""
        return (
            f"{self.mean:.2f}·(1 − {self.mean:.2f}) ÷ ({self.bias:+.2f}² + {self.doubt:.4f}) = {self.cap:.1f}, "
            f"from {self.pairs} pairs"
        )


def advise(pairs: Iterable[MachineHumanPair], source: str) -> CapAdvice | None:
    """The cap of one source; None if it has fewer than two pairs, or they show no error, or people's mean is 0 or 1."""
    own = [pair for pair in pairs if pair.source == source]
    if len(own) < MIN_PAIRS:
        return None
    weights = np.array([1 / pair.probability for pair in own])
    weights /= weights.sum()
    human = np.array([pair.human for pair in own])
    off = np.array([pair.machine - pair.human for pair in own])
    mean, bias = float(weights @ human), float(weights @ off)
    # The weighted sample variance divided by n_f = 1/Σw²; unbiased if the weights are equal.
    inverse_n = float((weights**2).sum())
    doubt = float(weights @ (off - bias) ** 2) * inverse_n / (1 - inverse_n)
    error = bias**2 + doubt
    if not error or not 0 < mean < 1:
        return None
    cap = mean * (1 - mean) / error
    return CapAdvice(source=source, cap=cap, pairs=len(own), bias=bias, doubt=doubt, mean=mean)
