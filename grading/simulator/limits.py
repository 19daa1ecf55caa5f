"""Limits a minute, kept as the service keeps them: buckets that refill all the time, a set for each key and model."""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

MINUTE = 60
# The service rounds the tokens that it says are left.
ROUNDED_TO = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Allowances a minute, and what the buckets hold when full. Raises ValueError for one that is not positive."""

    requests: int = 50
    input_tokens: int = 30_000
    output_tokens: int = 8_000

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if limit <= 0:
                raise ValueError(f"expected a positive limit of {name}, got {limit}")


@dataclass(slots=True)
class TokenBucket:
    """`level` may be below zero: what was written is owed. Times are seconds of one clock."""

    limit: int
    at: float
    level: float

    def refill(self, now: float) -> None:
        self.level = min(self.limit, self.level + (now - self.at) * self.limit / MINUTE)
        self.at = now

    def wait(self, need: float) -> float:
        """Seconds until it holds `need`, or all that it can hold."""
        return max(0.0, (min(need, self.limit) - self.level) * MINUTE / self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call is not let in: the dimension that lacks the most, its limit, and whole seconds to wait, at least 1."""

    dimension: str
    limit: int
    retry_after: int

    @property
    def words(self) -> str:
        return (
            f"This request would exceed your organization's rate limit of {self.limit:,} "
            f"{self.dimension.replace('-', ' ')} per minute."
        )


class Meter:
    """The three buckets of one key and model. Where they are not enforced, they only count, down to zero.

    `filled` in [0, 1] is the share of a minute's allowance that they hold at first.
    """

    def __init__(self, limits: Limits, now: float, *, enforced: bool, filled: float = 1.0) -> None:
        self.enforced = enforced
        self.requests, self.input, self.output = (
            TokenBucket(limit, now, limit * filled)
            for limit in (limits.requests, limits.input_tokens, limits.output_tokens)
        )
        self.buckets = {"requests": self.requests, "input-tokens": self.input, "output-tokens": self.output}

    def admit(self, input_tokens: int, now: float) -> Refusal | None:
        """Let a call in and take what it brings, or say why not and take nothing. Of output, some must be left."""
        self._refill(now)
        needs = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 1}
        lacking = [name for name, need in needs.items() if self.buckets[name].level < need]
        if lacking and self.enforced:
            waits = {name: self.buckets[name].wait(needs[name]) for name in lacking}
            worst = max(waits, key=lambda name: waits[name])
            retry_after = max(1, math.ceil(waits[worst]))
            return Refusal(dimension=worst, limit=self.buckets[worst].limit, retry_after=retry_after)
        self._take(self.requests, 1)
        self._take(self.input, input_tokens)
        return None

    def write(self, output_tokens: int, now: float) -> None:
        """Take what a reply has come to: known only once it is written."""
        self._refill(now)
        self._take(self.output, output_tokens)

    def headers(self, now: float, today: dt.datetime) -> dict[str, str]:
        """`anthropic-ratelimit-*` at `now`, which on the calendar is `today`. "tokens" is input and output together."""
        self._refill(now)
        both = (self.input, self.output)
        said = {name: _described([bucket], name, today) for name, bucket in self.buckets.items()}
        said["tokens"] = _described(both, "tokens", today)
        return {
            f"anthropic-ratelimit-{name}-{end}": value for name, ends in said.items() for end, value in ends.items()
        }

    def _refill(self, now: float) -> None:
        for bucket in self.buckets.values():
            bucket.refill(now)

    def _take(self, bucket: TokenBucket, amount: float) -> None:
        bucket.level -= amount
        if not self.enforced:
            bucket.level = max(bucket.level, 0)


def _described(buckets: Sequence[TokenBucket], name: str, today: dt.datetime) -> dict[str, str]:
    limit, left = sum(bucket.limit for bucket in buckets), sum(max(0.0, bucket.level) for bucket in buckets)
    if name != "requests":
        left = min(limit, ROUNDED_TO * round(left / ROUNDED_TO))
    full = today + dt.timedelta(seconds=math.ceil(max(bucket.wait(bucket.limit) for bucket in buckets)))
    return {"limit": str(limit), "remaining": str(int(left)), "reset": full.strftime("%Y-%m-%dT%H:%M:%SZ")}
