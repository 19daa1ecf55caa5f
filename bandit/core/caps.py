"""Caps on the evidence of a source that is known to be biased, from sessions that a person graded too.

Any number of such rewards has a mean squared error of at least b² + σ_f²/n_f: b is the mean of (machine − human) over
n_f pairs, and σ_f² the variance of single differences. A pseudo-observation is one throw of a coin, of variance
σ² = μ(1 − μ), μ people's mean: so many of them say as much as all of that source's rewards together,

    cap = σ² / (b² + σ_f²/n_f)

Pairs are weighted by 1/probability of being drawn, and n_f is what they are worth in equal ones (Kish).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bandit.core.recalibration import LEAST_PAIRS, MachineHumanPair


@dataclass(frozen=True, slots=True, kw_only=True)
class CapAdvice:
    """`cap` in pseudo-observations, from `pairs` sessions: bias b, its variance σ_f²/n_f, and people's mean μ."""

    source: str
    cap: float
    pairs: int
    bias: float
    doubt: float
    mean: float

    @property
    def arithmetic(self) -> str:
        """How the number came about, for people."""
        return (
            f"{self.mean:.2f}·(1 − {self.mean:.2f}) ÷ ({self.bias:+.2f}² + {self.doubt:.4f}) = {self.cap:.1f}, "
            f"from {self.pairs} pairs"
        )


def advise(pairs: Iterable[MachineHumanPair], source: str) -> CapAdvice | None:
    """The cap of one source; None where fewer than two pairs speak of it, or they show no error
    or nothing but 0 or 1.
    """
    own = [pair for pair in pairs if pair.source == source]
    if len(own) < LEAST_PAIRS:
        return None
    weights = np.array([1 / pair.probability for pair in own])
    weights /= weights.sum()
    human, off = (np.array(each) for each in zip(*((p.human, p.machine - p.human) for p in own), strict=True))
    mean, bias = float(weights @ human), float(weights @ off)
    # The weighted sample variance over n_f = 1/Σw²: unbiased where the weights are equal.
    equal = float((weights**2).sum())
    doubt = float(weights @ (off - bias) ** 2) * equal / (1 - equal)
    error = bias**2 + doubt
    if not error or not 0 < mean < 1:
        return None
    cap = mean * (1 - mean) / error
    return CapAdvice(source=source, cap=cap, pairs=len(own), bias=bias, doubt=doubt, mean=mean)
