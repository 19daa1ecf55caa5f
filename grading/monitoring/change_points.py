"""Whether and when the level of a series changed; whether a mean changed by its parts' levels or by their mix.

The test is a self-starting CUSUM (Hawkins, 1987): each value is compared with the mean and standard deviation of all
values before it, so that the level need not be known beforehand. The comparison is transformed by Student's
distribution into a score that is standard normal if nothing changed, and clipped at ±3, so that a few outliers raise no
alarm.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np

# Half of the change to be detected, in standard deviations.
ALLOWANCE = 0.5
# How many values at the start have no score, the largest score, and the least standard deviation of values.
WARM_UP, MAX_SCORE, LEAST_SD = 10, 3.0, 0.02
# The intended limit of false alarms per site and year.
FALSE_A_YEAR = 0.25
LOWEST_THRESHOLD = 5.0
# The fewest values on either side for comparing a part with itself, and the share of all values in such parts needed.
EVALUABLE, ENOUGH = 5, 0.5
# The mean over different parts changes little compared with the spread of its values, so blocks of this many are used.
BLOCK = 25
# A rule that checks values by cell and all of them together may raise false alarms in both.
SERIES = 2

Part = TypeVar("Part", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The level changed at the index `since`, and was beyond chance at the index `at`.

    `before` and `after` are the means of the `n_before` values before and the `n_after` since. The values since end
    with the series for the last change, and at `at` for an earlier one.
    """

    since: int
    at: int
    before: float
    after: float
    n_before: int
    n_after: int


class Cause(StrEnum):
    """Why a mean changed: its parts' levels, their shares, or unknown, since too few values can be compared."""

    LEVELS = "levels"
    MIX = "mix"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How far a mean changed because of its parts' levels and because of their mix. `evaluable` is the share in [0, 1]
    of values in parts that could be compared, on the side with the lower share.
    """

    cause: Cause
    levels: float
    mix: float
    evaluable: float


def threshold(values_a_year: float) -> float:
    """How high a sum may get, in standard deviations, for FALSE_A_YEAR false alarms at this many values a year.

    Siegmund's approximation: on average e^b − b − 1 values come between false alarms of either sign at an allowance of
    .5, with b = threshold + 1.166.
    """
    values_per_false_alarm = max(values_a_year, 1.0) / FALSE_A_YEAR
    return max(LOWEST_THRESHOLD, math.log(values_per_false_alarm) - 1.166)


def changes(values: Sequence[float], limit: float) -> list[ChangePoint]:
    """The changes in a series, in order. After each, the level is estimated anew."""
    points: list[ChangePoint] = []
    start = 0
    while (change := _first_change(values, start, limit)) is not None:
        points.append(change)
        start = change.at + 1
    if points:
        last = points[-1]
        points[-1] = replace(last, after=float(np.mean(values[last.since :])), n_after=len(values) - last.since)
    return points


def split(before: Iterable[tuple[Hashable, float]], after: Iterable[tuple[Hashable, float]]) -> Split:
    """Why the mean of these (part, value) changed.

    A part's contribution to `levels` is its mean share times the change of its mean; that to `mix` is its mean level
    times the change of its share.
    """
    old, new = by_part(before), by_part(after)
    parts = [part for part in old if len(old[part]) >= EVALUABLE and len(new.get(part, ())) >= EVALUABLE]
    evaluable = min(_share(old, parts), _share(new, parts))
    levels = mix = 0.0
    for part in parts:
        old_share, new_share = _share(old, [part]), _share(new, [part])
        old_mean, new_mean = float(np.mean(old[part])), float(np.mean(new[part]))
        levels += (old_share + new_share) / 2 * (new_mean - old_mean)
        mix += (old_mean + new_mean) / 2 * (new_share - old_share)
    if len(parts) < 2 or evaluable < ENOUGH:  # noqa: PLR2004 - one part has no mix
        cause = Cause.CANNOT_TELL
    else:
        cause = Cause.LEVELS if abs(levels) >= abs(mix) else Cause.MIX
    return Split(cause=cause, levels=levels, mix=mix, evaluable=evaluable)


def blocks(values: Sequence[float]) -> list[float]:
    """The means of consecutive blocks of BLOCK values; an incomplete last block is left out."""
    whole = len(values) // BLOCK * BLOCK
    return [float(mean) for mean in np.asarray(values[:whole], dtype=float).reshape(-1, BLOCK).mean(axis=1)]


def scores(values: Sequence[float]) -> np.ndarray:
    """The score of each value, compared with all before it: in [−3, 3], 0 for the first WARM_UP values."""
    x = np.asarray(values, dtype=float)
    result = np.zeros(len(x))
    if len(x) <= WARM_UP:
        return result
    from scipy.special import ndtri, stdtr  # slow to import, and not needed for short series

    n = np.arange(WARM_UP, len(x))
    total, squares = np.cumsum(x), np.cumsum(x**2)
    mean = total[n - 1] / n
    spread = np.maximum((squares[n - 1] - n * mean**2) / (n - 1), LEAST_SD**2)
    student = (x[n] - mean) / np.sqrt(spread * (n + 1) / n)
    result[n] = np.clip(ndtri(stdtr(n - 1, student)), -MAX_SCORE, MAX_SCORE)
    return result


def _first_change(values: Sequence[float], start: int, limit: float) -> ChangePoint | None:
    """The first change from the index `start` on, where one of the two CUSUMs exceeds the limit; None if none does.

    The level changed where that CUSUM was last 0.
    """
    up = down = 0.0
    up_since = down_since = start
    for index, score in enumerate(scores(values[start:]).tolist(), start):
        up, down = max(0.0, up + score - ALLOWANCE), max(0.0, down - score - ALLOWANCE)
        if up == 0:
            up_since = index + 1
        if down == 0:
            down_since = index + 1
        if max(up, down) > limit:
            since = up_since if up > down else down_since
            before, after = values[start:since], values[since : index + 1]
            return ChangePoint(
                since=since,
                at=index,
                before=float(np.mean(before)),
                after=float(np.mean(after)),
                n_before=len(before),
                n_after=len(after),
            )
    return None


def by_part(rows: Iterable[tuple[Part, float]]) -> Mapping[Part, list[float]]:
    """The values of each part, from (part, value) pairs."""
    parts: dict[Part, list[float]] = defaultdict(list)
    for part, value in rows:
        parts[part].append(value)
    return parts


def _share(values: Mapping[Hashable, list[float]], parts: Iterable[Hashable]) -> float:
    """The share in [0, 1] of all values that these parts have."""
    total = sum(map(len, values.values()))
    return sum(len(values[part]) for part in parts) / total if total else 0.0
