"""A process's own small token bucket for a judge, used while Redis is down."""

import threading
import time
from collections.abc import Mapping

from grading.judging.core.ratelimits import CallCost

# The longest wait, in seconds; for a longer one nothing is reserved.
LONGEST_WAIT = 2.0
# The share of a minute's limit that can go at once; the rest covers estimates that were too low.
BURST = 0.85
# Requests a minute until the first answer has the limits.
FIRST = 3
# Each process's share of the last known limits, as nobody knows how many others there are.
LOCAL_SHARE = 0.25


class LocalBuckets:
    """The level of every limited dimension. Thread-safe."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self._blocked_until = 0.0
        self._levels: dict[str, float] = {}
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def remember(self, limits: Mapping[str, int]) -> None:
        """Set the limits per minute, by dimension."""
        with self._lock:
            for name in limits.keys() - self.limits.keys():
                self._levels.pop(name, None)  # it was a guess
            self.limits.update(limits)

    def block(self, seconds: float) -> None:
        with self._lock:
            self._blocked_until = max(self._blocked_until, time.monotonic() + seconds)

    def reserve(self, cost: CallCost) -> float:
        """Seconds to wait; reserved where that is at most LONGEST_WAIT."""
        with self._lock:
            now, costs = time.monotonic(), cost.by_dimension()
            names = {"requests", *self.limits}
            passed, self._at = now - self._at, now
            grown = {name: self._levels.get(name, self._room(name)) + passed * self._rate(name) for name in names}
            self._levels = {name: min(level, self._room(name)) for name, level in grown.items()}
            waits = [
                (min(costs[name], self._room(name)) - level) / self._rate(name) for name, level in self._levels.items()
            ]
            wait = max(0.0, self._blocked_until - now, *waits)
            if wait <= LONGEST_WAIT:
                self._levels = {
                    name: max(level - costs[name], -self._limit(name)) for name, level in self._levels.items()
                }
        return wait

    def _room(self, name: str) -> float:
        return BURST * self._limit(name)

    def _rate(self, name: str) -> float:
        return self._limit(name) / 60

    def _limit(self, name: str) -> float:
        return LOCAL_SHARE * self.limits[name] if name in self.limits else FIRST
