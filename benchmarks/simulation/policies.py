"""Today's policy of a new site and its rivals, side by side in the same worlds."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import scratch
from benchmarks.simulation.rivals import TODAY, History, Player, players
from benchmarks.simulation.world import Floats
from benchmarks.simulation.worlds import BAD_LUCK, OUTSIDE, STEADY, WORLDS, ChangingWorld, make_changing_world

# Intervals count from this day on.
FIRST_INTERVAL_DAY = 20
RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One player's run in a world: its regret, the share of (day, arm) whose 90 % interval contained the mean (None
    without intervals), and the share of arms that were ever called broken.
    """

    regret: float
    coverage: float | None
    broken: float


Lives = Mapping[str, Mapping[str, Sequence[Life]]]  # by world and player


def live_in_worlds(seeds: Iterable[int], days: int) -> Lives:
    """Run every player in every world. Run i of all of them has the same sessions."""
    with (
        tempfile.TemporaryDirectory() as state,
        ProcessPoolExecutor(initializer=scratch.code, initargs=(state,)) as pool,
    ):
        by_seed = list(pool.map(partial(_live_in_worlds, days=days), seeds))
    return {
        world: {player: [lives[world][player] for lives in by_seed] for player in by_seed[0][world]}
        for world in by_seed[0]
    }


def _live_in_worlds(seed: int, days: int) -> dict[str, dict[str, Life]]:
    everybody, lives = players(), {}
    for name, rules in {**WORLDS, **OUTSIDE}.items():
        world = make_changing_world(rules, seed, days)
        lives[name] = {player: live(world, play) for player, play in everybody.items()}
    return lives


def live(world: ChangingWorld, play: Player) -> Life:
    """All days of a world. A day's arms are chosen from what is known at its start."""
    days, arms = world.means.shape
    n, s, q = np.zeros((days, arms), dtype=np.int64), np.zeros((days, arms)), np.zeros((days, arms))
    regret, unlucky, best = 0.0, world.rules.unlucky, int(world.means[0].argmax())
    covered, broken = list[bool](), set[int]()
    for day, means in enumerate(world.means):
        known = np.arange(day)[:, None] < day - world.rules.delay
        history = History(n=n[:day] * known, s=s[:day] * known, q=q[:day] * known, columns=world.columns)
        choice = play(history, world.draws[day], world.seed)
        broken |= choice.broken
        if choice.interval is not None and day >= FIRST_INTERVAL_DAY:
            low, high = choice.interval
            covered += ((low <= means) & (means <= high)).tolist()
        for slot, arm in enumerate(choice.arms):
            regret += float(means.max() - means[arm])
            if world.is_lost[day, slot, arm]:
                continue
            reward = float(world.rewards[day, slot, arm])
            if unlucky and arm == best:
                reward, unlucky = max(0.0, reward - BAD_LUCK), unlucky - 1
            n[day, arm] += 1
            s[day, arm] += reward
            q[day, arm] += reward**2
    coverage = float(np.mean(covered)) if covered else None
    return Life(regret=regret, coverage=coverage, broken=len(broken) / arms)


# Figures


def ratio(mine: Floats, others: Floats) -> float:
    """The mean regret, relative to another's; (runs,) each."""
    return float(mine.sum() / others.sum())


def interval(mine: Floats, others: Floats) -> tuple[float, float]:
    """The central 90 % of that ratio over resampled runs, which are paired."""
    picks = np.random.default_rng(0).integers(0, len(mine), (RESAMPLES, len(mine)))
    low, high = np.quantile(mine[picks].sum(axis=1) / others[picks].sum(axis=1), (0.05, 0.95))
    return float(low), float(high)


def regrets(lives: Sequence[Life]) -> Floats:
    return np.array([life.regret for life in lives])


def best_rival(by_player: Mapping[str, Sequence[Life]]) -> str:
    """The player with the least regret in a world, today's policy left out."""
    return min((name for name in by_player if name != TODAY), key=lambda name: regrets(by_player[name]).sum())


def coverage(lives: Sequence[Life]) -> float | None:
    shares = [life.coverage for life in lives if life.coverage is not None]
    return float(np.mean(shares)) if shares else None


def broken(lives: Sequence[Life]) -> float:
    return float(np.mean([life.broken for life in lives]))


def figures(lives: Lives) -> dict[str, Any]:
    """The figures by name: today's regret relative to the best rival's in each world, with the 90 % interval; the
    geometric mean of these ratios and the worst upper bound; shares of intervals that contained the mean; and of arms
    that were called broken where none was.
    """
    ratios, bounds = {}, {}
    for world, by_player in lives.items():
        mine, others = regrets(by_player[TODAY]), regrets(by_player[best_rival(by_player)])
        ratios[world], bounds[world] = ratio(mine, others), interval(mine, others)
    covers = {world: coverage(by_player[TODAY]) for world, by_player in lives.items()}
    return {
        "geometric_mean": round(float(np.exp(np.mean([np.log(ratios[world]) for world in WORLDS]))), 3),
        "worst_upper": round(max(bounds[world][1] for world in WORLDS), 3),
        "least_coverage": min((round(each, 3) for each in covers.values() if each is not None), default=None),
        "false_breaks": round(max(broken(lives[world][TODAY]) for world in STEADY), 4),
        "ratios": {world: round(each, 3) for world, each in ratios.items()},
        "intervals": {world: [round(bound, 3) for bound in each] for world, each in bounds.items()},
        "covers": {world: each if each is None else round(each, 3) for world, each in covers.items()},
        "runs": len(lives[STEADY[0]][TODAY]),
    }


def table(lives: Lives) -> str:
    """A line for each world: everybody's regret, today's relative to the best rival's, and today's intervals."""
    names = list(lives[STEADY[0]])
    rows = []
    for world, by_player in lives.items():
        rival, mine, share = best_rival(by_player), regrets(by_player[TODAY]), coverage(by_player[TODAY])
        low, high = interval(mine, regrets(by_player[rival]))
        row = [world, *(f"{regrets(by_player[name]).mean():.1f}" for name in names)]
        row += [f"{ratio(mine, regrets(by_player[rival])):.2f}", f"{low:.2f} – {high:.2f}"]
        rows.append([*row, "" if share is None else f"{share:.3f}", f"{broken(by_player[TODAY]):.3f}"])
    headings = ["world", *names, f"{TODAY} ÷ best rival", "90 % interval", "coverage", "called broken"]
    return scratch.table(headings, rows)
