"""The order in which the judge grades sessions: by the expected change of the bandit's next choice, in reward."""

import datetime as dt
import math

import numpy as np

from bandit.core.posterior import fold
from bandit.core.propensity import Floats, p_best, propensities
from bandit.models import Arm, Bandit
from bandit.reading import policy_of, rows_of, site_day

BANDIT = "category"
# The standard deviation of a verdict around its expectation, in reward, and the resulting mean absolute difference.
SPREAD = 0.2
SURPRISE = SPREAD * math.sqrt(2 / math.pi)
# The source whose credit a verdict usually replaces.
PROVISIONAL = "trajectory"
# P(best) is integrated over arms × points. For an order of jobs, about this many cells in all are enough, within these
# limits of points.
CELLS, FEWEST_POINTS, MOST_POINTS = 1_000_000, 64, 1024
# Priorities are rounded to this many digits, so that rows of equal priority are written together and small changes not
# at all.
DIGITS = 2


def sensitivity(*, strength: Floats, chance: Floats, scale: float, weight: float) -> Floats:
    """How much of a grade's surprise reaches the reward of the bandit's next choice, for each arm; in [0, 1].

    An arm with mean m and `strength` n = α + β holds a provisional credit v of `weight` w in [0, 1]; the grade
    r = v + ε replaces it with weight 1. By the posterior's α += e·w·v (e is `scale`)

        Δm = e·((r − m) − w·(v − m)) / (n + e·(1 − w))

    and with v about m

        sensitivity = chance · e / (n + e·(1 − w))

    `chance` is how often the arm is chosen: the mean of an arm that is seldom chosen matters little. The arm's long-run
    centre moves too, but less; that is left out. `strength`, `chance` and the result have the shape (arms,).
    """
    change: Floats = scale / (strength + scale * (1 - weight))
    return chance * change


def by_arm(now: dt.datetime) -> dict[int, float]:
    """The priority of a grade for each arm of the category bandit, by the arm's id, from the posterior at `now`."""
    bandit = Bandit.objects.named(BANDIT)
    today = site_day(now)
    arms = {arm.name: arm for arm in Arm.objects.in_bandit(BANDIT)}
    policy = policy_of(bandit)
    posterior = fold(rows_of(bandit, policy, today), arms=arms, policy=policy, today=today)
    if not arms:
        return {}
    # How often each arm is chosen. An arm that cannot be chosen now may come back, so it has half of an equal share.
    is_choosable = np.array([arms[name].is_choosable for name in posterior.names])
    count = int(is_choosable.sum())
    chance: Floats = np.full(len(is_choosable), 0.5 / len(is_choosable))
    if count:
        points = min(max(CELLS // count, FEWEST_POINTS), MOST_POINTS)
        best = p_best(posterior.alpha[is_choosable], posterior.beta[is_choosable], points=points)
        chance[is_choosable] = propensities(best, floor=policy.floor)
    priorities = SURPRISE * sensitivity(
        strength=posterior.alpha + posterior.beta,
        chance=chance,
        scale=posterior.evidence_scale,
        weight=policy.weights[PROVISIONAL],
    )
    return {arms[name].pk: rounded(float(value)) for name, value in zip(posterior.names, priorities, strict=True)}


def rounded(value: float) -> float:
    """Round to DIGITS significant digits."""
    return float(f"{value:.{DIGITS}g}")
