"""One rate limiter for all workers, in requests and tokens per minute. It decides when a call may be sent to a judge.

    slot = limiter.shared().reserve(name, cost)      # not granted if the wait is over two seconds
    time.sleep(slot.wait); answer = ...              # only if slot.granted
    limiter.shared().settle(slot, used, answer.limits)

The arithmetic is in limiter.lua and runs in Redis, on its clock: a token bucket for each dimension, reserved together.
While Redis is down each process keeps to a small share of the last known limits.
"""

import datetime as dt
import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from grading import clock
from grading.judging.allowance.bucket import BURST, FIRST_LIMIT, LOCAL_SHARE, LONGEST_WAIT, LocalBuckets
from grading.judging.core.ratelimits import DIMENSIONS, CallCost, RateLimits

logger = logging.getLogger(__name__)

# The share of the provider's rate that is used; the rest is for small errors, which would add up.
PACE = 0.98
# The requests per minute that are assumed if answers tell no limits.
DEFAULT_LIMIT = 50
# Seconds between two tries while Redis is down.
RETRY_SECONDS = 5.0
# The longest block, in seconds. Blocks are for limits per minute; the quota handles longer outages.
LONGEST_BLOCK = 3600.0
# The first estimates: tokens per character, and tokens of an answer.
FIRST_RATIO, FIRST_OUTPUT = 0.3, 700
CONSTANTS = json.dumps(
    {
        "dimensions": DIMENSIONS,
        "pace": PACE,
        "burst": BURST,
        "first": FIRST_LIMIT,
        "silent": DEFAULT_LIMIT,
        "longest_wait": LONGEST_WAIT,
        "first_wait": 5,  # the wait that is returned until the first answer has come
        "head_seconds": 15,  # how long the head of the line may be late for its turn
        "ramp_from": 0.1,
        "keep_seconds": 86_400,
        "memory": 0.95,  # what an estimate keeps of the past at each answer
        "ratio": FIRST_RATIO,
        "characters": 20_000,  # the weight of FIRST_RATIO, in characters
        "output": FIRST_OUTPUT,
        "highest_ratio": 2,  # a larger ratio or output that an answer claims is cut to these
        "highest_output": 8192,
    }
)
SCRIPT = Path(__file__).with_suffix(".lua").read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The answer of `reserve`. If granted, sleep `wait` ≤ LONGEST_WAIT seconds, then call; otherwise try later."""

    name: str
    cost: CallCost
    wait: float
    granted: bool
    # When the call starts on Redis' clock, and the sums reserved by then; empty if Redis was down.
    at: float = 0.0
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionState:
    """One dimension's `limit` per minute, what was `used` of it in the last minute, and the `level` that is available
    now (None if unknown).
    """

    limit: float
    used: float = 0.0
    level: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A judge's limits, and what it used of them in the minute before `as_of` (None if no answer had limits yet).

    `dimensions` has the dimensions with a known limit. `is_shared`: the figures are those of all processes, from Redis.
    `blocked_until` is set if the provider asked for a wait. `share` in [.1, 1] is the share of the rate that may be
    used, below 1 while it rises after an outage.
    """

    dimensions: Mapping[str, DimensionState]
    as_of: dt.datetime | None = None
    is_shared: bool = False
    blocked_until: dt.datetime | None = None
    share: float = 1.0
    tokens_per_character: float = FIRST_RATIO
    output_tokens: float = FIRST_OUTPUT

    @property
    def limits(self) -> dict[str, float]:
        return {name: dimension.limit for name, dimension in self.dimensions.items()}


