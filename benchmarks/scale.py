"""Whether sources of unlike scales tell the same of an arm: a judge, a trajectory, and sessions that leave no trace.

    two equal arms, half of one's sessions graded by trajectory alone; beside them twins that were all judged
    eight arms, one of which was never judged, or judged a few times, or writes half of its logs so that nothing reads
    them, or five weeks without a judge: how far posterior means are off, and how often intervals hold the truth
    a weak arm whose failures leave no trace, a tenth of them judged: regret beside that of a world where all are
    no judge at all: regret beside version 0.1.0's, and whether intervals hold the truth on the trajectory's own scale

Everything is read by the bandit's own cores: `bandit.core.calibration` fits, `bandit.core.posterior` folds.

    python benchmarks/scale.py [--quick | --smoke] [--runs N] [--workers N]
"""

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.calibration import Scale
from bandit.core.propensity import propensities
from benchmarks import scratch
from benchmarks.scaling.world import AT_START, Arms, Ledger, Session, read, true_mean
from benchmarks.scratch import Size

# Runs of the worlds that are read once, and of those that are lived through day by day.
SIZES = {Size.FULL: (500, 500), Size.QUICK: (60, 3), Size.SMOKE: (3, 1)}
TODAY, EACH = 20, 40
MEANS = (0.80, 0.73, 0.67, 0.61, 0.55, 0.49, 0.43, 0.37)
DAYS, A_DAY = 60, 50
OUTAGE, BLIND, RARELY = 35, 0.5, 8
ENOUGH = 50
EXTREME = 0.05
FLOOR = 0.01
# The world of silent failure: what a session is worth that failed, and that did not. One arm's failures are silent.
FAILED, DONE = 0.12, 0.85
CHANCES = (0.36, 0.75, 0.62, 0.58, 0.54, 0.50, 0.46, 0.42)
RESERVED = 0.1
# The scale is fitted every night; in a run only so often once it hardly moves.
FITTED_DAILY, FITTED_EVERY = 14, 4
READINGS = 5


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="60 runs instead of 500, 3 of those by the day", smoke="3 runs, 1 by the day"
    )
    parser.add_argument("--runs", type=int, help="how many runs; each has a seed of its own, from 0 up")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes; their number changes no figure")
    given = parser.parse_args()
    once, daily = SIZES[given.size]
    with ProcessPoolExecutor(given.workers) as pool:
        equal = list(pool.map(equal_arms, range(given.runs or once), chunksize=8))
        apart = list(pool.map(arms_apart, range(given.runs or once), chunksize=4))
        silent = list(pool.map(silent_failure, range(given.runs or daily)))
        alone = list(pool.map(no_judge, range(given.runs or daily)))
    figures = measured(equal, apart, silent, alone) | size_of(given.size)
    for name, value in figures.items():
        print(f"{name:28} {value}")
    print(json.dumps(figures))


def measured(
    equal: list[dict[str, float]],
    apart: list[dict[str, list[tuple[float, bool]]]],
    silent: list[dict[str, float]],
    alone: list[dict[str, Any]],
) -> dict[str, Any]:
    """The figures by name: chances, errors in reward, shares, ratios of regret."""
    best, twin, raw = (np.array([run[name] for run in equal]) for name in ("best", "twin", "raw"))
    told = {name: [each for run in apart for each in run[name]] for name in apart[0]}
    off = {name: float(np.mean([error for error, _ in held])) for name, held in told.items()}
    held = {name: float(np.mean([inside for _, inside in each])) for name, each in told.items()}
    regret = {name: float(np.mean([run[name] for run in silent])) for name in silent[0]}
    without = {name: float(np.mean([run[name] for run in alone])) for name in ("now", "before")}
    return {
        "p_best_mean": round(float(best.mean()), 3),
        "extreme_excess_points": round(100 * (_extreme(best) - _extreme(twin)), 1),
        "error_with_pairs": round(max(off["blind"], off["outage"]), 4),
        "coverage_without_pairs": round(min(held["never"], held["rarely"]), 3),
        "silent_ratio": round(regret["speaking"] / regret["seen"], 2),
        "no_judge": round(without["now"] / without["before"], 3),
        "no_judge_coverage": round(float(np.mean([each for run in alone for each in run["inside"]])), 3),
        "beside": {
            "p_best_twins": round(float(twin.mean()), 3),
            "p_best_raw": round(float(raw.mean()), 3),
            "extreme_twins": round(100 * _extreme(twin), 1),
            "errors": {name: round(value, 4) for name, value in off.items()},
            "coverage": {name: round(value, 3) for name, value in held.items()},
            "silent_regret": {name: round(value, 1) for name, value in regret.items()},
            "no_judge_regret": {name: round(value, 1) for name, value in without.items()},
        },
    }


def _extreme(chances: Any) -> float:
    return float(np.mean((chances < EXTREME) | (chances > 1 - EXTREME)))


