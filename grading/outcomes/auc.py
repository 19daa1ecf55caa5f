"""How well a grade ranks sessions whose work landed above those whose work did not. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grading.insight.core.means import Z90

# The fewest sessions of either kind for a ranking.
FEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The area under the ROC curve in [0, 1]: the chance that a session that landed has the higher grade; .5 is chance.

    `low` and `high` are a 90 % interval. All three are None with fewer than FEWEST sessions of either kind.
    """

    landed: int
    others: int
    auc: float | None = None
    low: float | None = None
    high: float | None = None


def rank(landed: Sequence[float], others: Sequence[float]) -> Ranking:
    """The ranking by these grades. The variance is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988), and
    the interval is computed on the logit of the area, so that it stays within [0, 1].

    >>> round(rank([0.9] * 6 + [0.5] * 6, [0.1] * 11 + [0.9]).auc, 3)
    0.938
    """
    sizes = {"landed": len(landed), "others": len(others)}
    if min(sizes.values()) < FEWEST:
        return Ranking(**sizes)
    ranks = _midranks([*landed, *others])
    m, n = len(landed), len(others)
    # For each session that landed, the share of the others that it is above; for each of the others, the share of those
    # that landed that it is below. A tie counts as half. A rank among all minus the rank among its own kind is the
    # number of the other kind that are below.
    below = [(rank - own) / n for rank, own in zip(ranks[:m], _midranks(landed), strict=True)]
    above = [1 - (rank - own) / m for rank, own in zip(ranks[m:], _midranks(others), strict=True)]
    auc = sum(below) / m
    error = math.sqrt(_variance(below) / m + _variance(above) / n)
    if not 0 < auc < 1:
        # Nothing overlaps, so nothing shows how much could: the rule of three gives the bound.
        bound = 3 / min(m, n)
        return Ranking(**sizes, auc=auc, low=max(auc - bound, 0.0), high=min(auc + bound, 1.0))
    centre, reach = math.log(auc / (1 - auc)), Z90 * error / (auc * (1 - auc))
    return Ranking(**sizes, auc=auc, low=_logistic(centre - reach), high=_logistic(centre + reach))


def _midranks(values: Sequence[float]) -> list[float]:
    """The rank of each value from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + 1 + end) / 2
        start = end
    return ranks


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -700.0), 700.0)))
