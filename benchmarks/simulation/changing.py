"""Worlds in which arms stay what they are, drift, break or change places, and what each session would be worth.

Eight arms of the usual means, fifty sessions a day for sixty days, but where a world says otherwise; half-way through,
where something happens at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.world import A_DAY, CONCENTRATION, DAYS, JUDGE_NOISE, MEANS, Floats

# What a drifting mean is held between, what is left of the best arm where it breaks, and thirty arms' means.
LOWEST, HIGHEST = 0.05, 0.95
BROKEN = 0.35
THIRTY = (0.65, *np.linspace(0.58, 0.35, 29).tolist())
# What a trajectory reads of quality, and its noise; each arm has a level of its own about the first.
LEVEL, LEVEL_SPREAD, SLOPE, NOISE = 0.05, 0.03, 0.45, 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is so in a world: arms' `means`, sessions `a_day`, the standard deviation of a day's `drift`.

    An arm's mean differs by day with the standard deviation `by_day`, and by the day of the week with `by_weekday`,
    about the mean that counts. `breaks`: the best arm falls to .35. `switches`: the order of the arms is turned about.
    `judged`: all sessions are graded by a judge; else by a trajectory alone, on its own scale. `claimed`: the agents
    alone vouch for their work.
    """

    means: tuple[float, ...] = MEANS
    a_day: int = A_DAY
    drift: float = 0.0
    breaks: bool = False
    switches: bool = False
    judged: bool = True
    claimed: bool = False
    by_day: float = 0.0
    by_weekday: float = 0.0


WORLDS: Mapping[str, Change] = {
    "stationary": Change(),
    "drift": Change(drift=0.01),
    "drift2": Change(drift=0.02),
    "switch": Change(switches=True),
    "breaks": Change(breaks=True),
    "ten_a_day": Change(a_day=10),
    "arms30": Change(means=THIRTY),
    "no_judge": Change(judged=False),
    "days4": Change(by_day=0.04),
    "days8": Change(by_day=0.08),
    "claimed": Change(breaks=True, claimed=True),
    "weekdays": Change(by_weekday=0.08),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangingWorld:
    """`means` by day and arm, on the scale of `rewards`, which are by day, slot and arm; `draws` in [0, 1) by day and
    slot.
    """

    means: Floats
    rewards: Floats
    draws: Floats
    source: str
    claimed: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"arm-{number:02}" for number in range(self.means.shape[1]))


def changing(change: Change, seed: int, days: int = DAYS) -> ChangingWorld:
    """The world of a seed: arms in any order, and every session that could be."""
    dice = np.random.default_rng([13, seed])
    start = dice.permutation(np.array(change.means))
    means = start + np.cumsum(dice.normal(0, change.drift, (days, len(start))), axis=0)
    # Reflected at both ends.
    means = HIGHEST - np.abs(HIGHEST - (LOWEST + np.abs(means - LOWEST)))
    if change.switches:
        means[days // 2 :] = start.min() + start.max() - start
    if change.breaks:
        means[days // 2 :, start.argmax()] = BROKEN
    shape = days, change.a_day, len(start)
    of_days = np.random.default_rng([14, seed])
    week = of_days.normal(0, change.by_weekday, (7, len(start)))
    today = means + of_days.normal(0, change.by_day, means.shape) + week[np.arange(days) % 7]
    today = np.clip(today, 0.02, 0.98)
    quality = dice.beta(*(CONCENTRATION * each[:, None] for each in (today, 1 - today)), shape)
    noise, level = dice.normal(0, 1, shape), LEVEL + dice.normal(0, LEVEL_SPREAD, len(start))
    told = quality + JUDGE_NOISE * noise if change.judged else level + SLOPE * quality + NOISE * noise
    rewards = np.clip(told, 0, 1)
    if not change.judged:
        # On the trajectory's own scale nothing else is known to be right.
        sample = dice.beta(*(CONCENTRATION * each for each in (start, 1 - start)), (20_000, len(start)))
        means = np.tile(
            np.clip(level + SLOPE * sample + NOISE * dice.normal(0, 1, sample.shape), 0, 1).mean(0), (days, 1)
        )
    return ChangingWorld(
        means=means,
        rewards=rewards,
        draws=dice.random((days, change.a_day)),
        source="judge" if change.judged else "trajectory",
        claimed=change.claimed,
    )