def equal_arms(seed: int) -> dict[str, float]:
    """P(best) of the arm whose sessions are half on trajectory; of its all-judged twin; and without a common scale."""
    rng = np.random.default_rng([1, seed])
    arms = Arms.drawn((0.82, 0.82), rng, level=-0.17)
    half, whole = Ledger(), Ledger()
    for number in range(EACH):
        for arm in (0, 1):
            session = arms.session(arm, number * TODAY // EACH, rng)
            half.add(session, judged=arm == 1 or number % 2 == 0)
            whole.add(session, judged=True)
    scale = half.scale()
    return {
        "best": _best(half, arms, scale),
        "twin": _best(whole, arms, scale),
        "raw": _best(half, arms, None),
    }


def _best(ledger: Ledger, arms: Arms, scale: Scale | None) -> float:
    return read(ledger.rows, arms.names, TODAY, scale).chance_of_best(arms.names)["arm-0"]


def arms_apart(seed: int) -> dict[str, list[tuple[float, bool]]]:
    """How far an arm's posterior mean is off, and whether its interval holds the truth, in each case."""
    rng = np.random.default_rng([2, seed])
    arms = Arms.drawn(rng.permutation(MEANS), rng)
    cases = {name: Ledger() for name in ("never", "rarely", "blind", "outage")}
    count = [0] * len(MEANS)
    for day in range(DAYS):
        for slot in range(A_DAY):
            arm = (day * A_DAY + slot) % len(MEANS)
            session = _some_abstain(arms.session(arm, day, rng), rng)
            hidden = Session(arm=session.arm, day=day, verdict=session.verdict, trajectory=None, reason="format_blind")
            is_blind, is_judged = arm == 0 and rng.random() < BLIND, rng.random() < BLIND
            count[arm] += 1
            cases["never"].add(session, judged=arm != 0)
            cases["rarely"].add(session, judged=arm != 0 or count[arm] <= RARELY)
            cases["blind"].add(hidden if is_blind else session, judged=arm != 0 or is_judged)
            cases["outage"].add(session, judged=day < DAYS - OUTAGE)
    watched = {name: range(len(MEANS)) if name == "outage" else (0,) for name in cases}
    scales = {name: ledger.scale() for name, ledger in cases.items()}
    return {name: [_held(arms, arm, cases[name], scales[name]) for arm in watched[name]] for name in cases}


def _some_abstain(session: Session, rng: np.random.Generator) -> Session:
    """What went badly leaves a trace less often."""
    if rng.random() < 0.1 + 0.3 * (1 - session.verdict):
        return Session(arm=session.arm, day=session.day, verdict=session.verdict, trajectory=None)
    return session


def _held(arms: Arms, arm: int, ledger: Ledger, scale: Scale) -> tuple[float, bool]:
    said = read(ledger.rows, arms.names, DAYS, scale).arms[arms.names[arm]]
    truth = _truth(float(arms.means[arm]))
    return abs(said.mean - truth), said.low <= truth <= said.high


@cache
def _truth(mean: float) -> float:
    return true_mean(mean)


def silent_failure(seed: int) -> dict[str, float]:
    """Regret where all is judged; where a tenth of the silent failures is and speaks for the rest; where none does."""
    return {name: _silent_run(seed, name) for name in ("seen", "speaking", "left out")}


def _silent_run(seed: int, how: str) -> float:
    rng = np.random.default_rng([3, seed])
    names, ledger, scale = tuple(f"arm-{number}" for number in range(len(CHANCES))), Ledger(), AT_START
    worth = [FAILED + (DONE - FAILED) * chance for chance in CHANCES]
    regret = 0.0
    for day in range(DAYS):
        if how == "speaking" and (day <= FITTED_DAILY or day % FITTED_EVERY == 0):
            scale = ledger.scale()
        odds = _odds(ledger, names, day, scale)
        for arm in rng.choice(len(names), A_DAY, p=odds):
            is_done, noise, drawn = rng.random() < CHANCES[arm], rng.normal(0, 0.08), rng.random() < RESERVED
            verdict = float(np.clip((DONE if is_done else FAILED) + noise, 0, 1))
            is_silent = arm == 0 and not is_done
            session = Session(arm=names[arm], day=day, verdict=verdict, trajectory=None if is_silent else verdict / 2)
            judged = how == "seen" or not is_silent or (drawn and how == "speaking")
            ledger.add(session, judged=judged)
            regret += max(worth) - worth[arm]
    return regret


def no_judge(seed: int) -> dict[str, Any]:
    """Regret on the trajectory's own scale, now and as version 0.1.0 read it; and whether intervals hold the truth."""
    found: dict[str, Any] = {}
    for name, scale in (("before", None), ("now", AT_START)):
        rng = np.random.default_rng([4, seed])
        arms, ledger, regret = Arms.drawn(rng.permutation(MEANS), rng), Ledger(), 0.0
        truth = [arms.true_trajectory(arm) for arm in range(len(MEANS))]
        for day in range(DAYS):
            odds = _odds(ledger, arms.names, day, scale)
            for arm in rng.choice(len(arms.names), A_DAY, p=odds):
                ledger.add(arms.session(int(arm), day, rng), judged=False)
                regret += max(truth) - truth[arm]
        found[name] = regret
        if scale is not None:
            said = read(ledger.rows, arms.names, DAYS, scale).arms
            found["inside"] = [
                said[name].low <= mean <= said[name].high for name, mean in zip(arms.names, truth, strict=True)
            ]
    return found


def _odds(ledger: Ledger, names: tuple[str, ...], day: int, scale: Scale | None) -> Any:
    best = read(ledger.rows, names, day, scale).chance_of_best(names)
    return propensities(np.array([best[name] for name in names]), floor=FLOOR)


def size_of(size: Size) -> dict[str, Any]:
    """Buckets and the time of one reading, with a scale and without, for 100,000 rewards under all keys."""
    rng = np.random.default_rng(5)
    arms, ledger = Arms.drawn(MEANS, rng), Ledger()
    for number in range(100_000 if size is Size.FULL else 10_000):
        session = _some_abstain(arms.session(number % len(MEANS), number % 365, rng), rng)
        ledger.add(session, judged=rng.random() < BLIND)
    rows, scale = ledger.rows, ledger.scale()
    took = {}
    for name, held in (("plain", None), ("scaled", scale)):
        times = []
        for _ in range(READINGS):
            started = time.perf_counter()
            read(rows, arms.names, 365, held)
            times.append(time.perf_counter() - started)
        took[name] = round(1000 * min(times), 1)
    return {"buckets": len(rows), "read_ms": took}


if __name__ == "__main__":
    main()
