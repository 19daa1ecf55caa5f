"""Intervals that hold at all times together, so that people may look as often as they like."""

import math

LEVEL = 0.90


def half_width(information: float, scale: float, miss: float = 1 - LEVEL) -> float:
    """Half of the width of a confidence sequence for an effect.

    `information`: 1 / variance of its estimate now. `scale`: effects of about this size are bounded most narrowly; the
    sequence is valid for any. `miss`: the chance that the effect is ever outside, both sides together.

    The estimates of an efficient estimator, as data come in, move like a Brownian motion with the effect as its drift,
    observed at the time `information` (Jennison and Turnbull, JASA 1997). The bound is that of Robbins' normal mixture
    (Annals of Mathematical Statistics 1970; equation 14 in Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform,
    nonparametric, nonasymptotic confidence sequences", Annals of Statistics 2021). With an estimated variance it holds
    asymptotically (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic
    confidence sequences", Annals of Statistics 2024).
    """
    prior = 1 / scale**2
    total = information + prior
    return math.sqrt(total * math.log(total / (prior * miss**2))) / information


def anytime_p(effect: float, information: float, scale: float) -> float:
    """The anytime-valid p-value for "no effect": the smallest error probability at which the confidence sequence
    excludes 0.
    """
    prior = 1 / scale**2
    total = information + prior
    exponent = (effect * information) ** 2 / (2 * total)
    return min(1.0, math.sqrt(total / prior) * math.exp(-exponent))
