"""What the parts of a difference truly are in a simulated world, computed without the site's code."""

from itertools import permutations

import numpy as np

from benchmarks.compared.world import (
    JUDGE_ERROR,
    LEVELS,
    SATURDAY,
    WEEKEND_EFFECT,
    Plan,
    Sessions,
    draw_errors,
)

PARTS = ("mix", "within", "graders", "missing")
DRAWS = 40_000
GRID = np.linspace(-1.0, 2.0, 601)


def expected_rewards() -> np.ndarray:
    """The expected reward at each point of GRID: what a session is worth there before its errors and the cut."""
    rng = np.random.default_rng(0)
    errors = draw_errors(DRAWS, rng) + rng.normal(0, JUDGE_ERROR, DRAWS)
    return np.array([np.clip(each + errors, 0, 1).mean() for each in GRID])


def true_parts(plan: Plan, sessions: Sessions, table: np.ndarray, before: slice, after: slice) -> dict[str, float]:
    """The parts, given the days as they were. `before` and `after` are the days of the periods.

    The mean over all orders in which the four can change, one order after the other.
    """
    periods = [_describe(plan, sessions, table, days) for days in (before, after)]
    parts = dict.fromkeys(PARTS, 0.0)
    orders = list(permutations(PARTS))
    for order in orders:
        state = dict.fromkeys(PARTS, 0)
        last = _mean(periods, state)
        for part in order:
            state[part] = 1
            now = _mean(periods, state)
            parts[part] += (now - last) / len(orders)
            last = now
    return parts


def _describe(plan: Plan, sessions: Sessions, table: np.ndarray, days: slice) -> dict[str, np.ndarray]:
    numbers = np.arange(plan.days)[days]
    counts = np.bincount(sessions.day, minlength=plan.days)[days].astype(float)
    weights = (counts / counts.sum())[:, None]
    common = sessions.day_effect[days] + WEEKEND_EFFECT * (numbers % 7 >= SATURDAY) + plan.level[days]
    place = LEVELS[None, :] + common[:, None]
    plain = np.interp(place, GRID, table)
    read = np.interp(place + plan.reading[days][:, None], GRID, table)
    return {
        "mix": plan.shares[days].mean(axis=0),
        "within": (weights * plain).sum(axis=0),
        "graders": (weights * (read - plain)).sum(axis=0),
        "missing": 1 - plan.missing[days].mean(axis=0),
    }


def _mean(periods: list[dict[str, np.ndarray]], state: dict[str, int]) -> float:
    mix, within, graders, graded = (periods[state[part]][part] for part in PARTS)
    return float((mix * graded * (within + graders)).sum() / (mix * graded).sum())
