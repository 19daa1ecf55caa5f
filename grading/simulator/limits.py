"""Rate limits like the service's: token buckets for each key and model, and counts of admitted calls."""

import datetime as dt
import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MINUTE = 60
# The service rounds the remaining tokens.
ROUNDED_TO = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Allowances per minute, which are also the buckets' capacities. Raises ValueError if one is not positive."""

    requests: int = 50
    input_tokens: int = 30_000
    output_tokens: int = 8_000

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if limit <= 0:
                raise ValueError(f"expected a positive limit of {name}, got {limit}")


@dataclass(slots=True)
class TokenBucket:
    """A token bucket. `level` may be negative after a long output. Times are monotonic seconds."""

    limit: int
    at: float
    level: float

    def refill(self, now: float) -> None:
        self.level = min(self.limit, self.level + (now - self.at) * self.limit / MINUTE)
        self.at = now

    def wait(self, need: float) -> float:
        """Seconds until it holds `need`, or is full."""
        return max(0.0, (min(need, self.limit) - self.level) * MINUTE / self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call is refused: the dimension with the longest wait, its limit, and whole seconds to wait, at least 1."""

    dimension: str
    limit: int
    retry_after: int

    @property
    def message(self) -> str:
        return (
            f"This request would exceed your organization's rate limit of {self.limit:,} "
            f"{self.dimension.replace('-', ' ')} per minute."
        )


class Meter:
    """The three buckets of one key and model. If not enforced, they only count, down to zero.

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
        """Take a call's request and input from the buckets, or return why the call is refused.

        At least one output token must be left. If not enforced, never refuses.
        """
        self._refill(now)
        needs = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 1}
        lacking = [name for name, need in needs.items() if self.buckets[name].level < need]
        if lacking and self.enforced:
            waits = {name: self.buckets[name].wait(needs[name]) for name in lacking}
            worst = max(waits, key=lambda name: waits[name])
            retry_after = max(1, math.ceil(waits[worst]))
            return Refusal(dimension=worst, limit=self.buckets[worst].limit, retry_after=retry_after)
        self._take(self.buckets["requests"], 1)
        self._take(self.buckets["input-tokens"], input_tokens)
        return None

    def write(self, output_tokens: int, now: float) -> None:
        """Take a reply's output, once its length is known."""
        self._refill(now)
        self._take(self.output, output_tokens)

    def headers(self, now: float, today: dt.datetime) -> dict[str, str]:
        """`anthropic-ratelimit-*` at `now`, which on the calendar is `today`. "tokens" is input and output together."""
        self._refill(now)
        both = (self.input, self.output)
        limits = {name: _header_values([bucket], name, today) for name, bucket in self.buckets.items()}
        limits["tokens"] = _header_values(both, "tokens", today)
        return {
            f"anthropic-ratelimit-{name}-{end}": value for name, ends in limits.items() for end, value in ends.items()
        }

    def _refill(self, now: float) -> None:
        for bucket in self.buckets.values():
            bucket.refill(now)

    def _take(self, bucket: TokenBucket, amount: float) -> None:
        bucket.level -= amount
        if not self.enforced:
            bucket.level = max(bucket.level, 0)


def _header_values(buckets: Sequence[TokenBucket], name: str, today: dt.datetime) -> dict[str, str]:
    """The limit, the remaining amount and the reset time of these buckets together, as the service writes them."""
    limit = sum(bucket.limit for bucket in buckets)
    remaining = sum(max(0.0, bucket.level) for bucket in buckets)
    if name != "requests":
        remaining = min(limit, ROUNDED_TO * round(remaining / ROUNDED_TO))
    full = today + dt.timedelta(seconds=math.ceil(max(bucket.wait(bucket.limit) for bucket in buckets)))
    return {"limit": str(limit), "remaining": str(int(remaining)), "reset": full.strftime("%Y-%m-%dT%H:%M:%SZ")}


@dataclass(slots=True)
class Counters:
    """Counts since `start` (monotonic seconds).

    Input tokens are counted when a call is admitted, output tokens when it is answered. `seconds` maps whole seconds
    since `start` to counts of: calls, requests (admitted ones), served, answered_429, input-tokens, output-tokens.
    """

    start: float
    answered_429: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, now: float, **counts: int) -> None:
        """Add counts (`input_tokens=900` counts as "input-tokens") to the second of `now`."""
        self.seconds[int(now - self.start)].update(
            {name.replace("_tokens", "-tokens"): n for name, n in counts.items()}
        )

    def refuse(self, now: float, dimension: str) -> None:
        self.add(now, answered_429=1)
        self.answered_429[dimension] += 1

    def state(self) -> dict[str, Any]:
        total = sum(self.seconds.values(), Counter())
        return {
            "served": total["served"],
            "answered_429": dict(self.answered_429),
            "tokens": {name: total[f"{name}-tokens"] for name in ("input", "output")},
            "seconds": {str(second): dict(counts) for second, counts in sorted(self.seconds.items())},
        }


# The limits in headers if none are enforced: those of a large customer, so that clients do not slow down.
GENEROUS = Limits(requests=4000, input_tokens=4_000_000, output_tokens=800_000)


@dataclass(slots=True)
class Gate:
    """Enforces `limits` for each key and model. With None it enforces none, and the headers state generous ones.

    `filled` in [0, 1] is how full the buckets are at first, as if the key had been used before.
    """

    limits: Limits | None = None
    filled: float = 1.0
    counters: Counters = field(default_factory=lambda: Counters(time.monotonic()))
    _meters: dict[tuple[str, str], Meter] = field(default_factory=dict)

    def limit(self, limits: Limits | None) -> None:
        """Enforce other limits from now on."""
        self.limits = limits
        self._meters.clear()

    def reset(self) -> None:
        self._meters.clear()
        self.counters = Counters(time.monotonic())

    def admit(self, key: str, model: str, input_tokens: int) -> Refusal | None:
        now = time.monotonic()
        refusal = self._meter(key, model, now).admit(input_tokens, now)
        if refusal is None:
            self.counters.add(now, requests=1, input_tokens=input_tokens)
        else:
            self.counters.refuse(now, refusal.dimension)
        return refusal

    def write(self, key: str, model: str, output_tokens: int) -> None:
        now = time.monotonic()
        self._meter(key, model, now).write(output_tokens, now)
        self.counters.add(now, served=1, output_tokens=output_tokens)

    def headers(self, key: str, model: str) -> dict[str, str]:
        now = time.monotonic()
        return self._meter(key, model, now).headers(now, dt.datetime.now(dt.UTC))

    def _meter(self, key: str, model: str, now: float) -> Meter:
        if (key, model) not in self._meters:
            self._meters[key, model] = Meter(
                self.limits or GENEROUS, now, enforced=self.limits is not None, filled=self.filled
            )
        return self._meters[key, model]


def limits_from(order: Mapping[str, Any] | None) -> Limits | None:
    """The limits in an order to `/_script`. Raises ValueError for an unknown name or a number that is not positive."""
    try:
        return None if order is None else Limits(**order)
    except TypeError as error:
        raise ValueError(f"expected requests, input_tokens and output_tokens; {error}") from error
