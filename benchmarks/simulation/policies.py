"""Version 0.1.0's policy, today's and rivals, side by side in every world: what exploration, forgetting and breaks buy.

`by version` are a policy's numbers as the site's own code reads them, `policy_from` a row of `PolicyVersion`.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bandit.core.policy import Policy
from benchmarks import lessons, scratch
from benchmarks.simulation import figures
from benchmarks.simulation.changing import WORLDS, changing
from benchmarks.simulation.contenders import RIVALS, Contest, live, live_with
from benchmarks.simulation.regimes import WEIGHTED
from benchmarks.simulation.run import draws_of, outcome
from benchmarks.simulation.world import Floats, world

OLD, BEFORE, NEW = "0.1", "0.2", "0.3"
# What earlier releases had instead of today's numbers.
EARLIER: Mapping[str, Mapping[str, Any]] = {
    OLD: {
        "half_life_days": 21.0,
        "exploration": None,
        "sharpness": 1.0,
        "follows_change": False,
        "varies_by_day": False,
        "holdout": 0.1,
        "holdout_decided": None,
        "consumption_per_agent": None,
        "consumption_per_day": 2,
        "probation_per_agent": None,
        "probation_per_day": 1,
        "open_decisions": None,
        "agent_cap": None,
    },
    BEFORE: {"exploration": 0.03, "varies_by_day": False},
}
# Today's without its exploration: what that costs, and what it buys.
UNEXPLORED = "unexplored"
# The world of seed 001's faults, which the chain and its late verdicts are part of.
FAULTS = "faults"
# What the new policy's regret is to be at most, beside the old one's.
TARGETS = {
    "stationary": 0.65,
    "drift": 0.70,
    "switch": 0.58,
    "breaks": 0.45,
    "arms30": 0.55,
    "no_judge": 0.50,
}
# Worlds without change, in which every break is a false one.
STEADY = ("stationary", "ten_a_day", "arms30")

Contests = Mapping[str, Mapping[str, Sequence[Contest]]]


def contests(seeds: Iterable[int], *, days: int, workers: int | None = None) -> Contests:
    """What became of each contender in each world, by world and name; run i of all of them has the same sessions."""
    with (
        tempfile.TemporaryDirectory() as state,
        ProcessPoolExecutor(workers, initializer=scratch.code, initargs=(state,)) as pool,
    ):
        told = list(pool.map(partial(contest, days=days), seeds))
    return {where: {name: [each[where][name] for each in told] for name in told[0][where]} for where in told[0]}


def null_lessons(seeds: Iterable[int], *, days: int, workers: int | None = None) -> float:
    """The share of lessons that do nothing and are ever called helpful or harmful, looked at every day."""
    with (
        tempfile.TemporaryDirectory() as state,
        ProcessPoolExecutor(workers, initializer=scratch.code, initargs=(state,)) as pool,
    ):
        told = list(pool.map(partial(_called, days=days), seeds))
    return float(np.mean(told))


def _called(seed: int, days: int) -> float:
    return float(np.mean(~np.isnan(lessons.run_site(seed, lessons.NOTHING, days).called)))


def contest(seed: int, days: int) -> dict[str, dict[str, Contest]]:
    """Everybody's life in this seed's worlds."""
    policies = {name: policy(name) for name in (OLD, BEFORE, NEW)}
    policies[UNEXPLORED] = replace(policies[NEW], exploration=0.0)
    found: dict[str, dict[str, Contest]] = {}
    for where, change in WORLDS.items():
        made = changing(change, seed, days)
        found[where] = {name: live(made, held) for name, held in policies.items()}
        found[where] |= {name: live_with(made, choose, seed) for name, choose in RIVALS.items()}
    faults, draws = world(seed, days), draws_of(seed, days)
    found[FAULTS] = {
        name: Contest(regret=outcome(faults, draws, WEIGHTED, policy=held).regret) for name, held in policies.items()
    }
    return found


def policy(release: str) -> Policy:
    """What a new site of that release reads by: its numbers, and its first calibration where it had one."""
    from bandit.models import Bandit, CalibrationVersion, PolicyVersion
    from bandit.policies import NEW_SITE
    from bandit.reading import policy_from
    from grading.reward.one_scale import START

    bandit = Bandit(name="world")
    version = PolicyVersion(bandit=bandit, version=1, by="installation", **{**NEW_SITE, **EARLIER.get(release, {})})
    start = CalibrationVersion(bandit=bandit, version=1, scale=START.as_json(), accepted=True)
    return policy_from(version, calibration=None if release == OLD else start)


def report(found: Contests) -> str:
    lines = [
        f"{'world':12} {'policy':10} {'regret':>8} {'÷ old':>6}  90 % interval  {'aim':6} {'covers':>6} {'broke':>6}"
    ]
    for where, by_name in found.items():
        for name, lives in by_name.items():
            low, high = figures.interval_of(_regrets(lives), _regrets(by_name[OLD]))
            ratio = figures.ratio_of(_regrets(lives), _regrets(by_name[OLD]))
            aim = f"≤ {TARGETS[where]:.2f}" if name == NEW and where in TARGETS else ""
            held, broke = _held(lives), _broken(lives)
            lines.append(
                f"{where:12} {name:10} {_regrets(lives).mean():8.1f} {ratio:6.3f}  {low:5.3f} – {high:5.3f}  {aim:6} "
                f"{'' if held is None else f'{held:.3f}':>6} {f'{broke:.3f}' if name == NEW else '':>6}"
            )
    return "\n".join(lines)


def measured(found: Contests, called: float) -> dict[str, Any]:
    """The figures by name: ratios of regret to version 0.1.0's with the upper bounds of their 90 % intervals beside
    them, shares of intervals that held the mean, of arms that were ever said to break where none did, and of lessons
    that do nothing and were ever `called` something.
    """
    ratios, upper = {}, {}
    for where in found:
        mine, old = (_regrets(found[where][name]) for name in (NEW, OLD))
        ratios[where] = round(figures.ratio_of(mine, old), 3)
        upper[where] = round(figures.interval_of(mine, old)[1], 3)
    covers = {where: round(held, 3) for where in WORLDS if (held := _held(found[where][NEW])) is not None}
    return {
        **{name: ratios[name] for name in TARGETS},
        "no_judge_coverage": covers.get("no_judge"),
        "false_breaks": round(max(_broken(found[where][NEW]) for where in STEADY), 4),
        "null_lessons": round(called, 4),
        "upper": upper,
        "beside": {where: ratio for where, ratio in ratios.items() if where not in TARGETS},
        "covers": covers,
        "rivals": {
            where: {
                name: round(figures.ratio_of(_regrets(lives), _regrets(found[where][OLD])), 3)
                for name, lives in found[where].items()
                if name in RIVALS or name == UNEXPLORED
            }
            for where in WORLDS
        },
        "runs": len(found[FAULTS][NEW]),
    }


def _regrets(lives: Sequence[Contest]) -> Floats:
    return np.array([each.regret for each in lives])


def _held(lives: Sequence[Contest]) -> float | None:
    told = [each.held for each in lives if each.held is not None]
    return float(np.mean(told)) if told else None


def _broken(lives: Sequence[Contest]) -> float:
    return float(np.mean([each.broken for each in lives]))
