"""When the backlog of the judge will be gone: jobs come in at one rate and go out at another. Pure arithmetic."""

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
# The length of a forecast, and the part of it that is drawn if the queue does not end.
HORIZON, OPEN_ENDED = 30 * DAY, DAY
# A shorter queue counts as empty; a step of the simulation takes at least this long.
TINY, LEAST_STEP = 1e-6, dt.timedelta(seconds=1)

# A moment, and how many jobs wait then.
CurvePoint = tuple[dt.datetime, float]
Curve = tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The verdicts per minute that one dimension allows. `share` of its `limit` per minute is used, and a verdict takes
    `per_verdict` of it.
    """

    dimension: str
    limit: float
    per_verdict: float
    share: float

    @property
    def per_minute(self) -> float:
        return self.share * self.limit / self.per_verdict


def pace(limits: Mapping[str, float], per_verdict: Mapping[str, float], *, share: float) -> Pace | None:
    """The pace under the tightest of the `limits` (per minute, by dimension). `per_verdict` is what a verdict takes of
    each dimension on average.

    `share` in (0, 1] of the limits is used. The reserve for new sessions is a level of the bucket, so it does not lower
    the rate. None if no limit, or nothing that a verdict takes, is known.
    """
    paces = [
        Pace(dimension=name, limit=limit, per_verdict=per_verdict[name], share=share)
        for name, limit in limits.items()
        if per_verdict.get(name, 0) > 0 and limit > 0
    ]
    return min(paces, key=lambda pace: pace.per_minute, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A daily budget in verdicts: `remaining` until `renews_at`, then `daily` for each day (of 24 hours)."""

    remaining: float
    daily: float
    renews_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The inputs of a forecast. Rates are jobs an hour.

    `opens_at` is when calls can be made again: not later than now if they can be made already, None if unknown.
    """

    waiting: int
    arrivals: float
    rate: float | None
    opens_at: dt.datetime | None
    allowance: Allowance | None = None


class ForecastEnding(StrEnum):
    """How the forecast ends.

    `NEVER`: more come in than the rate takes. `BUDGET`: more come in than the budget pays for, so that every day ends
    with a queue. `SHUT`: nobody knows when calls can be made again. `UNKNOWN`: no rate is known. `FAR`: beyond thirty
    days.
    """

    EMPTY = "empty"
    DRAINED = "drained"
    NEVER = "never"
    BUDGET = "budget"
    SHUT = "shut"
    UNKNOWN = "unknown"
    FAR = "far"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The queue from now on, a `curve` that is straight between its points.

    `empty_at` is when no job waits any more, None if that is not foreseen. `opening` is the point at which calls can be
    made again, None if that is not later than now.
    """

    ending: ForecastEnding
    curve: Curve
    empty_at: dt.datetime | None = None
    opening: CurvePoint | None = None


def forecast(now: dt.datetime, conditions: Conditions) -> Forecast:
    """Simulate the queue. While no call can be sent, it grows by the arrivals. Otherwise it changes by the arrivals
    minus the served jobs, until the budget is spent, the queue is empty, or the horizon is reached.
    """
    ending = _ending(conditions)
    if ending in {ForecastEnding.EMPTY, ForecastEnding.UNKNOWN}:
        return Forecast(ending=ending, curve=((now, float(conditions.waiting)),))
    if conditions.opens_at is None or conditions.rate is None:
        grown = conditions.waiting + conditions.arrivals * (OPEN_ENDED / HOUR)
        return Forecast(ending=ending, curve=((now, float(conditions.waiting)), (now + OPEN_ENDED, grown)))
    # Each step ends when the quota opens, the budget is spent or renewed, or the queue is empty.
    opens_at = max(conditions.opens_at, now)
    end = opens_at + (HORIZON if ending is ForecastEnding.FAR else OPEN_ENDED)
    at = now
    waiting = float(conditions.waiting)
    verdicts_left = math.inf
    renews_at = end
    if conditions.allowance is not None:
        verdicts_left = conditions.allowance.remaining
        renews_at = conditions.allowance.renews_at
    curve: list[CurvePoint] = [(at, waiting)]
    opening: CurvePoint | None = None
    while at < end:
        while conditions.allowance is not None and renews_at <= at:
            verdicts_left = conditions.allowance.daily
            renews_at += DAY
        served = 0.0  # jobs an hour
        if at >= opens_at and verdicts_left > TINY:
            # An empty queue is served at the rate of arrivals.
            served = conditions.rate if waiting >= TINY else min(conditions.arrivals, conditions.rate)
        spent_at = at + _duration(verdicts_left, served)
        empty_at = at + _duration(waiting, served - conditions.arrivals)
        step_ends = [end, renews_at, spent_at, empty_at]
        if at < opens_at:
            step_ends.append(opens_at)
        until = max(min(step_ends), at + LEAST_STEP)
        hours = (until - at) / HOUR
        waiting = max(waiting + (conditions.arrivals - served) * hours, 0.0)
        verdicts_left -= served * hours
        at = until
        if opening is None and now < opens_at <= at:
            opening = at, waiting
        if waiting < TINY and ending is not ForecastEnding.BUDGET:
            return Forecast(ending=ForecastEnding.DRAINED, curve=(*curve, (at, 0.0)), empty_at=at, opening=opening)
        curve.append((at, waiting))
    return Forecast(ending=ending, curve=tuple(curve), opening=opening)


def _ending(conditions: Conditions) -> ForecastEnding:
    """The ending that follows from the conditions alone; FAR if the queue has to be simulated."""
    if conditions.waiting == 0:
        return ForecastEnding.EMPTY
    if conditions.opens_at is None:
        return ForecastEnding.SHUT
    if conditions.rate is None:
        return ForecastEnding.UNKNOWN
    if conditions.rate <= conditions.arrivals:
        return ForecastEnding.NEVER
    if conditions.allowance is not None and conditions.allowance.daily <= conditions.arrivals * (DAY / HOUR):
        return ForecastEnding.BUDGET
    return ForecastEnding.FAR


def _duration(amount: float, per_hour: float) -> dt.timedelta:
    """How long `amount` lasts if `per_hour` is taken from it. At most 2 · HORIZON, also if nothing is taken."""
    if per_hour <= 0:
        return 2 * HORIZON
    return min(dt.timedelta(hours=min(amount / per_hour, 1e6)), 2 * HORIZON)


def queue_history(
    waiting: int, created: Sequence[dt.datetime], finished: Sequence[dt.datetime], moments: Sequence[dt.datetime]
) -> Curve:
    """How many jobs waited at each of the `moments`.

    `waiting` jobs wait now; `created` and `finished` are the sorted times at which jobs were added and ended.
    """
    curve: list[CurvePoint] = []
    for at in moments:
        created_since = len(created) - bisect_right(created, at)
        finished_since = len(finished) - bisect_right(finished, at)
        curve.append((at, float(max(waiting - created_since + finished_since, 0))))
    return tuple(curve)
