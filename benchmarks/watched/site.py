"""The simulated site, day by day, with rows as the rules' queries would give them."""

import datetime as dt
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from grading.monitoring import pairs, ungraded
from grading.monitoring.collapse import MachineReward
from grading.monitoring.flag_rule import WINDOW, Flagged
from grading.monitoring.incomplete import FIELDS
from grading.monitoring.pairs import SessionVerdict
from grading.monitoring.streaks import ObservedSession, SessionEnding
from grading.monitoring.ungraded import Asked
from grading.reward.trajectory import VERSION
from grading.signals import Signals

ARMS, HARNESSES, AGENTS, A_DAY = 8, 2, 2, 50
JUDGED, INDEPENDENT, GIVEN_UP, REPEATED, LACKING, DIED, ODD = 0.85, 0.5, 0.001, 0.001, 0.015, 0.1, 0.001
PARTIAL, PARTIAL_AT_MOST, STEP = 1 / 6, 0.6, 0.0125
OVERLOADED = 12 / 365
FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
# Of the better half's work, where the mix shifts.
MOVED = 0.8


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session of the simulated site. `mean` is its verdict before it is held at what the work came to, `trajectory`
    what its log says, both in [0, 1] and None where there is none; `waits` are the days until its verdict, None where
    the judge was given up.
    """

    key: int
    ended_at: dt.datetime
    arm: str
    harness: str
    agent: str
    ending: SessionEnding
    mean: float | None
    is_partial: bool
    trajectory: float | None
    log: Signals
    has_work: bool
    waits: float | None
    is_repeated: bool
    lacks: str

    @property
    def verdict(self) -> float | None:
        return self.mean if self.mean is None or not self.is_partial else min(self.mean, PARTIAL_AT_MOST)

    @cached_property
    def judged(self) -> SessionVerdict | None:
        if self.verdict is None:
            return None
        seen = self.trajectory
        return SessionVerdict(
            key=self.key,
            ended_at=self.ended_at,
            harness=self.harness,
            model="a model",
            category=self.arm,
            verdict=self.verdict,
            judge="a judge",
            trajectory=seen,
            version=VERSION,
        )

    @cached_property
    def reward(self) -> MachineReward | None:
        value = self.trajectory if self.verdict is None else self.verdict
        return None if value is None else MachineReward(key=self.key, arm=self.arm, ended_at=self.ended_at, value=value)

    @cached_property
    def seen(self) -> ObservedSession:
        return ObservedSession(key=self.key, arm=self.arm, ending=self.ending)

    def is_ungraded(self, now: dt.datetime) -> bool:
        """Whether A1 flags it now: a fallback accounts for its work where there is one."""
        if not self.has_work or (self.waits is not None and now >= self.ended_at + self.waits * DAY):
            return False
        asked = Asked(
            at=self.ended_at, is_open=self.waits is not None, is_backlog=False, is_history=False, is_held_up=False
        )
        return ungraded.speaks(asked, now, is_accounted=self.trajectory is not None, fails=lambda: False)


Fault = Callable[[Session, np.random.Generator], Session]


@dataclass(slots=True)
class Site:
    """Sessions day by day; from day `since` on each goes through a fault, or the mix of the work shifts."""

    seed: int
    fault: Fault | None = None
    since: int = 0
    mix: bool = False
    days: list[list[Session]] = field(default_factory=list)
    flagged: dict[str, dict[int, Session]] = field(default_factory=lambda: {"A1": {}, "A4": {}, "A5": {}})
    chance: np.random.Generator = field(init=False)
    levels: np.ndarray = field(init=False)
    missing: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)
        self.levels = np.sort(self.chance.uniform(0.35, 0.75, ARMS))
        self.missing = self.chance.uniform(0.1, 0.3, ARMS)

    @property
    def now(self) -> dt.datetime:
        return FIRST + len(self.days) * DAY

    def live(self) -> None:
        """A day passes, and what came of it is flagged."""
        day = len(self.days)
        busy = self.chance.random() < OVERLOADED
        self.days.append([self._session(day, place, busy=busy) for place in range(A_DAY)])
        for each in self.last(7):
            if each.is_ungraded(self.now):
                self.flagged["A1"][each.key] = each
        self.flagged["A4"] |= {each.key: each for each in self.days[-1] if each.log.is_blind}
        self.flagged["A5"] |= {each.key: each for each in self.days[-1] if each.is_repeated}

    def last(self, days: int) -> list[Session]:
        return [each for day in self.days[-days:] for each in day]

    def judged(self) -> list[SessionVerdict]:
        """As `pairs.judged` gives them: since the first of a month."""
        days = (self.now - pairs.since(self.now - dt.timedelta(seconds=1))).days
        return [each.judged for each in self.last(days) if each.judged is not None]

    def flags(self, rule: str) -> list[Flagged]:
        """As the query for the flags of the window gives them; all are open."""
        recent = [each for each in self.flagged[rule].values() if each.ended_at > self.now - WINDOW]
        counts = Counter((each.agent, each.harness) for each in recent)
        return [Flagged(rule=rule, agent=a, harness=h, n=n, open=n, latest=self.now) for (a, h), n in counts.items()]

    def _session(self, day: int, place: int, *, busy: bool) -> Session:
        draw = self.chance
        arm = int(draw.integers(ARMS))
        if self.mix and day >= self.since and arm >= ARMS // 2 and draw.random() < MOVED:
            arm %= ARMS // 4
        lost = draw.random() < self.missing[arm]
        ending = (
            (SessionEnding.INFRASTRUCTURE if draw.random() < DIED else SessionEnding.UNSCORED)
            if lost
            else SessionEnding.GRADED
        )
        quality = float(np.clip(draw.normal(self.levels[arm], 0.18), 0, 1))
        mean = round(float(np.clip(quality + draw.normal(0, 0.08), 0, 1)) / STEP) * STEP
        trajectory = round(float(np.clip(0.15 + 0.5 * quality + draw.normal(0, 0.12), 0.02, 1)), 6)
        session = Session(
            key=day * A_DAY + place,
            ended_at=FIRST + (day + place / A_DAY) * DAY,
            arm=f"arm {arm}",
            harness=f"harness {draw.integers(HARNESSES)}",
            agent=f"agent {draw.integers(AGENTS)}",
            ending=ending,
            mean=mean if not lost and draw.random() < JUDGED else None,
            is_partial=draw.random() < PARTIAL,
            trajectory=None if lost else trajectory,
            log=log_of(2 + int(draw.lognormal(3, 0.8)), int(draw.random() < ODD)),
            has_work=draw.random() < INDEPENDENT,
            waits=None if draw.random() < GIVEN_UP else draw.uniform(0, 1) if busy else draw.lognormal(-5, 1),
            is_repeated=draw.random() < REPEATED,
            lacks=str(draw.choice(list(FIELDS))) if draw.random() < LACKING else "",
        )
        return session if self.fault is None or day < self.since else self.fault(session, draw)


def log_of(calls: int, unreadable: int) -> Signals:
    """What is read of a log with so many calls."""
    known = calls - unreadable
    return Signals(tool_calls={"Bash": calls}, unreadable_calls=unreadable, results=known, known_results=known)
