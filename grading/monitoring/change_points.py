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
# How many values at the start have no score, the largest score, and the smallest standard deviation assumed.
WARM_UP, MAX_SCORE, LEAST_SD = 10, 3.0, 0.02
# The intended limit of false alarms per site and year.
FALSE_A_YEAR = 0.25
LOWEST_THRESHOLD = 5.0
# A part can be compared with itself if it has this many values before and after the change. These parts together must
# have at least this share of all values.
EVALUABLE, ENOUGH = 5, 0.5
# The mean over different parts changes little compared with the spread of its values, so blocks of this many are used.
BLOCK = 25
# A rule that checks values by cell and all of them together may raise false alarms in both.
SERIES = 2

Part = TypeVar("Part", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A change of level at the index `since`, which chance could no longer explain at the index `detected_at`.

    `before` and `after` are the means of the `n_before` values before `since` and of the `n_after` values from it on.
    For the last change, these go to the end of the series; for an earlier one, only to `detected_at`.
    """

    since: int
    detected_at: int
    before: float
    after: float
    n_before: int
    n_after: int


class Cause(StrEnum):
    """Why a mean changed: its parts' levels, their shares, or unknown because too few values can be compared."""

    LEVELS = "levels"
    MIX = "mix"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How far a mean changed because of its parts' levels (`levels`) and because of their shares (`mix`).

    `evaluable` is the share of values, in [0, 1], that are in parts that could be compared: before or after the change,
    whichever share is lower.
    """

    cause: Cause
    levels: float
    mix: float
    evaluable: float


def threshold(values_a_year: float) -> float:
    """How high a CUSUM may get, in standard deviations, if this many values a year may cause FALSE_A_YEAR false alarms.

    Siegmund's approximation for an allowance of .5: false alarms, of either sign, are e^b − b − 1 values apart on
    average, with b = threshold + 1.166.
    """
    values_per_false_alarm = max(values_a_year, 1.0) / FALSE_A_YEAR
    return max(LOWEST_THRESHOLD, math.log(values_per_false_alarm) - 1.166)


def find_changes(values: Sequence[float], limit: float) -> list[ChangePoint]:
    """The changes in a series, in order. After each, the level is estimated anew."""
    points: list[ChangePoint] = []
    start = 0
    while (change := _first_change(values, start, limit)) is not None:
        points.append(change)
        start = change.detected_at + 1
    if points:
        last = points[-1]
        points[-1] = replace(last, after=float(np.mean(values[last.since :])), n_after=len(values) - last.since)
    return points


def split_change(before: Iterable[tuple[Hashable, float]], after: Iterable[tuple[Hashable, float]]) -> Split:
    """Why the mean changed between the (part, value) pairs `before` and `after`.

    A part adds to `levels` the average of its two shares times the change of its mean. It adds to `mix` the average of
    its two means times the change of its share.
    """
    old, new = group_by_part(before), group_by_part(after)
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


def block_means(values: Sequence[float]) -> list[float]:
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
    sums, squares = np.cumsum(x), np.cumsum(x**2)
    mean = sums[n - 1] / n
    variance = np.maximum((squares[n - 1] - n * mean**2) / (n - 1), LEAST_SD**2)
    student = (x[n] - mean) / np.sqrt(variance * (n + 1) / n)
    result[n] = np.clip(ndtri(stdtr(n - 1, student)), -MAX_SCORE, MAX_SCORE)
    return result


def _first_change(values: Sequence[float], start: int, limit: float) -> ChangePoint | None:
    """The first change from the index `start` on; None if neither CUSUM exceeds `limit`.

    The level changed where the CUSUM that exceeds the limit was last 0.
    """
    up = down = 0.0
    up_since = down_since = start
    for index, score in enumerate(scores(values[start:]).tolist(), start):
        up = max(0.0, up + score - ALLOWANCE)
        down = max(0.0, down - score - ALLOWANCE)
        if up == 0:
            up_since = index + 1
        if down == 0:
            down_since = index + 1
        if max(up, down) > limit:
            since = up_since if up > down else down_since
            before, after = values[start:since], values[since : index + 1]
            return ChangePoint(
                since=since,
                detected_at=index,
                before=float(np.mean(before)),
                after=float(np.mean(after)),
                n_before=len(before),
                n_after=len(after),
            )
    return None


def group_by_part(rows: Iterable[tuple[Part, float]]) -> Mapping[Part, list[float]]:
    """The values of each part, from (part, value) pairs."""
    parts: dict[Part, list[float]] = defaultdict(list)
    for part, value in rows:
        parts[part].append(value)
    return parts


def _share(values: Mapping[Hashable, list[float]], parts: Iterable[Hashable]) -> float:
    """The share in [0, 1] of all values that belong to these parts. `values` are by part."""
    total = sum(map(len, values.values()))
    return sum(len(values[part]) for part in parts) / total if total else 0.0
