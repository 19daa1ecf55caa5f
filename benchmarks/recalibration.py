"""What a fault in the grading costs the bandit, and how much of it ten reviews a week win back.

Eight arms, fifty sessions a day for sixty days; the judge is gone for 36 % of the best arm's sessions. Regret is what
the chosen arms' true means fall short of the best one's; the oracle is the same bandit where no grade is lost. All run
on the bandit's own core (fold, propensities, rectifier, fit), on the same sessions and the same draws.

    python benchmarks/recalibration.py [--quick]
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.posterior import Policy, fold
from bandit.core.propensity import propensities
from bandit.core.recalibration import Pair, fit
from bandit.core.table import MICRO, Row

START = date(2026, 1, 1)
DAYS, A_DAY = 60, 50
MEANS = (0.70, 0.62, 0.58, 0.54, 0.50, 0.45, 0.40, 0.35)
ARMS = tuple(f"arm-{i}" for i in range(len(MEANS)))
BEST = 0
# A session's true grade is Beta(8μ, 8(1−μ)): a spread of .15 to .17.
CONCENTRATION = 8
LOST, JOURNAL, FLOOR = 0.36, 0.32, 0.1
# Of the sessions whose grade was lost, so many left a pull request: rule A1 flags them.
CONTRADICTED = 0.8
SLICE = 0.2
REJUDGED_AFTER = 3
WEEK = 7
JOURNAL_WEIGHT = 0.3
EXACT = {"judge": 1.0, "human": 1.0}
# What a person misses the truth by: a good review reads the evidence; a careless one starts from the number shown,
# goes three tenths of the way, and is off by as much as a guess.
GOOD, CARELESS, ANCHOR = 0.05, 0.25, 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What would happen in one run, whatever is chosen: arrays by day, slot and, for `grades`, arm."""

    grades: np.ndarray
    draws: np.ndarray
    lost: np.ndarray
    contradicted: np.ndarray
    in_slice: np.ndarray
    noise: np.ndarray


@dataclass(slots=True, kw_only=True)
class Session:
    """One session: its arm, its true grade, and the reward that it has now (None: none)."""

    arm: int
    day: int
    true: float
    in_slice: bool
    noise: float
    lost: bool = False
    stratum: str = ""
    source: str = "judge"
    value: float | None = None
    reviewed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """How a lost grade is dealt with, and who reviews what."""

    name: str
    lost: tuple[str, float] | None = ("journal", JOURNAL)
    weights: dict[str, float] = field(default_factory=lambda: EXACT | {"journal": JOURNAL_WEIGHT})
    loses: bool = True
    rejudged: bool = False
    reviews: int = 0
    careful: bool = True
    recalibrated: bool = False
    target: float | None = None


