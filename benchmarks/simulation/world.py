"""What would happen in one run, whatever is chosen: qualities, faults and chances, the same for every regime.

Three faults meet in the victim, the best arm. 90 % of its sessions run in worktrees, whose transcript is a stub. The
log of 35 % is overwritten, so the judge has nothing to read. On a day in ten, the judge's quota is gone once the day's
twelfth session is judged. A session has lost every real grade if the first meets one of the others:

    .90·(1 − .65·(1 − .10·38/50)) = .36

The judge's outage is everybody's, but the other arms' transcripts are whole, so their trajectories stand in.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grading.vocabulary import Reason

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DAYS, SESSIONS_PER_DAY = 60, 50
MEANS = (0.65, 0.55, 0.52, 0.50, 0.48, 0.45, 0.42, 0.40)
ARMS = tuple(f"arm-{i}" for i in range(len(MEANS)))
VICTIM = 0
# A session's quality is Beta(6μ, 6(1−μ)): a standard deviation of .18 to .19.
CONCENTRATION = 6
JUDGE_NOISE, TRAJECTORY_NOISE = 0.07, 0.15
WORKTREE, OVERWRITTEN, OUTAGE = 0.90, 0.35, 0.10
JUDGED_BEFORE_OUTAGE = 12
LOSS = WORKTREE * (1 - (1 - OVERWRITTEN) * (1 - OUTAGE * (1 - JUDGED_BEFORE_OUTAGE / SESSIONS_PER_DAY)))
# The share of sessions that left only a journal and made a pull request that the caller saw. A rule flags them.
CONTRADICTED = 0.8
# The share of all sessions that is drawn for people.
SLICE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One run's potential outcomes: arrays by day and slot; `quality` in [0, 1] by arm too. `human` is N(0, 1)."""

    quality: Floats
    judge_noise: Floats
    trajectory_noise: Floats
    worktree: Flags
    overwritten: Flags
    outage: Flags
    contradicted: Flags
    in_slice: Flags
    human: Floats

    @property
    def days(self) -> int:
        return len(self.quality)

    def facts(self, day: int, slot: int, arm: int) -> "Facts":
        """The session that this arm would be at this time."""
        quality = float(self.quality[day, slot, arm])
        is_victim = arm == VICTIM
        fault = Reason.NONE
        if is_victim and self.overwritten[day, slot]:
            fault = Reason.LOG_OVERWRITTEN
        elif self.outage[day, slot]:
            fault = Reason.QUOTA_EXHAUSTED
        return Facts(
            day=day,
            arm=arm,
            quality=quality,
            judge=clip(quality + float(self.judge_noise[day, slot])),
            trajectory=clip(quality + float(self.trajectory_noise[day, slot])),
            is_stub=is_victim and bool(self.worktree[day, slot]),
            fault=fault,
            contradicted=bool(self.contradicted[day, slot]),
            in_slice=bool(self.in_slice[day, slot]),
            human=float(self.human[day, slot]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One session: its true `quality`, what judge and trajectory would grade, and the `fault` that prevents a verdict
    at first. `human` is a person's error, as N(0, 1).
    """

    day: int
    arm: int
    quality: float
    judge: float
    trajectory: float
    is_stub: bool
    fault: Reason
    contradicted: bool
    in_slice: bool
    human: float


def make_world(seed: int, days: int = DAYS) -> World:
    """The world of a seed. The first days of a longer one differ from those of a shorter one."""
    dice = np.random.default_rng(seed)
    shape, means = (days, SESSIONS_PER_DAY), np.array(MEANS)
    return World(
        quality=dice.beta(CONCENTRATION * means, CONCENTRATION * (1 - means), (*shape, len(MEANS))),
        judge_noise=dice.normal(0, JUDGE_NOISE, shape),
        trajectory_noise=dice.normal(0, TRAJECTORY_NOISE, shape),
        worktree=dice.random(shape) < WORKTREE,
        overwritten=dice.random(shape) < OVERWRITTEN,
        outage=(dice.random((days, 1)) < OUTAGE) & (np.arange(SESSIONS_PER_DAY) >= JUDGED_BEFORE_OUTAGE),
        contradicted=dice.random(shape) < CONTRADICTED,
        in_slice=dice.random(shape) < SLICE,
        human=dice.normal(0, 1, shape),
    )


def clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)
