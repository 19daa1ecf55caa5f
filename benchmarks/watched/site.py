"""A simulated site, day by day, with rows as the rules' queries would give them."""

import datetime as dt
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from grading.models import JudgeJob, Session
from grading.models.judging import JobState
from grading.monitoring import pairs, sessions
from grading.monitoring.flag_rule import WINDOW, Flagged
from grading.monitoring.operation import FIELDS
from grading.monitoring.pairs import SessionVerdict
from grading.monitoring.rewards import MachineReward
from grading.monitoring.streaks import ObservedSession, SessionEnding
from grading.reward.trajectory import VERSION
from grading.signals import Signals

ARMS, HARNESSES, AGENTS, SESSIONS_PER_DAY = 8, 2, 2, 50
# Shares of sessions.
JUDGED, INDEPENDENT, GIVEN_UP, REPEATED, LACKING, DIED, UNREADABLE = 0.85, 0.5, 0.001, 0.001, 0.015, 0.1, 0.001
PARTIAL, MAX_PARTIAL_VERDICT, STEP = 1 / 6, 0.6, 0.0125
# Of days.
OVERLOADED = 12 / 365
FIRST_DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
# The share of the better half's work that moves when the mix shifts.
MOVED = 0.8


@dataclass(frozen=True, kw_only=True)
class WatchedSession:
    """A session of the simulated site. `mean` is its verdict before the limit of partial work, `trajectory` the grade
    of its log; both are in [0, 1] or None. `waits`: days until its verdict, None if it was given up.
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
        return self.mean if self.mean is None or not self.is_partial else min(self.mean, MAX_PARTIAL_VERDICT)

    @cached_property
    def judged(self) -> SessionVerdict | None:
        if self.verdict is None:
            return None
        return SessionVerdict(
            key=self.key,
            ended_at=self.ended_at,
            harness=self.harness,
            model="a model",
            category=self.arm,
            verdict=self.verdict,
            judge="a judge",
            trajectory=self.trajectory,
            version=VERSION,
        )

    @cached_property
    def reward(self) -> MachineReward | None:
        value = self.trajectory if self.verdict is None else self.verdict
        return None if value is None else MachineReward(key=self.key, arm=self.arm, ended_at=self.ended_at, value=value)

    @cached_property
    def observed(self) -> ObservedSession:
        return ObservedSession(key=self.key, arm=self.arm, ending=self.ending)

    def is_ungraded(self, now: dt.datetime) -> bool:
        """Whether A1 flags it now. A fallback, if there is one, accounts for its work."""
        if not self.has_work or (self.waits is not None and now >= self.ended_at + self.waits * DAY):
            return False
        job = JudgeJob(
            created_at=self.ended_at,
            state=JobState.ABANDONED if self.waits is None else JobState.QUEUED,
            session=Session(ended_at=self.ended_at),
        )
        return sessions.lacks_verdict(job, now, is_accounted=self.trajectory is not None, judge_fails=lambda: False)


Fault = Callable[[WatchedSession, np.random.Generator], WatchedSession]


@dataclass(slots=True)
class WatchedSite:
    """Sessions day by day. From day `first_day` on each has a fault, or the mix of the work shifts."""

    seed: int
    fault: Fault | None = None
    first_day: int = 0
    shifts_mix: bool = False
    days: list[list[WatchedSession]] = field(default_factory=list)
    flagged: dict[str, dict[int, WatchedSession]] = field(default_factory=lambda: {"A1": {}, "A4": {}, "A5": {}})
    dice: np.random.Generator = field(init=False)
    levels: np.ndarray = field(init=False)
    missing: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.dice = np.random.default_rng(self.seed)
        self.levels = np.sort(self.dice.uniform(0.35, 0.75, ARMS))
        self.missing = self.dice.uniform(0.1, 0.3, ARMS)

    @property
    def now(self) -> dt.datetime:
        return FIRST_DAY + len(self.days) * DAY

    def live_a_day(self) -> None:
        """Add a day's sessions, and flag those that the site would flag."""
        day = len(self.days)
        busy = self.dice.random() < OVERLOADED
        self.days.append([self._session(day, place, busy=busy) for place in range(SESSIONS_PER_DAY)])
        for each in self.sessions_of_last(7):
            if each.is_ungraded(self.now):
                self.flagged["A1"][each.key] = each
        self.flagged["A4"] |= {each.key: each for each in self.days[-1] if each.log.is_blind}
        self.flagged["A5"] |= {each.key: each for each in self.days[-1] if each.is_repeated}

    def sessions_of_last(self, days: int) -> list[WatchedSession]:
        return [each for day in self.days[-days:] for each in day]

    def judged(self) -> list[SessionVerdict]:
        """As `pairs.load_verdicts` gives them: from the first of a month on."""
        days = (self.now - pairs.first_day(self.now - dt.timedelta(seconds=1))).days
        return [each.judged for each in self.sessions_of_last(days) if each.judged is not None]

    def flags(self, rule: str) -> list[Flagged]:
        """As the query for the flags of the window gives them. All are open."""
        recent = [each for each in self.flagged[rule].values() if each.ended_at > self.now - WINDOW]
        counts = Counter((each.agent, each.harness) for each in recent)
        return [Flagged(agent=a, harness=h, n=n, open=n, latest=self.now) for (a, h), n in counts.items()]

    def _session(self, day: int, place: int, *, busy: bool) -> WatchedSession:
        dice = self.dice
        arm = int(dice.integers(ARMS))
        if self.shifts_mix and day >= self.first_day and arm >= ARMS // 2 and dice.random() < MOVED:
            arm %= ARMS // 4
        is_lost = dice.random() < self.missing[arm]
        ending = SessionEnding.GRADED
        if is_lost:
            ending = SessionEnding.INFRASTRUCTURE if dice.random() < DIED else SessionEnding.UNSCORED
        quality = float(np.clip(dice.normal(self.levels[arm], 0.18), 0, 1))
        mean = round(float(np.clip(quality + dice.normal(0, 0.08), 0, 1)) / STEP) * STEP
        trajectory = round(float(np.clip(0.15 + 0.5 * quality + dice.normal(0, 0.12), 0.02, 1)), 6)
        session = WatchedSession(
            key=day * SESSIONS_PER_DAY + place,
            ended_at=FIRST_DAY + (day + place / SESSIONS_PER_DAY) * DAY,
            arm=f"arm {arm}",
            harness=f"harness {dice.integers(HARNESSES)}",
            agent=f"agent {dice.integers(AGENTS)}",
            ending=ending,
            mean=mean if not is_lost and dice.random() < JUDGED else None,
            is_partial=dice.random() < PARTIAL,
            trajectory=None if is_lost else trajectory,
            log=log_of(2 + int(dice.lognormal(3, 0.8)), int(dice.random() < UNREADABLE)),
            has_work=dice.random() < INDEPENDENT,
            waits=None if dice.random() < GIVEN_UP else dice.uniform(0, 1) if busy else dice.lognormal(-5, 1),
            is_repeated=dice.random() < REPEATED,
            lacks=str(dice.choice(list(FIELDS))) if dice.random() < LACKING else "",
        )
        return session if self.fault is None or day < self.first_day else self.fault(session, dice)


def log_of(calls: int, unreadable: int) -> Signals:
    """The signals of a log with so many calls."""
    readable = calls - unreadable
    return Signals(tool_calls={"Bash": calls}, unreadable_calls=unreadable, results=readable, known_results=readable)