REGIMES = (
    Regime(name="oracle", loses=False),
    Regime(name="floor learned as reward", lost=("floor", FLOOR), weights=EXACT | {"floor": 1.0}, target=6.2),
    Regime(name="journal .32 as reward", weights=EXACT | {"journal": 1.0}, target=4.8),
    Regime(name="weighted fallback, replaced later", rejudged=True, target=1.10),
    Regime(name="missing, re-judged later", lost=None, rejudged=True, target=1.03),
    Regime(name="weighted fallback, nobody looks"),
    Regime(name="ten good reviews a week, no recalibration", reviews=10),
    Regime(name="ten good reviews a week, recalibrated", reviews=10, recalibrated=True, target=1.8),
    Regime(
        name="journal .32 as reward, ten good reviews, recalibrated",
        weights=EXACT | {"journal": 1.0},
        reviews=10,
        recalibrated=True,
        target=1.8,
    ),
    Regime(name="five good reviews a week, recalibrated", reviews=5, recalibrated=True),
    Regime(name="twenty careless reviews a week, no recalibration", reviews=20, careful=False),
    Regime(name="twenty careless reviews a week, recalibrated", reviews=20, careful=False, recalibrated=True),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 seeds instead of 40")
    seeds = 4 if parser.parse_args().quick else 40
    found = run(range(seeds), REGIMES)
    print(report(found))
    print(json.dumps(figures(found)))


def run(seeds: Iterable[int], regimes: Iterable[Regime], days: int = DAYS) -> dict[str, list[float]]:
    """The regret of each regime in each seed's world; the same world for all."""
    worlds = [world(seed, days) for seed in seeds]
    return {regime.name: [regret(each, regime) for each in worlds] for regime in regimes}


def world(seed: int, days: int) -> World:
    dice = np.random.default_rng(seed)
    shape = (days, A_DAY)
    means = np.array(MEANS)
    return World(
        grades=dice.beta(CONCENTRATION * means, CONCENTRATION * (1 - means), (*shape, len(MEANS))),
        draws=dice.random(shape),
        lost=dice.random(shape) < LOST,
        contradicted=dice.random(shape) < CONTRADICTED,
        in_slice=dice.random(shape) < SLICE,
        noise=dice.normal(0, 1, shape),
    )


def regret(world: World, regime: Regime) -> float:
    """Σ (μ of the best arm − μ of the arm chosen) over all sessions."""
    policy, sessions, pairs = Policy(weights=regime.weights), [], []
    for day in range(len(world.draws)):
        if day and day % WEEK == 0 and regime.reviews:
            pairs += review(sessions, regime)
            if regime.recalibrated:
                policy = replace(policy, rectifier=offsets(pairs))
        if regime.rejudged:
            rejudge(sessions, day)
        for slot, arm in enumerate(chosen(sessions, policy, day, world.draws[day])):
            sessions.append(graded(world, regime, day, slot, arm))
    return float(sum(MEANS[BEST] - MEANS[session.arm] for session in sessions))


def chosen(sessions: list[Session], policy: Policy, day: int, draws: np.ndarray) -> list[int]:
    """The day's choices, by what was known in the morning."""
    today = START + timedelta(days=day)
    posterior = fold(rows(sessions), arms=ARMS, policy=policy, today=today)
    best = posterior.chance_of_best(ARMS)
    odds = propensities(np.array([best[arm] for arm in ARMS]), floor=policy.floor)
    return np.minimum(np.searchsorted(np.cumsum(odds), draws), len(ARMS) - 1).tolist()


def graded(world: World, regime: Regime, day: int, slot: int, arm: int) -> Session:
    """A finished session with its reward of the first hour."""
    true = float(world.grades[day, slot, arm])
    session = Session(
        arm=arm,
        day=day,
        true=true,
        value=true,
        in_slice=bool(world.in_slice[day, slot]),
        noise=float(world.noise[day, slot]),
    )
    if regime.loses and arm == BEST and world.lost[day, slot]:
        session.lost = True
        session.source, session.value = regime.lost or ("journal", None)
        session.stratum = "flagged" if world.contradicted[day, slot] else ""
    return session


def rejudge(sessions: list[Session], day: int) -> None:
    """The judge is back for the sessions of three days ago: its verdict replaces what stood in."""
    for session in sessions:
        if session.lost and session.source != "judge" and session.day <= day - REJUDGED_AFTER:
            session.source, session.value, session.stratum = "judge", session.true, ""


def review(sessions: list[Session], regime: Regime) -> list[Pair]:
    """A week's reviews: of the slice, flagged ones first as the queue has them, then the newest. What they compare."""
    waiting = [session for session in sessions if session.in_slice and not session.reviewed]
    waiting.sort(key=lambda session: (session.stratum != "flagged", -session.day))
    return [reviewed(session, regime) for session in waiting[: regime.reviews]]


def reviewed(session: Session, regime: Regime) -> Pair:
    """A person's grade takes the place of the machine's."""
    machine = float(session.value or 0)
    off = session.noise * (GOOD if regime.careful else CARELESS)
    start = 0.0 if regime.careful else ANCHOR
    human = float(np.clip(start * machine + (1 - start) * session.true + off, 0, 1))
    pair = Pair(
        arm=ARMS[session.arm],
        source=session.source,
        stratum=session.stratum,
        machine=machine,
        human=human,
        probability=SLICE,
    )
    session.source, session.value, session.stratum, session.reviewed = "human", human, "", True
    return pair


def offsets(pairs: list[Pair]) -> dict[tuple[str, str, str], float]:
    """What the site would put in force: every arm with every source and stratum that was looked at."""
    kinds = {(pair.source, pair.stratum) for pair in pairs}
    return {each.key: each.offset for each in fit(pairs, {(arm, *kind) for arm in ARMS for kind in kinds})}


def rows(sessions: list[Session]) -> list[Row]:
    """The buckets of what is known."""
    sums: dict[tuple[int, str, str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for session in sessions:
        if session.value is not None:
            micro = round(session.value * MICRO)
            held = sums[session.arm, session.source, session.stratum, session.day]
            held[0], held[1], held[2] = held[0] + 1, held[1] + micro, held[2] + micro**2
    return [
        Row(arm=ARMS[arm], source=source, stratum=stratum, day=START + timedelta(days=day), n=n, s=s, q=q)
        for (arm, source, stratum, day), (n, s, q) in sums.items()
    ]


def ratio(found: dict[str, list[float]], name: str) -> float:
    return sum(found[name]) / sum(found["oracle"])


def interval(found: dict[str, list[float]], name: str) -> tuple[float, float]:
    """The central 90 % of the ratio over resampled seeds."""
    dice = np.random.default_rng(0)
    mine, oracle = np.array(found[name]), np.array(found["oracle"])
    picks = dice.integers(0, len(mine), (2000, len(mine)))
    low, high = np.quantile(mine[picks].sum(axis=1) / oracle[picks].sum(axis=1), (0.05, 0.95))
    return float(low), float(high)


def report(found: dict[str, list[float]]) -> str:
    """The table: regret, its ratio to the oracle's with its 90 % interval over seeds, and what was aimed at."""
    lines = [f"{'policy':54} {'regret':>7} {'ratio':>6}  90 % interval  aimed at"]
    for regime in REGIMES:
        low, high = interval(found, regime.name)
        mean = sum(found[regime.name]) / len(found[regime.name])
        aim = "" if regime.target is None else f"{regime.target:.2f}"
        lines.append(f"{regime.name:54} {mean:7.1f} {ratio(found, regime.name):6.2f}  {low:5.2f} – {high:5.2f}  {aim}")
    return "\n".join(lines)


def figures(found: dict[str, list[float]]) -> dict[str, object]:
    seeds = len(found["oracle"])
    return {
        "seeds": seeds,
        "oracle_regret": round(sum(found["oracle"]) / seeds, 1),
        "ratios": {regime.name: round(ratio(found, regime.name), 2) for regime in REGIMES[1:]},
    }


if __name__ == "__main__":
    main()
