"""The state of each configured judge: its quota, and how much of its rate limits is used."""

import datetime as dt
from dataclasses import dataclass

from django.utils import timezone

from grading.judging import judges
from grading.judging.allowance import limiter
from grading.judging.judges import Judge
from grading.models import Quota
from grading.models.judging import JudgeRole

DIMENSIONS = {
    "requests": "Requests",
    "tokens": "All tokens",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeStanding:
    """A configured judge and its quota."""

    judge: Judge
    quota: Quota


def standings() -> dict[JudgeRole, JudgeStanding]:
    """Every configured judge by role, the first judge first, in one query. A judge that was never called is open."""
    configured = judges.configured()
    quotas = {(quota.key, quota.model): quota for quota in Quota.objects.all()} if configured else {}
    standings_by_role: dict[JudgeRole, JudgeStanding] = {}
    for role, judge in configured.items():
        key = judge.fingerprint, judge.model
        standings_by_role[role] = JudgeStanding(judge=judge, quota=quotas.get(key) or Quota(key=key[0], model=key[1]))
    return standings_by_role


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One dimension of a judge's limits: `used` of `limit` in the last minute."""

    dimension: str
    used: float
    limit: float

    @property
    def label(self) -> str:
        return DIMENSIONS[self.dimension]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What a judge used of its limits in the minute before `as_of`, which is None if no answer had limits yet.

    `blocked_until` is set if the provider asked for a wait. `share` of the rate in (0, 1] is below 1 while it rises
    after an outage.
    """

    rooms: tuple[Room, ...]
    as_of: dt.datetime | None
    blocked_until: dt.datetime | None = None
    share: float = 1.0

    @property
    def limits(self) -> dict[str, float]:
        return {room.dimension: room.limit for room in self.rooms}


def headroom(standing: JudgeStanding) -> Headroom:
    """The limiter's figures now, or those of the last answer's headers if it has none."""
    quota = standing.quota
    state = limiter.shared().state(standing.judge.name)
    rooms = [
        Room(dimension=name, used=dimension.used, limit=dimension.limit)
        for name, dimension in state.dimensions.items()
        if dimension.limit is not None
    ]
    if rooms and state.is_shared:
        return Headroom(rooms=tuple(rooms), as_of=timezone.now(), blocked_until=state.blocked_until, share=state.share)
    rooms = [
        Room(dimension=name, used=limits["limit"] - limits.get("remaining", limits["limit"]), limit=limits["limit"])
        for name, limits in quota.limits.items()
        if name in DIMENSIONS
    ]
    return Headroom(rooms=tuple(rooms), as_of=quota.limits_at)
