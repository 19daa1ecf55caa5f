"""Who stands still, told from counters that grow, by the watcher's own clock alone. Pure.

Clocks of two machines differ, and one machine's may jump; so no time that another program wrote is compared with. A
watcher that was away itself (a laptop's lid, a suspended machine) or whose clock was set knows nothing at first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# In heartbeats: a part stands still if its counter has not grown for SILENT. After a pause of the watcher of more than
# GAP, GRACE pass before it judges any part.
SILENT, GRACE, GAP = 4, 12, 2


class Component(StrEnum):
    """What has a heartbeat."""

    WEB = "web"
    WORKER = "worker"
    SCHEDULER = "scheduler"
    BROKER = "broker"


class Life(StrEnum):
    """`UNKNOWN` until the watcher has looked for long enough."""

    ALIVE = "alive"
    SILENT = "silent"
    UNKNOWN = "unknown"


@dataclass(slots=True, kw_only=True)
class Liveness:
    """What one process has seen of the counters. `every`: seconds between two heartbeats of a part."""

    every: float
    _counts: dict[str, int] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    _grew: set[str] = field(default_factory=set)
    _looked: float | None = None
    _offset: float = 0.0
    _settles: float = 0.0

    def look(self, counts: Mapping[str, int], now: float, wall: float) -> None:
        """Take in the counters as they are. `now`: monotonic seconds; `wall`: seconds of the clock that people read.

        What could not be read is not looked at: call it for what was.
        """
        offset = wall - now
        is_late = self._looked is None or now - self._looked > GAP * self.every
        if is_late or abs(offset - self._offset) > GAP * self.every:
            self._settles = now + GRACE * self.every
            self._since, self._grew = {}, set()
        self._looked, self._offset = now, offset
        for part in Component:
            count = counts.get(part, 0)
            if part not in self._since:
                self._since[part] = now
            elif count != self._counts[part]:
                self._since[part] = now
                self._grew.add(part)
            self._counts[part] = count

    @property
    def is_settled(self) -> bool:
        """Whether it has looked, without a gap, for long enough to judge."""
        return self._looked is not None and self._looked >= self._settles

    def life(self, part: Component) -> Life:
        """How a part does, as of the last look. Alive: its counter grew of late, before this watcher's eyes."""
        if self._looked is None:
            return Life.UNKNOWN
        quiet = self._looked - self._since[part]
        if part in self._grew and quiet <= SILENT / 2 * self.every:
            return Life.ALIVE
        return Life.SILENT if self.is_settled and quiet >= SILENT * self.every else Life.UNKNOWN
