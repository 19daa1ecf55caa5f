"""How well a grade ranks sessions whose work landed above those whose work did not. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    below = (ranks[:m] - _midranks(landed)) / n
    above = 1 - (ranks[m:] - _midranks(others)) / m
    auc = float(below.mean())
    error = math.sqrt(below.var(ddof=1) / m + above.var(ddof=1) / n)
    if not 0 < auc < 1:
        # Nothing overlaps, so nothing shows how much could: the rule of three gives the bound.
        bound = 3 / min(m, n)
        return Ranking(**sizes, auc=auc, low=max(auc - bound, 0.0), high=min(auc + bound, 1.0))
    centre, reach = math.log(auc / (1 - auc)), Z90 * error / (auc * (1 - auc))
    return Ranking(**sizes, auc=auc, low=_logistic(centre - reach), high=_logistic(centre + reach))


def _midranks(values: Sequence[float]) -> NDArray[np.float64]:
    """The rank of each value from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (counts.cumsum() - (counts - 1) / 2)[place]
    return ranks


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -700.0), 700.0)))
