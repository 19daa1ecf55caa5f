"""Whether and when the level of a series changed; whether a mean changed by its parts' levels or by their mix.

A self-starting CUSUM (Hawkins, 1987): each value is compared with the mean and spread of all before it, so the level
need not be known beforehand. By Student's distribution that gives standard normal scores if nothing changed; they are
clipped at ±3, so that a few outliers raise no alarm.
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
WARM_UP = 10
CUT = 3.0
LEAST_SD = 0.02
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
    apart = max(values_a_year, 1.0) / FALSE_A_YEAR
    return max(LOWEST_THRESHOLD, math.log(apart) - 1.166)


def changes(values: Sequence[float], limit: float) -> list[ChangePoint]:
    """The changes in a series, in order. After each, the level is estimated anew."""
    points: list[ChangePoint] = []
    start = 0
    while (change := _first(values, start, limit)) is not None:
        points.append(change)
        start = change.at + 1
    if points:
        last = points[-1]
        points[-1] = replace(last, after=float(np.mean(values[last.since :])), n_after=len(values) - last.since)
    return points


def split(before: Iterable[tuple[Hashable, float]], after: Iterable[tuple[Hashable, float]]) -> Split:
    """Why the mean of (part, value) changed: Σ of mean share × difference of levels, and the other way round."""
    old, new = by_part(before), by_part(after)
    parts = [part for part in old if len(old[part]) >= EVALUABLE and len(new.get(part, ())) >= EVALUABLE]
    evaluable = min(_share(old, parts), _share(new, parts))
    shares = {part: (_share(old, [part]), _share(new, [part])) for part in parts}
    means = {part: (float(np.mean(old[part])), float(np.mean(new[part]))) for part in parts}
    levels = sum((sum(shares[part]) / 2) * (means[part][1] - means[part][0]) for part in parts)
    mix = sum((sum(means[part]) / 2) * (shares[part][1] - shares[part][0]) for part in parts)
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
    """Each value compared with all before it, standard normal if nothing changes; 0 for the first WARM_UP."""
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
    result[n] = np.clip(ndtri(stdtr(n - 1, student)), -CUT, CUT)
    return result


def _first(values: Sequence[float], start: int, limit: float) -> ChangePoint | None:
    up = down = 0.0
    up_since = down_since = start
    for place, score in enumerate(scores(values[start:]).tolist(), start):
        up, down = max(0.0, up + score - ALLOWANCE), max(0.0, down - score - ALLOWANCE)
        up_since = place + 1 if up == 0 else up_since
        down_since = place + 1 if down == 0 else down_since
        if max(up, down) > limit:
            since = up_since if up > down else down_since
            before, after = values[start:since], values[since : place + 1]
            return ChangePoint(
                since=since,
                at=place,
                before=float(np.mean(before)),
                after=float(np.mean(after)),
                n_before=len(before),
                n_after=len(after),
            )
    return None


def by_part(rows: Iterable[tuple[Part, float]]) -> Mapping[Part, list[float]]:
    """The values of each part, of (part, value)."""
    parts: dict[Part, list[float]] = defaultdict(list)
    for part, value in rows:
        parts[part].append(value)
    return parts


def _share(values: Mapping[Hashable, list[float]], parts: Iterable[Hashable]) -> float:
    total = sum(map(len, values.values()))
    return sum(len(values[part]) for part in parts) / total if total else 0.0
