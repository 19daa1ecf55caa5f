"""Detects rewards that carry no information: all alike, arms that stopped differing, one number repeated, zeros."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from grading.monitoring.change_points import by_part

# A bandit's last ALIKE rewards, of LEAST_ARMS arms or more, are alike if they differ by HAIR at most.
ALIKE, HAIR, LEAST_ARMS = 30, 0.02, 3
# The largest share of a source's most common number, the fewest grades compared, and the decimals that are stored.
SHARE, LEAST_GRADES, DECIMALS = 0.15, 100, 4
# The fewest zeros in a row, and the values below which a reward counts as zero.
ZEROS, ZERO = 11, 0.005
# The fewest arms that can be compared, and the fewest rewards of each, now and before.
LEVELLED_ARMS, FEWEST_NOW, FEWEST_BEFORE = 4, 10, 20
# Arms differed before if that is significant at the level DIFFERED. They are levelled now if less than the share LEFT
# of their differences is left, at the level LEVEL.
DIFFERED, LEFT, LEVEL = 0.001, 0.6, 0.01
# The least variance of a mean.
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
    """The lowest and the highest of the last ALIKE rewards if they are alike, else None.

    `rewards` are (arm, value) in order of time.
    """
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
    """The number of zeros at the end of the rewards, if these are at least ZEROS, of several arms; otherwise 0.

    `rewards` are (arm, value) in order of time.
    """
    last_zeros = list(takewhile(lambda reward: reward[1] < ZERO, reversed(rewards)))
    arms = {arm for arm, _value in last_zeros}
    return len(last_zeros) if len(last_zeros) >= ZEROS and len(arms) > 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Levelled:
    """Arms that don't differ any more: their number, the standard deviation of their means before, and the largest
    share of it that may be left now.
    """

    arms: int
    before: float
    most: float


def levelled(before: Iterable[tuple[str, float]], now: Iterable[tuple[str, float]]) -> Levelled | None:
    """The arms of these (arm, value) rewards, if they differed before and don't any more; otherwise None.

    The arms' means now are regressed on those before, weighted by their variances: the slope is 1 if arms are as good
    as they were, and 0 if the rewards don't distinguish them any more. If the arms did differ before (F test,
    p < .001), the differences are gone if the slope is below .6 (one-sided, p < .01).
    """
    old, new = by_part(before), by_part(now)
    arms = [arm for arm in sorted(old) if len(old[arm]) >= FEWEST_BEFORE and len(new.get(arm, ())) >= FEWEST_NOW]
    if len(arms) < LEVELLED_ARMS:
        return None
    from scipy.special import fdtrc, ndtri  # slow to import, and not needed for few arms

    old_means, old_variances = _means_with_variances([old[arm] for arm in arms])
    new_means, new_variances = _means_with_variances([new[arm] for arm in arms])
    total, chance = float(np.var(old_means, ddof=1)), max(float(old_variances.mean()), LEAST_ERROR)
    freedom = sum(len(old[arm]) for arm in arms) - len(arms)
    if fdtrc(len(arms) - 1, freedom, total / chance) >= DIFFERED:
        return None
    # The variance of the old means beyond chance. Errors in the old means make the slope too flat: `correction` is the
    # factor that undoes this.
    beyond_chance = total - chance
    correction = total / beyond_chance
    weight = 1 / np.maximum(new_variances, LEAST_ERROR)
    centred = old_means - np.average(old_means, weights=weight)
    squares = float((weight * centred**2).sum())
    slope = float((weight * centred * new_means).sum()) / squares * correction
    most = slope + float(ndtri(1 - LEVEL)) / math.sqrt(squares) * correction
    return Levelled(arms=len(arms), before=math.sqrt(beyond_chance), most=most) if most < LEFT else None


def _means_with_variances(groups: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each group of values, and that mean's variance, from the pooled variance within the groups."""
    sizes = np.array([len(group) for group in groups])
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    within = squares / max(1, int(sizes.sum()) - len(groups))
    return np.array([np.mean(group) for group in groups]), within / sizes
