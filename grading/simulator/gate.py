"""Who is let in: the meters of all keys and models, and counts of what they let through."""

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grading.simulator.counters import Counters
from grading.simulator.limits import Limits, Meter, Refusal

# Told where nothing is enforced: those of a large customer, so that nobody paces himself for nothing.
GENEROUS = Limits(requests=4000, input_tokens=4_000_000, output_tokens=800_000)


@dataclass(slots=True)
class Gate:
    """Enforces `limits` for each key and model. None lets everybody in and tells of generous ones.

    `filled` in [0, 1] is how full the buckets are at first: below 1 somebody else has used the key before.
    """

    limits: Limits | None = None
    filled: float = 1.0
    counters: Counters = field(default_factory=lambda: Counters(time.monotonic()))
    _meters: dict[tuple[str, str], Meter] = field(default_factory=dict)

    def limit(self, limits: Limits | None) -> None:
        """Other limits from now on, with full buckets."""
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
    """Limits as `/_script` names them. Raises ValueError for an unknown name or a number that is not positive."""
    try:
        return None if order is None else Limits(**order)
    except TypeError as error:
        raise ValueError(f"expected requests, input_tokens and output_tokens; {error}") from error
