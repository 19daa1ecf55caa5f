"""Weights of the formula fitted to some sets, to see whether they rank a set that they have not seen any better."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize

from benchmarks.labelled.ranking import Half

MAX_PAIRS = 20_000
RIDGE = 0.02


def left_out(shares: Mapping[str, np.ndarray], halves: Mapping[str, Half], start: np.ndarray) -> dict[str, np.ndarray]:
    """For each set the weights fitted to all others.

    `shares`: sessions × factors, each signed so that more is better. `start`: the weights to begin from and to stay
    near, at least 0, as the fitted ones are. Every set counts alike, by a logistic loss over its good-bad pairs.
    """
    differences = {name: _pairs(shares[name], halves[name].good) for name in shares}
    scale = 1 / start.sum()

    def fitted(without: str) -> np.ndarray:
        others = [rows for name, rows in differences.items() if name != without and len(rows)]

        def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
            total, slope = RIDGE * ((weights - start) ** 2).sum(), 2 * RIDGE * (weights - start)
            for rows in others:
                margin = rows @ weights
                total += np.logaddexp(0, -margin).mean() / len(others)
                slope = slope - (rows * (1 / (1 + np.exp(margin)))[:, None]).mean(axis=0) / len(others)
            return total, slope

        found = minimize(loss, start, jac=True, bounds=[(0, None)] * len(start), method="L-BFGS-B").x
        return found * (1 / scale / found.sum() if found.sum() else 1)

    return {name: fitted(name) for name in shares}


def _pairs(shares: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Good minus bad, for all pairs or as many drawn ones as are enough."""
    ours, theirs = np.flatnonzero(good), np.flatnonzero(~good)
    mine, others = (side.ravel() for side in np.meshgrid(ours, theirs))
    if len(mine) > MAX_PAIRS:
        kept = np.random.default_rng(0).choice(len(mine), MAX_PAIRS, replace=False)
        mine, others = mine[kept], others[kept]
    return shares[mine] - shares[others]