class Limiter:
    """The limiter at a Redis URL. Thread-safe; its methods work, without shared limits, while Redis is down."""

    def __init__(self, url: str) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._redis = redis.Redis.from_url(
            url, socket_timeout=2, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0), decode_responses=True
        )
        self._script = self._redis.register_script(SCRIPT)
        self._away_until = 0.0
        self._is_away = False
        self._local: dict[str, LocalBuckets] = {}
        self._lock = threading.Lock()

    def reserve(self, name: str, cost: CallCost, *, spare: float = 0.0, who: str = "") -> Slot:
        """Reserve a call of `cost` to the judge `name`. The share `spare` in [0, 1) of a minute's limit must remain.

        A cost larger than the bucket is granted when the bucket is full. `who` names the job: the first one that is
        refused becomes the head of the line, and jobs with the same or a larger `spare` wait behind it.
        """
        arguments = {"cost": cost.by_dimension(), "spare": spare, "who": who}
        answer = self._run("reserve", name, arguments)
        if answer is None:  # Redis is down
            wait = self._bucket(name).reserve(cost)
            return Slot(name=name, cost=cost, wait=wait, granted=wait <= LONGEST_WAIT)
        return Slot(name=name, cost=cost, **answer)

    def settle(self, slot: Slot, used: CallCost | None, limits: RateLimits | None = None) -> None:
        """Replace a slot's reservation by what was used (None: nothing), and update limits and estimates."""
        self.remember(slot.name, limits or {})
        arguments: dict[str, Any] = {"cost": slot.cost.by_dimension(), "limits": limits or {}}
        if used is not None:
            arguments |= {"used": used.by_dimension(), "characters": used.characters}
        if slot.marks:
            arguments |= {"at": slot.at, "marks": slot.marks}
        self._run("settle", slot.name, arguments)

    def remember(self, name: str, limits: RateLimits) -> None:
        """Remember the limits for when Redis is down."""
        self._bucket(name).remember({dimension: values["limit"] for dimension, values in limits.items()})

    def block(self, name: str, until: dt.datetime) -> None:
        """Grant no slot before `until` (aware), for an hour at most. A longer block stays."""
        seconds = (until - clock.now()).total_seconds()
        if seconds > 0:
            seconds = min(seconds, LONGEST_BLOCK)
            self._bucket(name).block(seconds)
            self._run("hold", name, {"seconds": seconds})

    def ramp(self, name: str) -> None:
        """After an outage: start at a tenth of the rate and rise to all of it within a minute."""
        self._run("ramp", name, {})

    def estimate(self, name: str, characters: int) -> CallCost:
        """The expected cost of a prompt of this many characters, from this judge's answers so far."""
        state = self.state(name)
        return CallCost(
            input_tokens=round(characters * state.tokens_per_character),
            output_tokens=round(state.output_tokens),
        )

    def characters_per_token(self, name: str) -> float:
        """The judge's measured ratio, rounded to quarters, so that a session's prompt seldom changes; at least 1."""
        return max(round(4 / self.state(name).tokens_per_character) / 4, 1.0)

    def state(self, name: str) -> State:
        """The limiter's state. While Redis is down it has only the last known limits, and `is_shared` is False."""
        answer = self._run("state", name, {})
        if answer is None:  # Redis is down
            limits = self._bucket(name).limits
            return State(dimensions={dimension: DimensionState(limit=limit) for dimension, limit in limits.items()})
        blocked_seconds = answer["hold"]
        return State(
            dimensions={
                dimension: DimensionState(**values)
                for dimension, values in answer["dimensions"].items()
                if values.get("limit") is not None
            },
            as_of=timezone.now(),
            is_shared=True,
            blocked_until=clock.now() + dt.timedelta(seconds=blocked_seconds) if blocked_seconds else None,
            share=answer["share"],
            tokens_per_character=answer["ratio"],
            output_tokens=answer["output"],
        )

    def close(self) -> None:
        self._redis.close()

    def _bucket(self, name: str) -> LocalBuckets:
        with self._lock:
            return self._local.setdefault(name, LocalBuckets())

    def _run(self, verb: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The script's answer; None while Redis is down, which is logged once."""
        import redis

        if time.monotonic() < self._away_until:
            return None
        try:
            reply = self._script(keys=[f"judge:{name}"], args=[verb, json.dumps(arguments), CONSTANTS])
        except (redis.RedisError, OSError) as error:
            if not self._is_away:
                share = LOCAL_SHARE * 100
                logger.warning("Redis is away (%s); this process keeps to %.0f %% of the limits", error, share)
            self._is_away = True
            self._away_until = time.monotonic() + RETRY_SECONDS
            return None
        if self._is_away:
            self._is_away = False
            logger.info("Redis is back; the judge's limits are shared again")
        answer: dict[str, Any] = json.loads(str(reply))
        return answer


@lru_cache(maxsize=8)
def _at(url: str) -> Limiter:
    return Limiter(url)


def shared() -> Limiter:
    """The process's limiter at `settings.REDIS_URL`."""
    return _at(settings.REDIS_URL)


def forget() -> None:
    """Reset this process's limiter, for tests."""
    _at.cache_clear()
