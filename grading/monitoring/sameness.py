"""Detects rewards that carry no information: all alike, arms that stopped differing, one number repeated, zeros."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from grading.monitoring.change_points import group_by_part

# A bandit's last ALIKE rewards, of LEAST_ARMS arms or more, are alike if they differ by at most MAX_SPAN.
ALIKE, MAX_SPAN, LEAST_ARMS = 30, 0.02, 3
# The smallest share of a repeated number, the fewest grades compared, and the decimals that are stored.
MIN_SHARE, LEAST_GRADES, DECIMALS = 0.15, 100, 4
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
class RepeatedNumber:
    """The number that a source gave most often: for `count` of its `total` grades."""

    value: float
    count: int
    total: int

    @property
    def share(self) -> float:
        return self.count / self.total


def find_span_if_alike(rewards: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """The lowest and the highest of the last ALIKE rewards if they are alike, else None.

    `rewards` are (arm, value) in order of time.
    """
    last = rewards[-ALIKE:]
    values = [value for _arm, value in last]
    if len(last) < ALIKE or len({arm for arm, _value in last}) < LEAST_ARMS or max(values) - min(values) > MAX_SPAN:
        return None
    return min(values), max(values)


def find_repeated_number(values: Sequence[float]) -> RepeatedNumber | None:
    """The most common number among a source's grades, if its share is at least MIN_SHARE. Otherwise None.

    Also None for fewer than LEAST_GRADES grades.
    """
    if len(values) < LEAST_GRADES:
        return None
    ((value, count),) = Counter(round(value, DECIMALS) for value in values).most_common(1)
    most_common = RepeatedNumber(value=value, count=count, total=len(values))
    return most_common if most_common.share >= MIN_SHARE else None


def count_final_zeros(rewards: Sequence[tuple[str, float]]) -> int:
    """The number of zeros at the end of the rewards; 0 if there are fewer than ZEROS, or all are of one arm.

    `rewards` are (arm, value) in order of time.
    """
    last_zeros = list(takewhile(lambda reward: reward[1] < ZERO, reversed(rewards)))
    arms = {arm for arm, _value in last_zeros}
    return len(last_zeros) if len(last_zeros) >= ZEROS and len(arms) > 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Levelled:
    """Arms that don't differ any more: their number, and the standard deviation of their means `before`.

    `most` is the largest share of that deviation that may be left now.
    """

    arms: int
    before: float
    most: float


def find_levelled(before: Iterable[tuple[str, float]], now: Iterable[tuple[str, float]]) -> Levelled | None:
    """The arms of these (arm, value) rewards, if they differed before and don't any more; otherwise None.

    The arms' means now are regressed on their means before, weighted by the inverse variances. The slope is 1 if the
    arms are as good as they were, and 0 if the rewards don't distinguish them any more. If the arms did differ before
    (F test, p < .001), the differences are gone if the slope is below .6 (one-sided, p < .01).
    """
    old, new = group_by_part(before), group_by_part(now)
    arms = [arm for arm in sorted(old) if len(old[arm]) >= FEWEST_BEFORE and len(new.get(arm, ())) >= FEWEST_NOW]
    if len(arms) < LEVELLED_ARMS:
        return None
    from scipy.special import fdtrc, ndtri  # slow to import, and not needed for few arms

    old_means, old_variances = _means_with_variances([old[arm] for arm in arms])
    new_means, new_variances = _means_with_variances([new[arm] for arm in arms])
    total_variance = float(np.var(old_means, ddof=1))
    chance_variance = max(float(old_variances.mean()), LEAST_ERROR)
    degrees_of_freedom = sum(len(old[arm]) for arm in arms) - len(arms)
    if fdtrc(len(arms) - 1, degrees_of_freedom, total_variance / chance_variance) >= DIFFERED:
        return None
    # The variance of the old means beyond chance. Errors in the old means make the slope too flat: `correction` is the
    # factor that undoes this.
    beyond_chance = total_variance - chance_variance
    correction = total_variance / beyond_chance
    weight = 1 / np.maximum(new_variances, LEAST_ERROR)
    centred = old_means - np.average(old_means, weights=weight)
    squares = float((weight * centred**2).sum())
    slope = float((weight * centred * new_means).sum()) / squares * correction
    most = slope + float(ndtri(1 - LEVEL)) / math.sqrt(squares) * correction
    return Levelled(arms=len(arms), before=math.sqrt(beyond_chance), most=most) if most < LEFT else None


def _means_with_variances(groups: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each group of values, and each mean's variance, from the pooled variance within the groups."""
    sizes = np.array([len(group) for group in groups])
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    within = squares / max(1, int(sizes.sum()) - len(groups))
    return np.array([np.mean(group) for group in groups]), within / sizes
