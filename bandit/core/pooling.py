"""Partial pooling for arms made of two parts, such as a harness and a model: arms with a part in common share evidence.

With h and m the two parts of arm a, and one mean reward μ for all:

    θ_a = μ + u_h + v_m + w_hm      u ~ N(0, τ_1²), v ~ N(0, τ_2²), w ~ N(0, τ_3²), independent
    y_a = θ_a + noise               the arm's own mean, of N rewards; noise of variance μ(1−μ)/(e·N)

How much the parts explain is estimated from the arms: the τ form a grid, each point weighted by its likelihood given
the observed means times a half-normal prior that expects a small interaction w. τ_3 is never 0, so that an arm's own
rewards always prevail in the end. With few arms the prior dominates; nothing is maximised.

An arm's prior is the prediction of its mean from the *other* arms. Its own rewards are then added, so that each counts
once. The posterior of an arm that was never tried is that prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from bandit.core.table import Floats, Ints

# The grid of each τ in units of reward, and the scales of the half-normal priors of τ: of parts and of the interaction.
DEVIATIONS = (0.02, 0.04, 0.08, 0.16)
PARTS_SCALE, INTERACTION_SCALE = 0.15, 0.12
# The least distance of a prior's mean from 0 and 1.
MARGIN = 0.02
# Arms are weighted by their chance of being the best, plus this total spread evenly.
EVEN_WEIGHT = 0.2
# The least fraction of an arm's variance that is its own, not shared with rivals; and the iterations of the solution.
MIN_OWN_FRACTION, ITERATIONS = 0.05, 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartsPrior:
    """Priors of K arms from their parts: `mean` in [0, 1] and `strength` in pseudo-observations, shapes (K,), and the
    covariance `shared` between the means, shape (K, K).
    """

    mean: Floats
    strength: Floats
    shared: Floats


def pool(
    parts: Sequence[tuple[str, str]], n: Floats, s: Floats, *, mean: float, scale: float, least: float
) -> PartsPrior:
    """Each arm's prior from its `parts`, given `n` weighted rewards of each arm that sum to `s`, shapes (K,).

    An empty part is shared with no other arm. `mean` in (0, 1) is that of all arms, `scale` the evidence scale e, and
    `least` the least strength of a prior. The result is the mean over the grid of τ of what each point predicts. No
    linear algebra library is used, so that the bits depend only on the arguments. Time grows with arms × parts².
    """
    grid = _make_grid(parts, least)
    at, own = grid.at, grid.own_variance
    has_rewards = n > 0
    amount = np.where(has_rewards, n, 1.0)
    y, noise = s / amount, mean * (1 - mean) / (scale * amount)
    weight, state, cov = _condition(grid, np.flatnonzero(has_rewards), y, noise)
    # The prediction of each arm from its parts and its variance, then both without the arm's own mean, by its leverage.
    fit, fit_variance = state[:, at].sum(axis=2), cov[:, at[:, :, None], at[:, None, :]].sum(axis=(2, 3))
    leverage = np.where(has_rewards, fit_variance / (own + noise), 0.0)
    fit, fit_variance = (fit - leverage * y) / (1 - leverage), fit_variance / (1 - leverage)
    # Mean and variance over the grid; the covariance of the unknowns over the grid.
    centre = _grid_mean(weight, fit)
    spread = _grid_mean(weight, fit_variance + own + (fit - centre) ** 2)
    deviation = state - _grid_mean(weight, state)
    common = _grid_mean(weight, cov + deviation[:, :, None] * deviation[:, None, :])
    centre = np.clip(centre, MARGIN, 1 - MARGIN)
    return PartsPrior(
        mean=centre,
        strength=np.maximum(centre * (1 - centre) / spread - 1, least),
        shared=common[at[:, None, :, None], at[None, :, None, :]].sum(axis=(2, 3)),
    )


class _Grid(NamedTuple):
    """The prior at the G points of the grid of τ.

    The U unknowns are μ, the first parts, the second parts, and a last one that is always 0 and stands for an empty
    part. `at` (K, 3) are the indexes of the three unknowns that add up to each arm's mean. `log_prior` (G,) is that of
    the points, `variance` (G, U) that of the unknowns, `own_variance` (G, K) that of what is an arm's own.
    """

    at: Ints
    log_prior: Floats
    variance: Floats
    own_variance: Floats


def _make_grid(parts: Sequence[tuple[str, str]], least: float) -> _Grid:
    """The grid for arms with these parts; μ has the prior mean ½ with `least` pseudo-observations."""
    first_names = sorted({first for first, _ in parts} - {""})
    second_names = sorted({second for _, second in parts} - {""})
    size = 2 + len(first_names) + len(second_names)
    first_at = {"": size - 1} | {name: 1 + i for i, name in enumerate(first_names)}
    second_at = {"": size - 1} | {name: 1 + len(first_names) + i for i, name in enumerate(second_names)}
    at = np.array([(0, first_at[first], second_at[second]) for first, second in parts])
    deviations = np.array(list(product(DEVIATIONS, repeat=3)))
    log_prior = -((deviations / (PARTS_SCALE, PARTS_SCALE, INTERACTION_SCALE)) ** 2).sum(axis=1) / 2
    var_first, var_second, var_both = (deviations**2).T[:, :, None]
    variance = np.zeros((len(log_prior), size))
    variance[:, 0] = 0.25 / (least + 1)
    variance[:, 1 : 1 + len(first_names)] = var_first
    variance[:, 1 + len(first_names) : size - 1] = var_second
    # The effect of an empty part is shared with no other arm, so it is the arm's own.
    is_empty = (at == size - 1).astype(np.float64)
    own_variance = var_both + var_first * is_empty[:, 1] + var_second * is_empty[:, 2]
    return _Grid(at=at, log_prior=log_prior, variance=variance, own_variance=own_variance)


def _condition(grid: _Grid, arms: Ints, y: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """The posterior given the means `y` (K,), with the variances `noise` (K,), of the arms with these indexes.

    Returns the weight of each point of the grid (G,), and the mean (G, U) and covariance (G, U, U) of the unknowns. It
    is updated with the mean of one arm after the other, at each point (a Kalman filter).
    """
    points, size = grid.variance.shape
    log_weight = grid.log_prior.copy()
    state = np.zeros((points, size))
    state[:, 0] = 0.5
    cov = grid.variance[:, :, None] * np.eye(size)
    for arm in arms:
        at = grid.at[arm]
        column = cov[:, :, at].sum(axis=2)
        expected = column[:, at].sum(axis=1) + grid.own_variance[:, arm] + noise[arm]
        miss = y[arm] - state[:, at].sum(axis=1)
        log_weight -= (np.log(expected) + miss**2 / expected) / 2
        gain = column / expected[:, None]
        state += gain * miss[:, None]
        cov -= gain[:, :, None] * column[:, None, :]
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), state, cov


def as_independent(alpha: Floats, beta: Floats, shared: Floats, best: Floats) -> tuple[Floats, Floats]:
    """α and β of independent Betas with about the same P(best) as Betas with the covariance `shared` between them.

    P(best) depends only on the variances of differences, not on what arms have in common. So each arm's variance V is
    replaced by the q for which q_a + q_b is closest to V_a + V_b − 2·C_ab, in least squares weighted by the two arms'
    chances `best`, so that close rivals fit best (quasi-variances: Firth and de Menezes, Biometrika 2004). Means stay.
    Shapes (K,), `shared` (K, K), of at least two arms.
    """
    strength = alpha + beta
    mean = alpha / strength
    variance = mean * (1 - mean) / (strength + 1)
    weight = best + EVEN_WEIGHT / len(best)
    difference_variance = variance[:, None] + variance - 2 * shared
    np.fill_diagonal(difference_variance, 0.0)
    # Least squares for q = `own`: every q_a is computed from the others', and moved half the way, until they settle.
    target, others = (difference_variance * weight).sum(axis=1), weight.sum() - weight
    own = variance
    for _ in range(ITERATIONS):
        rivals = (weight * own).sum() - weight * own
        own = (own + np.clip((target - rivals) / others, MIN_OWN_FRACTION * variance, variance)) / 2
    new_strength = mean * (1 - mean) / own - 1
    return mean * new_strength, (1 - mean) * new_strength


def _grid_mean(weight: Floats, values: Floats) -> Floats:
    """Weighted sum of `values` over the grid, their first axis; in one order, so that the bits are reproducible."""
    total: Floats = (weight.reshape(-1, *(1,) * (values.ndim - 1)) * values).sum(axis=0)
    return total
