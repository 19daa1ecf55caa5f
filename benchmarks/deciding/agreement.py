"""Whether draws are as their chances say: a chi-square that takes each draw with the very chances that it had."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

# Arms that are expected to be drawn less often than this are looked at together; and so are sets with fewer draws.
FEWEST, FEWEST_DRAWS = 5.0, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """`draws` in `groups` of equal eligible sets, with the chi-square of all and its `p`; `least_p` is that of the
    group that agrees the least, times how many there are, 1 at most.
    """

    draws: int
    groups: int
    chi_square: float
    freedom: int
    p: float
    least_p: float


def agreement(drawn: Iterable[tuple[Mapping[str, float], str]]) -> Agreement:
    """Of (chances, the arm drawn) of many decisions, independent given what came before each.

    Sets that were eligible too seldom make one group, in which who was not eligible had no chance. In a group, with
    draws y_i (one 1, else 0) of chances π_i, d = Σ(y_i − π_i) has the covariance V = Σ(diag π_i − π_i·π_iᵀ), and
    dᵀ·V⁻·d is chi-square with the rank of V, also where chances differ between draws.
    """
    groups: dict[tuple[str, ...], list[tuple[Mapping[str, float], str]]] = {}
    for odds, arm in drawn:
        groups.setdefault(tuple(sorted(odds)), []).append((odds, arm))
    seldom = [names for names, rows in groups.items() if len(rows) < FEWEST_DRAWS]
    rest = [row for names in seldom for row in groups.pop(names)]
    if rest:
        groups[tuple(sorted({name for odds, _arm in rest for name in odds}))] = rest
    found = [each for names, rows in sorted(groups.items()) if (each := _group(names, rows))]
    total, freedom = sum(each[0] for each in found), sum(each[1] for each in found)
    least = min((float(chi2.sf(*each)) for each in found), default=1.0)
    return Agreement(
        draws=sum(map(len, groups.values())),
        groups=len(groups),
        chi_square=total,
        freedom=freedom,
        p=float(chi2.sf(total, freedom)) if freedom else 1.0,
        least_p=min(1.0, least * len(found)),
    )


def _group(names: tuple[str, ...], rows: list[tuple[Mapping[str, float], str]]) -> tuple[float, int] | None:
    """The chi-square and its degrees of freedom; None where there is nothing that might differ."""
    odds = np.array([[each.get(name, 0.0) for name in names] for each, _arm in rows])
    hits = np.array([[name == arm for name in names] for _odds, arm in rows], dtype=float)
    rare = odds.sum(axis=0) < FEWEST
    if rare.any():
        odds, hits = (np.column_stack((each[:, ~rare], each[:, rare].sum(axis=1))) for each in (odds, hits))
    # The chances of a draw add up to 1: what all but one column say, the last says too.
    odds, hits = odds[:, :-1], hits[:, :-1]
    if not odds.shape[1] or min(odds.sum(axis=0).min(), (1 - odds).sum(axis=0).min()) < FEWEST:
        return None
    off = (hits - odds).sum(axis=0)
    covariance = np.diag(odds.sum(axis=0)) - odds.T @ odds
    return float(off @ np.linalg.solve(covariance, off)), len(off)
