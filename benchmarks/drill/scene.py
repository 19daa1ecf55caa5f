"""One phase as it is played: scripts that do something, then yield the seconds until they want to go on."""

import datetime as dt
import heapq
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from django.utils import timezone

from benchmarks.drill.listener import Listener
from benchmarks.drill.site import Site
from benchmarks.drill.stream import Stream
from grading.models import JudgeJob

Script = Iterator[float]
# Open jobs that keep two workers busy.
BUSY_WITH = 12


@dataclass(slots=True, kw_only=True)
class Scene:
    """One phase while it is played. `promised` are the jobs that waited when the judge came back, at `back_at`;
    `broken` what a script saw itself that was promised not to be.

    `by_hand` where somebody is there who has what was put aside tried again. From `fault_at` on people may notice the
    fault: on a page, where it was at `shown_at`, and by an alarm of `rule`.
    """

    site: Site
    stream: Stream
    rng: Random
    quick: bool
    listener: Listener
    rule: str = ""
    fault_at: dt.datetime | None = None
    shown_at: dt.datetime | None = None
    promised: list[int] = field(default_factory=list)
    back_at: dt.datetime | None = None
    kills: int = 0
    by_hand: bool = False
    kills_left: int = 0
    remarks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def told_at(self) -> dt.datetime | None:
        """When people heard of it outside the site."""
        return None if self.fault_at is None else self.listener.first(self.rule, self.fault_at)

    def fault(self, at: dt.datetime | None = None) -> None:
        """The fault can be noticed from now on, or has been since then."""
        self.fault_at = at or timezone.now()

    def need(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition
        """A promise of the phase's own."""
        if not holds:
            self.broken.append(otherwise)

    def pause(self, seconds: float) -> float:
        """How long a fault of so many seconds lasts here."""
        return seconds / 2 if self.quick else seconds


def play(scripts: list[Script], site: Site) -> None:
    """Run scripts side by side, in one thread, until all have ended. What fell by itself is started again."""
    count = itertools.count()
    waiting = [(time.monotonic(), next(count), script) for script in scripts]
    while waiting:
        due, _number, script = heapq.heappop(waiting)
        time.sleep(max(0.0, due - time.monotonic()))
        site.revive()
        pause = next(script, None)
        if pause is not None:
            heapq.heappush(waiting, (time.monotonic() + pause, next(count), script))


# --- what agents do --------------------------------------------------------------------------------------------------


def sessions(scene: Scene, count: int, every: float) -> Script:
    """A stream of sessions, one in two of which ended long ago: backlog."""
    for _ in range(count):
        scene.stream.send(minutes_ago=scene.rng.choice([1, 90]))
        yield every


def busy(scene: Scene) -> Script:
    """As many sessions as keep the workers busy until the kills are over."""
    while scene.kills_left:
        if JudgeJob.objects.open().count() < BUSY_WITH:
            scene.stream.send()
        yield 0.05
