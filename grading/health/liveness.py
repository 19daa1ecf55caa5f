"""Which programs have stopped, by counters that should grow and the observer's own clock. Pure.

The clocks of two machines differ, and a clock may jump, so times written by other programs are not compared. After a
pause of the observer (a suspended machine) or a jump of its clock, the state of the others is unknown at first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

# In heartbeats: a part is silent if its counter has not grown for SILENT. After a pause of the observer of more than
# GAP, it waits for GRACE before it calls any part silent.
SILENT, GRACE, GAP = 4, 12, 2


class Component(StrEnum):
    """A part of the site that has a heartbeat."""

    WEB = "web"
    WORKER = "worker"
    SCHEDULER = "scheduler"
    BROKER = "broker"


class Life(StrEnum):
    """`UNKNOWN` until the observer has watched for long enough."""

    ALIVE = "alive"
    SILENT = "silent"
    UNKNOWN = "unknown"


@dataclass(slots=True, kw_only=True)
class Liveness:
    """One process's observations of the counters. `every`: seconds between two heartbeats of a part."""

    every: float
    # The parts of the site and, if one runs on several hosts, each host's, as `part@host`.
    parts: Sequence[str] = tuple(Component)
    # By part: the last counter, since when it is the same, and whether it ever grew.
    _counts: dict[str, int] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    _grew: set[str] = field(default_factory=set)
    _observed_at: float | None = None
    _offset: float = 0.0
    _settles_at: float = 0.0

    def observe(self, counts: Mapping[str, int], now: float, wall: float) -> None:
        """Record the counters after they were read. `now`: monotonic seconds; `wall`: seconds of the system's clock."""
        offset = wall - now
        is_late = self._observed_at is None or now - self._observed_at > GAP * self.every
        clock_jumped = abs(offset - self._offset) > GAP * self.every
        if is_late or clock_jumped:
            self._settles_at = now + GRACE * self.every
            self._since = {}
            self._grew = set()
        self._observed_at = now
        self._offset = offset
        self.parts = [*Component, *(part for part in counts if part not in set(Component))]
        for part in self.parts:
            count = counts.get(part, 0)
            if part not in self._since:
                self._since[part] = now
            elif count != self._counts[part]:
                self._since[part] = now
                self._grew.add(part)
            self._counts[part] = count

    @property
    def is_settled(self) -> bool:
        """Whether it has observed for long enough without a gap."""
        return self._observed_at is not None and self._observed_at >= self._settles_at

    def life(self, part: str) -> Life:
        """The state of a part at the last observation. It is alive if its counter has grown lately.

        The first reading of a counter doesn't count as growth.
        """
        if self._observed_at is None:
            return Life.UNKNOWN
        unchanged_for = self._observed_at - self._since[part]
        if part in self._grew and unchanged_for <= SILENT / 2 * self.every:
            return Life.ALIVE
        return Life.SILENT if self.is_settled and unchanged_for >= SILENT * self.every else Life.UNKNOWN
