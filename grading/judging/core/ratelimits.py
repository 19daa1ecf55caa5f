"""What a call costs in requests and tokens, and the provider's rate limits in the headers of its answer."""

import datetime as dt
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

PREFIX = "anthropic-ratelimit"
# In the order of the headers' names. `tokens` limits input and output together.
DIMENSIONS = ("requests", "input_tokens", "output_tokens", "tokens")
# A larger limit per minute is ignored.
LARGEST = 10**12
_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What one call uses. `characters` is the length of its prompt, or 0 if estimates are not to be updated by it."""

    input_tokens: float
    output_tokens: float
    requests: float = 1
    characters: int = 0

    def by_dimension(self) -> dict[str, float]:
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "tokens": self.input_tokens + self.output_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One dimension: `limit` ≥ 1 per minute, `remaining` ≥ 0 of it, and `reset` (UTC), when it is full again. None if
    unknown.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """The limits in one answer's headers, by dimension."""

    requests: Limit = Limit()
    input_tokens: Limit = Limit()
    output_tokens: Limit = Limit()
    tokens: Limit = Limit()

    def __bool__(self) -> bool:
        return bool(self.as_dict())

    def as_dict(self) -> dict[str, dict[str, int]]:
        """{dimension: {"limit": per minute, "remaining": of it}} of the dimensions with a limit, for the quota row."""
        limits = {name: getattr(self, name) for name in DIMENSIONS}
        return {
            name: {"limit": limit.limit} | ({} if limit.remaining is None else {"remaining": limit.remaining})
            for name, limit in limits.items()
            if limit.limit is not None
        }


def parse(headers: Mapping[str, str]) -> RateLimits:
    """Parse the `anthropic-ratelimit-*` headers (names in lower case). Unreadable values are None; never raises."""
    limits: dict[str, Limit] = {}
    for name in DIMENSIONS:
        prefix = f"{PREFIX}-{name.replace('_', '-')}"
        reset = None
        with suppress(ValueError, OverflowError):
            time = dt.datetime.fromisoformat(headers.get(f"{prefix}-reset", ""))
            reset = time.astimezone(dt.UTC) if time.tzinfo else None
        limits[name] = Limit(
            limit=_number(headers.get(f"{prefix}-limit"), low=1),
            remaining=_number(headers.get(f"{prefix}-remaining"), low=0),
            reset=reset,
        )
    return RateLimits(**limits)


def _number(text: str | None, *, low: int) -> int | None:
    """A header as a number from `low` to LARGEST; None if it is not one."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    return int(text) if low <= int(text) <= LARGEST else None
