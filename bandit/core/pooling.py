"""Arms that are made of two parts, such as a harness and a model, share what is known of the parts.

With h and m the two parts of arm a, and one mean reward μ for all:

    θ_a = μ + u_h + v_m + w_hm      u ~ N(0, τ_1²), v ~ N(0, τ_2²), w ~ N(0, τ_3²), independent
    y_a = θ_a + noise               the arm's own mean, of N rewards; noise of variance μ(1−μ)/(e·N)

How much the parts tell is learnt from the arms themselves: the τ are a grid, weighed by how likely each of its points
makes the means seen, times a half-normal prior that expects the interaction w to be small. It is never 0, so that an
arm's own rewards always win in the end. Where there are few arms the prior speaks, and nothing is maximised.

An arm's prior is what the *others* say of its parts: the prediction of its mean without its own rewards, which come on
top of it, each once. An arm that was never tried is nothing but that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from bandit.core.table import Floats

# Standard deviations in units of reward, and the scales of their half-normal priors: of parts, and of the interaction.
DEVIATIONS = (0.02, 0.04, 0.08, 0.16)
PARTS_SCALE, INTERACTION_SCALE = 0.15, 0.12
# A prior's mean keeps this far from 0 and 1.
MARGIN = 0.02
# Rivals count by their chance of being the best, and with so much in all however small that is.
EVEN = 0.2
# At least so much of an arm's variance is its own, not what it has in common with rivals; and the rounds to part them.
LEAST_OWN, ROUNDS = 0.05, 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartsPrior:
    """What is known of arms by their parts: a `mean` in [0, 1] behind which stand `strength` pseudo-observations,
    shapes (K,), and the covariance of what is `shared`, shape (K, K).
    """

    mean: Floats
    strength: Floats
    shared: Floats


def pool(
    parts: Sequence[tuple[str, str]], n: Floats, s: Floats, *, mean: float, scale: float, least: float
) -> PartsPrior:
    """Each arm's prior by its `parts`, from `n` rewards of each arm that add up to `s`, shapes (K,), in any weights.

    An empty part is shared with no other arm. `mean` in (0, 1) is that of all arms, `scale` the evidence scale e, and
    `least` the strength below which no prior falls. The bits depend on the numbers alone: no order of arms but their
    own, no linear algebra library. Time grows with arms × parts².
    """
    first, second = ({name: i for i, name in enumerate(sorted({each[k] for each in parts} - {""}))} for k in (0, 1))
    # The unknowns: μ, the first parts, the second parts, and a last one that is always 0 and stands for an empty part.
    size = 2 + len(first) + len(second)
    at = np.array([(0, 1 + first.get(a, size - 2), 1 + len(first) + second.get(b, len(second))) for a, b in parts])
    deviations = np.array(list(product(DEVIATIONS, repeat=3)))
    log = -((deviations / (PARTS_SCALE, PARTS_SCALE, INTERACTION_SCALE)) ** 2).sum(axis=1) / 2
    var_first, var_second, var_both = (deviations**2).T[:, :, None]
    variance = np.zeros((len(log), size))
    variance[:, 0] = 0.25 / (least + 1)
    variance[:, 1 : 1 + len(first)] = var_first
    variance[:, 1 + len(first) : size - 1] = var_second
    alone = (at == size - 1).astype(np.float64)
    own = var_both + var_first * alone[:, 1] + var_second * alone[:, 2]

    seen = n > 0
    amount = np.where(seen, n, 1.0)
    y, noise = s / amount, mean * (1 - mean) / (scale * amount)
    # One arm after the other: what its mean says of the unknowns, at each point of the grid (a Kalman filter).
    state = np.zeros((len(log), size))
    state[:, 0] = 0.5
    cov = variance[:, :, None] * np.eye(size)
    for arm in np.flatnonzero(seen):
        column = cov[:, :, at[arm]].sum(axis=2)
        expected = column[:, at[arm]].sum(axis=1) + own[:, arm] + noise[arm]
        miss = y[arm] - state[:, at[arm]].sum(axis=1)
        log -= (np.log(expected) + miss**2 / expected) / 2
        gain = column / expected[:, None]
        state += gain * miss[:, None]
        cov -= gain[:, :, None] * column[:, None, :]
    weight = np.exp(log - log.max())
    weight /= weight.sum()

    # What the parts say of each arm, and the same without the arm's own word: its leverage taken out.
    fit, doubt = state[:, at].sum(axis=2), cov[:, at[:, :, None], at[:, None, :]].sum(axis=(2, 3))
    leverage = np.where(seen, doubt / (own + noise), 0.0)
    fit, doubt = (fit - leverage * y) / (1 - leverage), doubt / (1 - leverage)
    centre = _mixed(weight, fit)
    spread = _mixed(weight, doubt + own + (fit - centre) ** 2)
    middle = _mixed(weight, state)
    away = state - middle
    common = _mixed(weight, cov + away[:, :, None] * away[:, None, :])
    centre = np.clip(centre, MARGIN, 1 - MARGIN)
    return PartsPrior(
        mean=centre,
        strength=np.maximum(centre * (1 - centre) / spread - 1, least),
        shared=common[at[:, None, :, None], at[None, :, None, :]].sum(axis=(2, 3)),
    )


def apart(alpha: Floats, beta: Floats, shared: Floats, best: Floats) -> tuple[Floats, Floats]:
    """Independent Betas that tell which arm is the best as Betas with the covariance `shared` between them do.

    What arms have in common does not decide between them: P(best) depends on the variances of differences alone. Of
    each arm's variance V that part q is kept for which q_a + q_b is nearest to V_a + V_b − 2·C_ab, in squares weighed
    by the two arms' chances `best`, so that it holds where it is close (quasi-variances: Firth and de Menezes,
    Biometrika 2004). Means stay. Shapes (K,), `shared` (K, K), of at least two arms.
    """
    strength = alpha + beta
    mean = alpha / strength
    variance = mean * (1 - mean) / (strength + 1)
    weight = best + EVEN / len(best)
    between = variance[:, None] + variance - 2 * shared
    np.fill_diagonal(between, 0.0)
    wanted, others = (between * weight).sum(axis=1), weight.sum() - weight
    left = variance
    for _ in range(ROUNDS):
        rivals = (weight * left).sum() - weight * left
        left = (left + np.clip((wanted - rivals) / others, LEAST_OWN * variance, variance)) / 2
    kept = mean * (1 - mean) / left - 1
    return mean * kept, (1 - mean) * kept


def _mixed(weight: Floats, values: Floats) -> Floats:
    """Σ over the grid of `values`, its first axis, each by its weight; in one order."""
    total: Floats = (weight.reshape(-1, *(1,) * (values.ndim - 1)) * values).sum(axis=0)
    return total
