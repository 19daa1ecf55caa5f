"""The chance of each arm, computed by deterministic quadrature."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POINTS = 1024
# The probability that the grid may miss on either side; far below any floor.
NEGLIGIBLE = 1e-10
# How many arms with the highest means are used to find the grid's lower end, and the bisections for it.
MAX_LEADERS, BISECTIONS = 256, 16
# The most cells (arms × points) of a block, and its least points: each block costs an exact F for every arm.
MAX_CELLS, MIN_BLOCK_POINTS = 1 << 17, 64
# A density is integrated over a block if the result is this close to the exact F at its end, and if no step of F is
# above MAX_STEP: in larger steps, errors inside the block may cancel out at its end.
MAX_ERROR, MAX_STEP = 1e-9, 0.1
# Keeps the logarithm of a chance of 0 finite.
MIN_CHANCE = 1e-300


def p_best(alpha: Floats, beta: Floats, *, points: int = POINTS) -> Floats:
    """P(arm i has the highest mean) for independent Beta(alpha[i], beta[i]); shape (K,), sums to 1.

        P_i = ∫ f_i(x)·Π_{j≠i} F_j(x) dx

    by the trapezium rule in F_i, which tolerates a density that is unbounded at 0 or 1, on `points` ≥ 2 equally spaced
    points over the range that almost surely contains the best arm; an arm that is surely below has 0. Deterministic.
    With 1,024 points the error against 200,000 is at most 5e-5 for α + β from 10 to 10⁵ and all α, β ≥ 1 (64 points:
    .02). Below 1 the mass is concentrated at 0 or 1, where an even grid is imprecise: 2e-4 from .5 up, 2e-3 from .2,
    .01 from .1. Time grows with arms × points, memory with arms.
    Raises ValueError for no arms or a parameter that is not positive.
    """
    from scipy.special import betaincinv

    if not len(alpha) or not (np.all(alpha > 0) and np.all(beta > 0)):
        raise ValueError("P(best) needs at least one arm, and every α and β above 0")
    highest = betaincinv(alpha, beta, 1 - NEGLIGIBLE)
    high = float(highest.max())
    low = _lower_end(alpha, beta, high)
    contenders = np.flatnonzero(highest >= low)
    chance = np.zeros(len(alpha))
    chance[contenders] = _quadrature(alpha[contenders], beta[contenders], np.linspace(low, high, points))
    shares: Floats = chance / chance.sum()
    return shares


def _lower_end(alpha: Floats, beta: Floats, high: float) -> float:
    """A bound, found by bisection, that the best arm is below with a probability of at most NEGLIGIBLE.

    The best arm is below x if all arms are, with the probability Π F_i(x); fewer arms give a cautious bound.
    """
    from scipy.special import betainc, betaincinv

    low = float(betaincinv(alpha, beta, NEGLIGIBLE).max())
    leaders = np.argsort(-alpha / (alpha + beta), kind="stable")[:MAX_LEADERS]
    alpha, beta = alpha[leaders], beta[leaders]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if np.log(np.maximum(betainc(alpha, beta, middle), MIN_CHANCE)).sum() < np.log(NEGLIGIBLE):
            low = middle
        else:
            high = middle
    return low


def _quadrature(alpha: Floats, beta: Floats, x: Floats) -> Floats:
    """The integral of `p_best` on the grid x, (K,), not normalised.

    For each arm i, Σ over the steps of x of (increase of F_i) · (mean of Π_{j≠i} F_j at both ends). The points of x
    come in blocks; `before` and `others_before` are F_i and Π_{j≠i} F_j at the last point of the block before.
    """
    chance = np.zeros(len(alpha))
    before = others_before = np.zeros((len(alpha), 1))
    for cdf in _distributions(alpha, beta, x):
        log = np.log(np.maximum(cdf, MIN_CHANCE))
        others = np.exp(log.sum(axis=0) - log)
        mass = np.diff(cdf, axis=1, prepend=before)
        chance += (mass * (others + np.concatenate((others_before, others[:, :-1]), axis=1))).sum(axis=1) / 2
        before, others_before = cdf[:, -1:], others[:, -1:]
    return np.maximum(chance, 0)


def _distributions(alpha: Floats, beta: Floats, x: Floats) -> Iterator[Floats]:
    """Each arm's cumulative distribution F at x[0], (K, 1), then at the points of each block in turn, (K, points).

    A block is short, so that the arrays of all arms stay small. F is set to 1 at x[-1], above which hardly any arm's
    mean lies.
    """
    from scipy.special import betainc

    size = max(MAX_CELLS // len(alpha), MIN_BLOCK_POINTS)
    end = betainc(alpha, beta, x[0])[:, None]
    yield end
    for at in range(0, len(x) - 1, size):
        block, start = x[at : at + size + 1], end
        end = betainc(alpha, beta, block[-1])[:, None] if block[-1] < x[-1] else np.ones_like(start)
        yield _beta_cdf(alpha, beta, block, start, end)


def _beta_cdf(alpha: Floats, beta: Floats, x: Floats, start: Floats, end: Floats) -> Floats:
    """F of Beta(alpha[i], beta[i]) on the evenly spaced x[1:], (K, len(x) − 1), given F at x[0] and at x[-1].

    It is integrated from the density f by the trapezium rule with its end correction,

        F(x + h) = F(x) + h/2·(f(x) + f(x+h)) − h²/12·(f′(x+h) − f′(x)) + O(h⁵ f⁗)        (Euler–Maclaurin)

    For arms for which that is too imprecise, F is the incomplete beta function itself, which is slower.
    """
    from scipy.special import betainc, betaln

    a, b, h = (alpha - 1)[:, None], (beta - 1)[:, None], x[1] - x[0]
    with np.errstate(all="ignore"):  # f or f′ may be infinite at 0 and 1: such an arm isn't precise
        density = np.exp(a * np.log(x) + b * np.log1p(-x) - betaln(alpha, beta)[:, None])
        slope = density * (a / x - b / (1 - x))
        growth = h / 2 * (density[:, 1:] + density[:, :-1]) - h**2 / 12 * np.diff(slope)
        cdf: Floats = start + np.cumsum(growth, axis=1)
        is_precise = (np.abs(cdf[:, -1] - end[:, 0]) <= MAX_ERROR) & (density.max(axis=1) * h <= MAX_STEP)
    cdf[:, -1:] = end
    rough = np.flatnonzero(~is_precise)
    cdf[rough, :-1] = betainc(alpha[rough, None], beta[rough, None], x[1:-1])
    return cdf


def propensities(chance: Floats, *, floor: float) -> Floats:
    """The chance of each arm, π = f + (1 − K·f)·P, so that every arm keeps one of at least f. Shape (K,), sums to 1.

    P is P(best) or any other `chance` of the K eligible arms, divided by its sum. f is the `floor`, but if K floors
    would take more than half of all draws, f is 1/(2K).
    """
    count = len(chance)
    lowered_floor = min(floor, 0.5 / count)
    shares: Floats = lowered_floor + (1 - count * lowered_floor) * chance / chance.sum()
    return shares
