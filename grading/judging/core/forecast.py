"""When the backlog of the judge will be gone: jobs come in at one rate and go out at another. Pure arithmetic."""

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
# How far a forecast looks, and how much of it is drawn where there is no end to be seen.
HORIZON, OPEN_ENDED = 30 * DAY, DAY
# Below these, a queue or a leg is nothing.
TINY, LEAST_LEG = 1e-6, dt.timedelta(seconds=1)

# A moment, and how many jobs wait then.
CurvePoint = tuple[dt.datetime, float]
Curve = tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Verdicts a minute, and the dimension whose `limit` a minute decides it: a verdict takes `each` of it."""

    dimension: str
    limit: float
    each: float
    share: float

    @property
    def per_minute(self) -> float:
        return self.share * self.limit / self.each


def pace(limits: Mapping[str, float], each: Mapping[str, float], *, share: float) -> Pace | None:
    """The tightest of the `limits` (a minute, by dimension), of which a verdict takes `each` on average.

    `share` in (0, 1] of the limits is used. The reserve for new sessions is a level: once filled it costs no rate.
    None if no limit, or no verdict to measure by, is known.
    """
    paces = [
        Pace(dimension=name, limit=limit, each=each[name], share=share)
        for name, limit in limits.items()
        if each.get(name, 0) > 0 and limit > 0
    ]
    return min(paces, key=lambda one: one.per_minute, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A daily budget in verdicts: `remaining` until `renews_at`, then `daily` for each day (of 24 hours)."""

    remaining: float
    daily: float
    renews_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The inputs of a forecast. Rates are jobs an hour.

    `opens_at`: when calls can be made again, now or earlier if they can now; None if unknown.
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
    """`curve` from now on, straight between its points; `at` is when nothing waits any more, if ever.

    `opening` is the point at which calls can be made again, where that is later than now.
    """

    ending: ForecastEnding
    curve: Curve
    at: dt.datetime | None = None
    opening: CurvePoint | None = None


def forecast(now: dt.datetime, conditions: Conditions) -> Forecast:
    """Follow the queue: it grows while nothing can be sent, else by arrivals less rate, as long as the budget lasts."""
    ending = _ending(conditions)
    if ending in {ForecastEnding.EMPTY, ForecastEnding.UNKNOWN}:
        return Forecast(ending=ending, curve=((now, float(conditions.waiting)),))
    if conditions.opens_at is None or conditions.rate is None:
        grown = conditions.waiting + conditions.arrivals * (OPEN_ENDED / HOUR)
        return Forecast(ending=ending, curve=((now, float(conditions.waiting)), (now + OPEN_ENDED, grown)))
    # Leg by leg: each ends where the quota opens, the budget is spent or renewed, or the queue is empty.
    opens_at = max(conditions.opens_at, now)
    end = opens_at + (HORIZON if ending is ForecastEnding.FAR else OPEN_ENDED)
    at, waiting, verdicts_left, renews_at = now, float(conditions.waiting), math.inf, end
    if conditions.allowance is not None:
        verdicts_left, renews_at = conditions.allowance.remaining, conditions.allowance.renews_at
    curve: list[CurvePoint] = [(at, waiting)]
    opening: CurvePoint | None = None
    while at < end:
        while conditions.allowance is not None and renews_at <= at:
            verdicts_left, renews_at = conditions.allowance.daily, renews_at + DAY
        served = 0.0
        if at >= opens_at and verdicts_left > TINY:  # all that the rate takes, or, once nothing waits, what comes in
            served = conditions.rate if waiting >= TINY else min(conditions.arrivals, conditions.rate)
        spent, empty = at + _hours(verdicts_left, served), at + _hours(waiting, served - conditions.arrivals)
        stops = [end, renews_at, spent, empty, opens_at if at < opens_at else end]
        until = max(min(stops), at + LEAST_LEG)
        hours = (until - at) / HOUR
        at, waiting = until, max(waiting + (conditions.arrivals - served) * hours, 0.0)
        verdicts_left -= served * hours
        if opening is None and now < opens_at <= at:
            opening = at, waiting
        if waiting < TINY and ending is not ForecastEnding.BUDGET:
            return Forecast(ending=ForecastEnding.DRAINED, curve=(*curve, (at, 0.0)), at=at, opening=opening)
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


def _hours(amount: float, an_hour: float) -> dt.timedelta:
    """How long `amount` lasts; beyond every horizon where nothing is taken from it."""
    return min(dt.timedelta(hours=min(amount / an_hour, 1e6)), 2 * HORIZON) if an_hour > 0 else 2 * HORIZON


def past(
    waiting: int, came: Sequence[dt.datetime], went: Sequence[dt.datetime], moments: Sequence[dt.datetime]
) -> Curve:
    """How many waited at each of the `moments`, from how many wait now and when jobs came and went (each sorted)."""
    return tuple(
        (at, float(max(waiting - (len(came) - bisect_right(came, at)) + (len(went) - bisect_right(went, at)), 0)))
        for at in moments
    )
