"""`python -m benchmarks.selecting.sizes STATE REPEATS ARMS…`: select and update, ours beside the rivals, as JSON.

Ours reads a database (SQLite, a file) and, when it updates, writes the ledger and a bucket and commits. The rivals
hold their state in memory, and lose it with the process.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, betaincinv

from benchmarks import scratch
from benchmarks.selecting import ledger, rivals, site
from benchmarks.selecting.clock import clocked, own_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from bandit.core.posterior import Posterior
    from bandit.core.table import RewardRow

NOW = datetime.combine(site.FIRST_DAY + timedelta(days=site.DAYS), time(12), UTC)
POINTS = 1024
# Rewards a bandit of K arms has had: so many, or so many an arm.
LEAST_ROWS, ROWS_AN_ARM = 2_000, 5
# Arms times repeats is bounded: the slowest contender takes seconds at 10,000 arms.
MOST_CELLS = 30_000
# Steps that wait for nothing are timed by the processor.
COMPUTED = ("plain quadrature", "our quadrature", "select")


def main(state: str, repeats: str, *sizes: str) -> None:
    scratch.site(state)
    print(json.dumps({arms: at(int(arms), int(repeats)) for arms in sizes}))


def at(arms: int, repeats: int) -> dict[str, float]:
    """Medians in milliseconds of everything at this number of arms; one after the other, again and again."""
    from bandit.audit import replay

    bandit, names = site.bandit_with(arms)
    rows = max(LEAST_ROWS, ROWS_AN_ARM * arms)
    site.fill(bandit, rows)
    replay(write=True)
    steps = ours(bandit.name, names, rows)
    for name in rivals.installed():
        rival = rivals.MAKERS[name](names)
        steps |= {f"{name} select": rival.select, f"{name} update": rival.update}
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(max(min(repeats, MOST_CELLS // arms), 3)):
        for name, work in steps.items():
            times[name].append((own_time if name in COMPUTED else clocked)(work))
    return {name: round(statistics.median(each), 4) for name, each in times.items()}


def ours(bandit: str, names: list[str], rows: int) -> dict[str, Callable[[], object]]:
    """Our own steps, in their order: after an update nothing is remembered, after a selection everything is."""
    from bandit.core.propensity import p_best
    from bandit.models import Bandit
    from bandit.reading import posterior_of, rows_of
    from bandit.selection import select

    dice, turn = np.random.default_rng(1), iter(range(rows // 2))
    posterior = posterior_of(bandit, NOW).posterior
    held = rows_of(Bandit.objects.named(bandit), posterior.policy, posterior.day)
    count = iter(range(1_000_000))
    return {
        "plain quadrature": lambda: plain(posterior.alpha, posterior.beta),
        "our quadrature": lambda: p_best(posterior.alpha, posterior.beta),
        "select": lambda: choose_from(held, posterior, next(count)),
        "update, written": lambda: ledger.reward(bandit, names, next(turn), float(dice.random())),
        "select, read anew": lambda: choose(bandit, next(count)),
        "select, cached": lambda: choose(bandit, next(count)),
        "decision, written": lambda: select(bandit=bandit, decision_id=f"d-{next(count)}", supply=None, now=NOW),
    }


def choose_from(rows: list[RewardRow], like: Posterior, number: int) -> str:
    """From the buckets in memory to an arm: posteriors, P(best), floor, draw."""
    from bandit.core.posterior import chances, fold
    from bandit.core.thompson import draw, uniform

    found = fold(rows, arms=like.names, policy=like.policy, today=like.day)
    return draw(chances(found.chance_of_best(like.names), like.policy), uniform("bench", str(number)))


def choose(bandit: str, number: int) -> str:
    """What the site believes now, by the database, as chances above the floor; and a draw from them."""
    from bandit.core.thompson import draw, uniform
    from bandit.reading import posterior_of

    return draw(posterior_of(bandit, NOW).chances, uniform(bandit, str(number)))


def plain(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """P(best) by the bare quadrature: every arm's distribution function at every point, by the incomplete beta."""
    low, high = (float(betaincinv(alpha, beta, tail).max()) for tail in (1e-10, 1 - 1e-10))
    cdf = betainc(alpha[:, None], beta[:, None], np.linspace(low, high, POINTS)[None, :])
    cdf[:, -1] = 1.0
    log = np.log(np.maximum(cdf, 1e-300))
    others = np.exp(log.sum(axis=0) - log)
    mass = np.diff(cdf, axis=1, prepend=0.0)
    middle = (others + np.concatenate((others[:, :1], others[:, :-1]), axis=1)) / 2
    chance = (mass * middle).sum(axis=1)
    return chance / chance.sum()


if __name__ == "__main__":
    main(*sys.argv[1:])
