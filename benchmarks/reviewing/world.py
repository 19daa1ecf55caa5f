"""What would happen in one run, the same for every order of reviews: eight arms, of which one is graded wrongly.

In the wronged world the best arm's sessions lose their verdict with a chance, and the journal's grade stands in at face
value; a rule flags four in five of them. In the mirror world a middling arm's judge is too kind to every one of its
sessions, so that it leads, and nothing flags that.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.simulation.sessions import JOURNAL_VALUE
from benchmarks.simulation.world import CONCENTRATION, CONTRADICTED, JUDGE_NOISE, MEANS, Flags, Floats
from grading.vocabulary import Source

A_DAY = 40
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEST, LEADER = 0, 5
INFLATED = 0.3
# What a good reviewer misses the truth by.
PERSON_NOISE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong: `lost` is the chance that the best arm's verdict is, `inflated` how much too kind the judge is
    to the leader.
    """

    name: str
    lost: float = 0.0
    inflated: float = 0.0


WRONGED = Fault(name="best arm loses 36 %", lost=0.36)
WORSE = Fault(name="best arm loses 60 %", lost=0.6)
MIRROR = Fault(name="a weak arm is inflated", inflated=INFLATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Potential outcomes by day and slot; `quality` in [0, 1] by arm too; `draws` in [0, 1) choose the arms."""

    seed: int
    quality: Floats
    judge_noise: Floats
    person_noise: Floats
    lost: Floats
    contradicted: Flags
    draws: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One session as graded by machines: by whom and what, whether a rule flags it, and what a person would say."""

    name: str
    day: int
    arm: int
    source: Source
    value: float
    flagged: bool
    human: float


def world(seed: int, days: int) -> World:
    """The world of a seed."""
    dice, means, shape = np.random.default_rng(seed), np.array(MEANS), (days, A_DAY)
    return World(
        seed=seed,
        quality=dice.beta(CONCENTRATION * means, CONCENTRATION * (1 - means), (*shape, len(MEANS))),
        judge_noise=dice.normal(0, JUDGE_NOISE, shape),
        person_noise=dice.normal(0, PERSON_NOISE, shape),
        lost=dice.random(shape),
        contradicted=dice.random(shape) < CONTRADICTED,
        draws=dice.random(shape),
    )


def outcome(world: World, fault: Fault, day: int, slot: int, arm: int) -> Outcome:
    """What becomes of the session that this arm would be at this time."""
    at, quality = (day, slot), float(world.quality[day, slot, arm])
    is_lost = arm == BEST and bool(world.lost[at] < fault.lost)
    kind = fault.inflated if arm == LEADER else 0.0
    return Outcome(
        name=f"{world.seed}/{day}/{slot}",
        day=day,
        arm=arm,
        source=Source.JOURNAL if is_lost else Source.JUDGE,
        value=JOURNAL_VALUE if is_lost else _clipped(quality + kind + float(world.judge_noise[at])),
        flagged=is_lost and bool(world.contradicted[at]),
        human=_clipped(quality + float(world.person_noise[at])),
    )


def at(day: int) -> datetime:
    """Noon of a day of the run."""
    return START + timedelta(days=day)


def _clipped(value: float) -> float:
    return min(max(value, 0.0), 1.0)
