"""Rewards that distinguish nothing any more: all alike, arms that don't differ any more, one number repeated, zeros."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from grading.monitoring.change_points import by_part

# A bandit's last ALIKE rewards, of LEAST_ARMS arms or more, are alike if they differ by HAIR at most.
ALIKE, HAIR, LEAST_ARMS = 30, 0.02, 3
# The largest share of a source's most common number, the fewest grades compared, and the decimals that are stored.
SHARE, LEAST_GRADES, DECIMALS = 0.15, 100, 4
ZEROS, ZERO = 11, 0.005
# The fewest rewards of an arm, now and before, and the fewest arms that can be compared. Arms that differed before, at
# the level DIFFERED, are levelled if less than LEFT of their differences is left, at the level LEVEL.
FEWEST_NOW, FEWEST_BEFORE, LEVELLED_ARMS, DIFFERED, LEVEL, LEFT = 10, 20, 4, 0.001, 0.01, 0.6
LEAST_ERROR = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The number that a source gave most often, `count` of `total` times."""

    value: float
    count: int
    total: int

    @property
    def share(self) -> float:
        return self.count / self.total


def alike(rewards: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """The lowest and highest of the last ALIKE rewards, (arm, value) in order of time, if they are alike."""
    last = rewards[-ALIKE:]
    values = [value for _arm, value in last]
    if len(last) < ALIKE or len({arm for arm, _value in last}) < LEAST_ARMS or max(values) - min(values) > HAIR:
        return None
    return min(values), max(values)


def stuck(values: Sequence[float]) -> Common | None:
    """The number that makes up at least SHARE of a source's grades; None if there are too few grades, or none does."""
    if len(values) < LEAST_GRADES:
        return None
    ((value, count),) = Counter(round(value, DECIMALS) for value in values).most_common(1)
    common = Common(value=value, count=count, total=len(values))
    return common if common.share >= SHARE else None


def zeros(rewards: Sequence[tuple[str, float]]) -> int:
    """The length of the run of zeros that ends the rewards, if it has at least ZEROS, of several arms; otherwise 0."""
    run = 0
    while run < len(rewards) and rewards[-run - 1][1] < ZERO:
        run += 1
    arms = {arm for arm, _value in rewards[len(rewards) - run :]}
    return run if run >= ZEROS and len(arms) > 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Levelled:
    """Arms that don't differ any more: their number, the standard deviation of their means before, and the largest
    share of it that may be left now.
    """

    arms: int
    before: float
    most: float


def levelled(before: Iterable[tuple[str, float]], now: Iterable[tuple[str, float]]) -> Levelled | None:
    """Whether the arms of these (arm, value) rewards differed before and don't now; None otherwise.

    The means now are regressed on those before, weighted by their errors: the slope is 1 if arms are as good as they
    were, and 0 if the rewards don't distinguish them any more. If the arms did differ before (F test, p < .001), the
    differences are gone if the slope is below .6 (one-sided, p < .01).
    """
    old, new = by_part(before), by_part(now)
    arms = [arm for arm in sorted(old) if len(old[arm]) >= FEWEST_BEFORE and len(new.get(arm, ())) >= FEWEST_NOW]
    if len(arms) < LEVELLED_ARMS:
        return None
    from scipy.special import fdtrc, ndtri  # slow to import, and not needed for few arms

    x, y = (np.array([np.mean(parts[arm]) for arm in arms]) for parts in (old, new))
    error = _within([new[arm] for arm in arms]) / np.array([len(new[arm]) for arm in arms])
    doubt = _within([old[arm] for arm in arms]) / np.array([len(old[arm]) for arm in arms])
    # The variance of the old means beyond chance: their errors make the slope too flat, which is corrected.
    variance, chance = float(np.var(x, ddof=1)), max(float(doubt.mean()), LEAST_ERROR)
    freedom = sum(len(old[arm]) for arm in arms) - len(arms)
    if fdtrc(len(arms) - 1, freedom, variance / chance) >= DIFFERED:
        return None
    spread = variance - chance
    weight = 1 / np.maximum(error, LEAST_ERROR)
    centred = x - np.average(x, weights=weight)
    squares = float((weight * centred**2).sum())
    slope = float((weight * centred * y).sum()) / squares * variance / spread
    most = slope + float(ndtri(1 - LEVEL)) / math.sqrt(squares) * variance / spread
    result = Levelled(arms=len(arms), before=math.sqrt(spread), most=most)
    return result if most < LEFT else None


def _within(parts: Sequence[Sequence[float]]) -> float:
    """The variance within the parts, over all of them."""
    squares = sum(float(np.var(part)) * len(part) for part in parts)
    return squares / max(1, sum(map(len, parts)) - len(parts))
