"""A process's own small token bucket for a judge, used while Redis is down."""

import threading
import time
from collections.abc import Mapping

from grading.judging.core.ratelimits import CallCost

# The longest wait for which a call is reserved, in seconds.
LONGEST_WAIT = 2.0
# The share of a minute's limit that can be used at once; the rest covers estimates that were too low.
BURST = 0.85
# The requests per minute that are assumed until an answer tells the limits.
FIRST_LIMIT = 3
# Each process's share of the last known limits. It cannot know how many others there are.
LOCAL_SHARE = 0.25


class LocalBuckets:
    """The level of every limited dimension. Thread-safe."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self._blocked_until = 0.0
        self._levels: dict[str, float] = {}
        self._refilled_at = time.monotonic()
        self._lock = threading.Lock()

    def remember(self, limits: Mapping[str, int]) -> None:
        """Set the limits per minute, by dimension."""
        with self._lock:
            for name in limits.keys() - self.limits.keys():
                self._levels.pop(name, None)  # without a limit, its level was a guess
            self.limits.update(limits)

    def block(self, seconds: float) -> None:
        """Reserve nothing for this long; a longer block stays."""
        with self._lock:
            self._blocked_until = max(self._blocked_until, time.monotonic() + seconds)

    def reserve(self, cost: CallCost) -> float:
        """Reserve a call if it may start within LONGEST_WAIT. Returns the seconds until it may start."""
        costs = cost.by_dimension()
        with self._lock:
            now = time.monotonic()
            elapsed = now - self._refilled_at
            self._refilled_at = now
            wait = max(0.0, self._blocked_until - now)
            levels: dict[str, float] = {}
            for name in {"requests", *self.limits}:
                rate = self._limit(name) / 60
                capacity = BURST * self._limit(name)
                levels[name] = min(self._levels.get(name, capacity) + elapsed * rate, capacity)
                # A cost above the capacity goes when the bucket is full.
                wait = max(wait, (min(costs[name], capacity) - levels[name]) / rate)
            if wait <= LONGEST_WAIT:
                levels = {name: max(level - costs[name], -self._limit(name)) for name, level in levels.items()}
            self._levels = levels
        return wait

    def _limit(self, name: str) -> float:
        """The process's limit per minute in a dimension."""
        return LOCAL_SHARE * self.limits[name] if name in self.limits else FIRST_LIMIT
