"""Worlds in which arms change, have good and bad days, or lose grades, for `benchmarks/regret.py --policies`.

Eight arms, fifty sessions a day for sixty days, unless a world says otherwise. Sudden changes happen half-way through.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.world import (
    CONCENTRATION,
    DAYS,
    JUDGE_NOISE,
    LOSS,
    MEANS,
    SESSIONS_PER_DAY,
    Flags,
    Floats,
)

# Bounds of a drifting mean, the best arm's mean once it has broken, and what the weakest arm rises to.
MIN_MEAN, MAX_MEAN = 0.05, 0.95
BROKEN_MEAN, RISEN_MEAN = 0.35, 0.8
TIED_MEANS = (0.65, 0.65, 0.64, 0.50, 0.48, 0.45, 0.42, 0.40)
THIRTY_MEANS = (0.65, *np.linspace(0.58, 0.35, 29).tolist())
# The best arm's first rewards in an unlucky start, and by how much each is too low.
UNLUCKY_REWARDS, BAD_LUCK = 20, 0.3
# A trajectory is level + slope × quality, with noise and a level for each arm.
LEVEL, LEVEL_SPREAD, SLOPE, NOISE = 0.05, 0.03, 0.45, 0.12
SAMPLE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldRules:
    """Arms' `means`, sessions `per_day`, and the standard deviation of a day's `drift`.

    An arm's mean differs by day with the standard deviation `by_day`, and by the day of the week with `by_weekday`,
    about the mean that counts. `breaks`: the best arm falls to .35. `switches`: the order of the arms reverses.
    `rises`: the weakest arm rises to .8, a little each day. `delay`: days until a reward is known. `lost`: the share of
    the best arm's rewards that never are. `unlucky`: the number of the best arm's first rewards that are too low.
    `bernoulli`: rewards are 0 or 1. `judged`: a judge grades all sessions; otherwise a trajectory, on its own scale.
    `claimed`: only the agents vouch for their work.
    """

    means: tuple[float, ...] = MEANS
    per_day: int = SESSIONS_PER_DAY
    drift: float = 0.0
    breaks: bool = False
    switches: bool = False
    rises: bool = False
    delay: int = 0
    lost: float = 0.0
    unlucky: int = 0
    bernoulli: bool = False
    judged: bool = True
    claimed: bool = False
    by_day: float = 0.0
    by_weekday: float = 0.0


WORLDS: Mapping[str, WorldRules] = {
    "steady": WorldRules(),
    "ties": WorldRules(means=TIED_MEANS),
    "delayed": WorldRules(delay=3),
    "missing": WorldRules(lost=LOSS),
    "drift": WorldRules(drift=0.01),
    "drift2": WorldRules(drift=0.02),
    "switch": WorldRules(switches=True),
    "breaks": WorldRules(breaks=True),
    "days4": WorldRules(by_day=0.04),
    "days8": WorldRules(by_day=0.08),
    "weekdays": WorldRules(by_weekday=0.08),
    "unlucky": WorldRules(unlucky=UNLUCKY_REWARDS),
    "rises": WorldRules(rises=True),
    "arms30": WorldRules(means=THIRTY_MEANS),
    "ten_a_day": WorldRules(per_day=10),
    "bernoulli": WorldRules(bernoulli=True),
}
# Worlds that the site meets and the rivals were not made for.
OUTSIDE: Mapping[str, WorldRules] = {
    "no_judge": WorldRules(judged=False),
    "claimed": WorldRules(breaks=True, claimed=True),
}
# Worlds without change, in which every break is a false one.
STEADY = ("steady", "ties", "ten_a_day", "arms30")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangingWorld:
    """`means` by day and arm, on the scale of `rewards`, which are by day, slot and arm. `is_lost`, of the same shape:
    whether nobody learns of the reward. `draws` in [0, 1) are by day and slot; `columns` those of every `RewardRow`.
    """

    seed: int
    rules: WorldRules
    means: Floats
    rewards: Floats
    is_lost: Flags
    draws: Floats
    columns: Mapping[str, str]


def make_changing_world(rules: WorldRules, seed: int, days: int = DAYS) -> ChangingWorld:
    """The world of a seed: the arms in random order, and every session that could be."""
    dice = np.random.default_rng([13, seed])
    start = dice.permutation(np.array(rules.means))
    means = start + np.cumsum(dice.normal(0, rules.drift, (days, len(start))), axis=0)
    # Reflected at both ends.
    means = MAX_MEAN - np.abs(MAX_MEAN - (MIN_MEAN + np.abs(means - MIN_MEAN)))
    if rules.switches:
        means[days // 2 :] = start.min() + start.max() - start
    if rules.breaks:
        means[days // 2 :, start.argmax()] = BROKEN_MEAN
    if rules.rises:
        means[:, start.argmin()] = np.linspace(start.min(), RISEN_MEAN, days)
    shape = days, rules.per_day, len(start)
    day_dice = np.random.default_rng([14, seed])
    week = day_dice.normal(0, rules.by_weekday, (7, len(start)))
    today = means + day_dice.normal(0, rules.by_day, means.shape) + week[np.arange(days) % 7]
    today = np.clip(today, 0.02, 0.98)
    quality = dice.beta(*(CONCENTRATION * each[:, None] for each in (today, 1 - today)), shape)
    noise, level = dice.normal(0, 1, shape), LEVEL + dice.normal(0, LEVEL_SPREAD, len(start))
    columns = {"source": "judge"}
    if rules.judged:
        rewards = np.clip(quality + JUDGE_NOISE * noise, 0, 1)
    else:
        columns = {"source": "trajectory", "version": "trajectory/2", "view": "full"}
        rewards = np.clip(level + SLOPE * quality + NOISE * noise, 0, 1)
        # Regret is on the trajectory's own scale: no other is known.
        sample = dice.beta(*(CONCENTRATION * each for each in (start, 1 - start)), (SAMPLE, len(start)))
        graded = np.clip(level + SLOPE * sample + NOISE * dice.normal(0, 1, sample.shape), 0, 1)
        means = np.tile(graded.mean(0), (days, 1))
    if rules.claimed:
        columns |= {"witness": "claimed", "standing": "claimed"}
    draws = dice.random((days, rules.per_day))
    if rules.bernoulli:
        rewards = (dice.random(shape) < today[:, None]).astype(np.float64)
    is_lost = np.zeros(shape, dtype=np.bool_)
    is_lost[:, :, start.argmax()] = dice.random(shape[:2]) < rules.lost
    return ChangingWorld(
        seed=seed, rules=rules, means=means, rewards=rewards, is_lost=is_lost, draws=draws, columns=columns
    )
