"""Who chooses in a changing world: the bandit by version 0.1.0's numbers and by today's, and three rivals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from scipy.special import betaincinv

from bandit.core.policy import Policy
from bandit.core.posterior import TAIL, Posterior, chances, fold
from bandit.core.table import MICRO, RewardRow
from bandit.core.thompson import draw
from benchmarks.simulation.buckets import START
from benchmarks.simulation.changing import ChangingWorld
from benchmarks.simulation.world import Floats

# Intervals are looked at once there is something to believe.
SETTLED = 20
# A rival's least variance of rewards, and of arms.
LEAST_NOISE, LEAST_SPREAD = 0.005, 0.003


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One life in a world: its `regret`, the share of (day, arm) whose 90 % interval held the mean (None for rivals),
    and the share of arms that were ever said to have broken.
    """

    regret: float
    held: float | None = None
    broken: float = 0.0


def live(world: ChangingWorld, policy: Policy) -> Contest:
    """Sixty days of the bandit's own reading and chances; read once a day."""
    names, rows, regret = world.names, list[RewardRow](), 0.0
    held, broken = list[bool](), set[str]()
    for day, means in enumerate(world.means):
        posterior = fold(rows, arms=names, policy=policy, today=START + timedelta(days=day))
        broken |= set(posterior.changes.breaks) if posterior.changes else set()
        if day >= SETTLED:
            held += _holds(posterior, means)
        odds = chances(posterior.chance_of_best(names), policy)
        chosen = [names.index(draw(odds, chance)) for chance in world.draws[day].tolist()]
        regret += float(means.max() * len(chosen) - means[chosen].sum())
        rows += _rows(world, day, chosen)
    return Contest(regret=regret, held=float(np.mean(held)) if held else None, broken=len(broken) / len(names))


def _holds(posterior: Posterior, means: Floats) -> list[bool]:
    low, high = (betaincinv(posterior.alpha, posterior.beta, tail) for tail in (TAIL, 1 - TAIL))
    inside: list[bool] = ((low <= means) & (means <= high)).tolist()
    return inside


def _rows(world: ChangingWorld, day: int, chosen: Sequence[int]) -> list[RewardRow]:
    """A day's rewards, as the ledger adds them up."""
    values: dict[int, list[int]] = {}
    for slot, arm in enumerate(chosen):
        values.setdefault(arm, []).append(round(float(world.rewards[day, slot, arm]) * MICRO))
    return [
        RewardRow(
            arm=world.names[arm],
            source=world.source,
            version="" if world.source == "judge" else "trajectory/2",
            view="" if world.source == "judge" else "full",
            witness="claimed" if world.claimed else "",
            standing="claimed" if world.claimed else "",
            day=START + timedelta(days=day),
            n=len(micros),
            s=sum(micros),
            q=sum(micro**2 for micro in micros),
        )
        for arm, micros in values.items()
    ]


# What a rival chooses a day's sessions by: how many rewards each arm had, their sum and that of their squares, and how
# many sessions there are.
Choosing = Callable[[Floats, Floats, Floats, int, np.random.Generator], Sequence[int]]


def live_with(world: ChangingWorld, choose: Choosing, seed: int) -> Contest:
    """Sixty days of a rival's choices, the rewards of a day known in the evening."""
    dice, regret = np.random.default_rng([17, seed]), 0.0
    n, s, q = (np.zeros(len(world.names)) for _ in range(3))
    for day, means in enumerate(world.means):
        chosen = list(choose(n, s, q, len(world.draws[day]), dice))
        regret += float(means.max() * len(chosen) - means[chosen].sum())
        for slot, arm in enumerate(chosen):
            value = float(world.rewards[day, slot, arm])
            n[arm], s[arm], q[arm] = n[arm] + 1, s[arm] + value, q[arm] + value**2
    return Contest(regret=regret)


def gaussian(n: Floats, s: Floats, q: Floats, count: int, dice: np.random.Generator) -> Sequence[int]:
    """Thompson sampling with normal rewards, the arms' prior as wide as their means are apart; no floor."""
    mean = s / np.maximum(n, 1)
    noise = max(float((q - s * mean).sum() / max(n.sum() - (n > 0).sum(), 1)), LEAST_NOISE)
    known, centre = n > 0, float(s.sum() / n.sum()) if n.sum() else 0.5
    spread = float(np.var(mean[known]) - np.mean(noise / n[known])) if known.sum() > 1 else LEAST_SPREAD
    precision = 1 / max(spread, LEAST_SPREAD) + n / noise
    level = (centre / max(spread, LEAST_SPREAD) + s / noise) / precision
    draws = dice.normal(level, 1 / np.sqrt(precision), (count, len(n)))
    return [int(arm) for arm in draws.argmax(axis=1)]


def ucb(n: Floats, s: Floats, q: Floats, count: int, dice: np.random.Generator) -> Sequence[int]:
    """UCB-tuned (Auer, Cesa-Bianchi and Fischer 2002); a session that runs counts, its reward is not known yet."""
    tried, chosen = n.copy(), []
    mean = np.where(n > 0, s / np.maximum(n, 1), 0.5)
    variance = np.where(n > 0, q / np.maximum(n, 1) - mean**2, 0.25)
    for _ in range(count):
        time = np.log(max(float(tried.sum()), 2.0)) / np.maximum(tried, 1)
        index = mean + np.sqrt(time * np.minimum(0.25, variance + np.sqrt(2 * time)))
        index = np.where(tried > 0, index, np.inf) + dice.random(len(n)) * 1e-9
        chosen.append(int(index.argmax()))
        tried[chosen[-1]] += 1
    return chosen


def plain_beta(n: Floats, s: Floats, q: Floats, count: int, dice: np.random.Generator) -> Sequence[int]:  # noqa: ARG001 - as the others
    """Thompson sampling from Beta(1 + Σr, 1 + Σ(1 − r)): no scale, no prior but the flat one, nothing forgotten."""
    return [int(arm) for arm in dice.beta(1 + s, 1 + n - s, (count, len(n))).argmax(axis=1)]


RIVALS: Mapping[str, Choosing] = {"gaussian": gaussian, "ucb": ucb, "plain_beta": plain_beta}
