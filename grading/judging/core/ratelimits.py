"""What a call costs in requests and tokens, and the provider's rate limits in the headers of its answer."""

import re
from collections.abc import Mapping
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


# The limits in one answer's headers: {dimension: {"limit": ≥ 1 per minute, "remaining": ≥ 0 of it, if known}}.
RateLimits = Mapping[str, Mapping[str, int]]


def parse(headers: Mapping[str, str]) -> RateLimits:
    """Parse the `anthropic-ratelimit-*` headers (names in lower case). Unreadable values are left out; never raises."""
    limits: dict[str, dict[str, int]] = {}
    for name in DIMENSIONS:
        prefix = f"{PREFIX}-{name.replace('_', '-')}"
        limit = _number(headers.get(f"{prefix}-limit"), low=1)
        if limit is not None:
            limits[name] = {"limit": limit}
            remaining = _number(headers.get(f"{prefix}-remaining"), low=0)
            if remaining is not None:
                limits[name]["remaining"] = remaining
    return limits


def _number(text: str | None, *, low: int) -> int | None:
    """A header as a number from `low` to LARGEST; None if it is not one."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    return int(text) if low <= int(text) <= LARGEST else None
