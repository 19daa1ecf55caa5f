"""What would happen in one run, whatever is chosen: qualities, faults and chances, the same for every regime.

Seed 001's three faults meet in the victim, the best arm. 90 % of its sessions run in worktrees, whose transcript is a
stub; of 35 % the log's slot is overwritten, so that the judge has nothing to read; on a day in ten the judge's quota is
gone once the day's twelfth session is judged. A session has lost every real grade where the first meets one of the
others:

    .90·(1 − .65·(1 − .10·38/50)) = .36

The judge's outage is everybody's; the other arms' transcripts are whole, so their trajectories stand in.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grading.vocabulary import Reason

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DAYS, A_DAY = 60, 50
MEANS = (0.65, 0.55, 0.52, 0.50, 0.48, 0.45, 0.42, 0.40)
ARMS = tuple(f"arm-{i}" for i in range(len(MEANS)))
VICTIM = 0
# A session's quality is Beta(6μ, 6(1−μ)): a spread of .18 to .19.
CONCENTRATION = 6
JUDGE_NOISE, TRAJECTORY_NOISE = 0.07, 0.15
WORKTREE, RACE, OUTAGE = 0.90, 0.35, 0.10
JUDGED_BEFORE_OUTAGE = 12
LOSS = WORKTREE * (1 - (1 - RACE) * (1 - OUTAGE * (1 - JUDGED_BEFORE_OUTAGE / A_DAY)))
# Of sessions that left nothing but a journal, so many made a pull request that the caller saw: a rule flags them.
CONTRADICTED = 0.8
# The share of all sessions that is drawn for people.
SLICE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One run's potential outcomes: arrays by day and slot; `quality` in [0, 1] by arm too. `human` is N(0, 1)."""

    seed: int
    quality: Floats
    judge_noise: Floats
    trajectory_noise: Floats
    worktree: Flags
    race: Flags
    outage: Flags
    contradicted: Flags
    in_slice: Flags
    human: Floats

    @property
    def days(self) -> int:
        return len(self.quality)

    def facts(self, day: int, slot: int, arm: int) -> "Facts":
        """What is so about the session that this arm would be at this time."""
        at, quality = (day, slot), float(self.quality[day, slot, arm])
        outage, overwritten = bool(self.outage[at]), arm == VICTIM and bool(self.race[at])
        return Facts(
            day=day,
            arm=arm,
            quality=quality,
            judge=_clipped(quality + float(self.judge_noise[at])),
            trajectory=_clipped(quality + float(self.trajectory_noise[at])),
            is_stub=arm == VICTIM and bool(self.worktree[at]),
            fault=Reason.LOG_OVERWRITTEN if overwritten else Reason.QUOTA_EXHAUSTED if outage else Reason.NONE,
            contradicted=bool(self.contradicted[at]),
            in_slice=bool(self.in_slice[at]),
            human=float(self.human[at]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One session: its true `quality`, what judge and trajectory make of it where they can, and the `fault` that keeps
    the judge away at first. `human` is how a person misses the truth, as N(0, 1).
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


def world(seed: int, days: int = DAYS) -> World:
    """The world of a seed; the first days of a longer one are not those of a shorter."""
    dice = np.random.default_rng(seed)
    shape, means = (days, A_DAY), np.array(MEANS)
    return World(
        seed=seed,
        quality=dice.beta(CONCENTRATION * means, CONCENTRATION * (1 - means), (*shape, len(MEANS))),
        judge_noise=dice.normal(0, JUDGE_NOISE, shape),
        trajectory_noise=dice.normal(0, TRAJECTORY_NOISE, shape),
        worktree=dice.random(shape) < WORKTREE,
        race=dice.random(shape) < RACE,
        outage=(dice.random((days, 1)) < OUTAGE) & (np.arange(A_DAY) >= JUDGED_BEFORE_OUTAGE),
        contradicted=dice.random(shape) < CONTRADICTED,
        in_slice=dice.random(shape) < SLICE,
        human=dice.normal(0, 1, shape),
    )


def _clipped(value: float) -> float:
    return min(max(value, 0.0), 1.0)
