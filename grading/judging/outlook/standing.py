"""How each configured judge stands: its quota's row, and what is left of its allowance this minute."""

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
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "tokens": "Tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeStanding:
    """A judge that can be asked, and what its provider lets it do."""

    judge: Judge
    quota: Quota


def standings() -> dict[JudgeRole, JudgeStanding]:
    """Every configured judge, the first one first: one query. A judge never asked yet is open."""
    configured = judges.configured()
    quotas = {(quota.key, quota.model): quota for quota in Quota.objects.all()} if configured else {}
    standing_of: dict[JudgeRole, JudgeStanding] = {}
    for role, judge in configured.items():
        key = judge.fingerprint, judge.model
        standing_of[role] = JudgeStanding(judge=judge, quota=quotas.get(key) or Quota(key=key[0], model=key[1]))
    return standing_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One dimension of a judge's allowance: `used` of `limit` in the last minute."""

    dimension: str
    used: float
    limit: float

    @property
    def words(self) -> str:
        return DIMENSIONS[self.dimension]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What is left of the minute's allowance `as_of` then; None where no answer has told yet.

    `held_until` where the provider asked to wait; `share` of the rate in (0, 1], below 1 while it climbs after an
    outage.
    """

    rooms: tuple[Room, ...]
    as_of: dt.datetime | None
    held_until: dt.datetime | None = None
    share: float = 1.0

    @property
    def limits(self) -> dict[str, float]:
        return {room.dimension: room.limit for room in self.rooms}


def headroom(standing: JudgeStanding) -> Headroom:
    """What the limiter knows now; what the last answer's headers said where it knows nothing."""
    state, quota = limiter.shared().state(standing.judge.name), standing.quota
    rooms = [
        Room(dimension=name, used=known.used, limit=known.limit)
        for name, known in state.dimensions.items()
        if known.limit is not None
    ]
    if rooms and state.is_shared:
        return Headroom(rooms=tuple(rooms), as_of=timezone.now(), held_until=state.held_until, share=state.share)
    rooms = [
        Room(dimension=name, used=said["limit"] - said.get("remaining", said["limit"]), limit=said["limit"])
        for name, said in quota.limits.items()
        if name in DIMENSIONS
    ]
    return Headroom(rooms=tuple(rooms), as_of=quota.limits_at)
