"""A chi-square test of logged chances: it takes each draw with the chances that were logged for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

# Arms that are expected to be drawn less often than this share one column; sets with fewer draws share one group.
FEWEST, FEWEST_DRAWS = 5.0, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """`draws` in `groups` of equal eligible sets, with the chi-square of all groups and its `p`.

    `least_p` is the p of the group that agrees the least, multiplied by the number of groups; 1 at most.
    """

    draws: int
    groups: int
    chi_square: float
    freedom: int
    p: float
    least_p: float


def agreement(draws: Iterable[tuple[Mapping[str, float], str]]) -> Agreement:
    """Compare (chances, the arm drawn) of many decisions, each independent given what came before it.

    Sets that were eligible too seldom make one group, in which an arm that was not eligible had no chance. In a group,
    with draws y_i (one 1, else 0) of chances π_i, d = Σ(y_i − π_i) has the covariance V = Σ(diag π_i − π_i·π_iᵀ), and
    dᵀ·V⁻·d is chi-square with the rank of V, also where chances differ between draws.
    """
    groups: dict[tuple[str, ...], list[tuple[Mapping[str, float], str]]] = {}
    for chances, arm in draws:
        groups.setdefault(tuple(sorted(chances)), []).append((chances, arm))
    rare_sets = [names for names, rows in groups.items() if len(rows) < FEWEST_DRAWS]
    rare_rows = [row for names in rare_sets for row in groups.pop(names)]
    if rare_rows:
        groups[tuple(sorted({name for chances, _arm in rare_rows for name in chances}))] = rare_rows
    statistics = [each for names, rows in sorted(groups.items()) if (each := _group_statistic(names, rows))]
    total, freedom = sum(each[0] for each in statistics), sum(each[1] for each in statistics)
    least = min((float(chi2.sf(*each)) for each in statistics), default=1.0)
    return Agreement(
        draws=sum(map(len, groups.values())),
        groups=len(groups),
        chi_square=total,
        freedom=freedom,
        p=float(chi2.sf(total, freedom)) if freedom else 1.0,
        least_p=min(1.0, least * len(statistics)),
    )


def _group_statistic(names: tuple[str, ...], rows: list[tuple[Mapping[str, float], str]]) -> tuple[float, int] | None:
    """The chi-square of one group and its degrees of freedom; None if it has too few draws to compare."""
    expected = np.array([[chances.get(name, 0.0) for name in names] for chances, _arm in rows])
    hits = np.array([[name == arm for name in names] for _chances, arm in rows], dtype=float)
    rare = expected.sum(axis=0) < FEWEST
    if rare.any():
        expected, hits = (np.column_stack((each[:, ~rare], each[:, rare].sum(axis=1))) for each in (expected, hits))
    # The chances of a draw add up to 1, so the last column follows from the others.
    expected, hits = expected[:, :-1], hits[:, :-1]
    if not expected.shape[1] or min(expected.sum(axis=0).min(), (1 - expected).sum(axis=0).min()) < FEWEST:
        return None
    difference = (hits - expected).sum(axis=0)
    covariance = np.diag(expected.sum(axis=0)) - expected.T @ expected
    return float(difference @ np.linalg.solve(covariance, difference)), len(difference)
