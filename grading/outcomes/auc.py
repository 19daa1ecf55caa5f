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
    """The area under the ROC curve in [0, 1]: how likely a session that landed has a higher grade than another.

    .5 is what chance gives. `low` and `high` are a 90 % interval. All three are None with fewer than FEWEST sessions of
    either kind.
    """

    landed: int
    others: int
    auc: float | None = None
    low: float | None = None
    high: float | None = None


def rank(landed: Sequence[float], others: Sequence[float]) -> Ranking:
    """The ranking by these grades.

    The variance is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988). The interval is computed on the
    logit of the area, so that it stays within [0, 1].

    >>> round(rank([0.9] * 6 + [0.5] * 6, [0.1] * 11 + [0.9]).auc, 3)
    0.938
    """
    sizes = {"landed": len(landed), "others": len(others)}
    if min(sizes.values()) < FEWEST:
        return Ranking(**sizes)
    ranks = _midranks([*landed, *others])
    m, n = len(landed), len(others)
    # A session's rank among all, minus its rank among its own kind, is the number of the other kind with a lower grade.
    # A tie counts as half.
    share_below = (ranks[:m] - _midranks(landed)) / n  # for each session that landed, of the others
    share_above = 1 - (ranks[m:] - _midranks(others)) / m  # for each of the others, of those that landed
    auc = float(share_below.mean())
    error = math.sqrt(share_below.var(ddof=1) / m + share_above.var(ddof=1) / n)
    if not 0 < auc < 1:
        # The grades of the two kinds do not overlap, so there is no variance: the rule of three gives a bound.
        bound = 3 / min(m, n)
        return Ranking(**sizes, auc=auc, low=max(auc - bound, 0.0), high=min(auc + bound, 1.0))
    logit = math.log(auc / (1 - auc))
    half = Z90 * error / (auc * (1 - auc))
    return Ranking(**sizes, auc=auc, low=_logistic(logit - half), high=_logistic(logit + half))


def _midranks(values: Sequence[float]) -> NDArray[np.float64]:
    """The rank of each value from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (counts.cumsum() - (counts - 1) / 2)[place]
    return ranks


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -700.0), 700.0)))
