"""Whom to ask about first: how much of the regret that wrong rewards cost a few reviews a week win back, by order.

Six weeks, eight arms, forty sessions a day (`benchmarks/reviewing`). The wronged world: the best arm loses 36 % or
60 % of its verdicts, and the journal's grade stands in. The mirror world: the judge is too kind to a weak arm, which
leads. Sessions, grades, flags and items are rows of a scratch site; the queue's order, its places by chance, claims,
answers, and the recalibration that is fitted to them and put in force every week are the product's. The rivals write
their own numbers in the place of its impact. Regret is what the arms chosen fall short of the best one's mean; what is
won is against the same run without reviews. Then whether the interval of "over all" on the calibration page holds the
truth where arms differ and the queue asks about the worst first.

    python benchmarks/review_order.py [--quick | --smoke] [--runs N] [--from SEED] [--workers N]
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.reviewing.cases import OURS, ReviewCase, cases
from benchmarks.reviewing.world import MIRROR, WORSE, WRONGED
from benchmarks.scratch import Size

# Runs, and days of each.
SIZES = {Size.FULL: (500, 42), Size.QUICK: (1, 42), Size.SMOKE: (1, 8)}
FAULTS = {"": WRONGED, "worse": WORSE, "mirror": MIRROR}
# Nothing but the slice comes up in the mirror world, and thirty a week leave little of it unread.
BUDGETS = {WRONGED: (10, 30), WORSE: (10,), MIRROR: (10,)}
WANTED = cases(BUDGETS)
# Seeds below this one are for tuning.
FIRST_SEED = 1000
Floats = NDArray[np.float64]


def main() -> None:
    parser = scratch.parser(__doc__, quick="one run instead of 500", smoke="one run of 8 days")
    parser.add_argument("--runs", type=int, help="how many runs; each has a seed of its own")
    parser.add_argument("--from", dest="first", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes; their number changes no figure")
    given = parser.parse_args()
    usual, days = SIZES[given.size]
    seeds = range(given.first, given.first + (given.runs or usual))
    shares = [seeds[index :: given.workers] for index in range(given.workers)]
    with ProcessPoolExecutor(given.workers) as pool:
        parts = list(pool.map(_some, shares, [days] * len(shares)))
    regrets, drawn, covered = (np.concatenate(each) for each in zip(*parts, strict=True))
    print(table(WANTED, regrets, drawn))
    by_turn, every, pairs = covered.mean(axis=0)
    print(f"over all after fifty answers: {by_turn:.3f} of the 90 % intervals hold the truth, from {pairs:.1f} pairs;")
    print(f"  by every blind pair of the slice, whatever the order: {every:.3f}")
    print(json.dumps({**measured(WANTED, regrets), "coverage": round(by_turn, 3)}))


def _some(seeds: Sequence[int], days: int) -> tuple[Floats, Floats, Floats]:
    """These seeds' runs on a site of this process: by seed and case, the regret and the pairs that count over all; by
    seed, what `coverage` says.
    """
    with tempfile.TemporaryDirectory() as state:
        (Path(state) / "chance.key").write_bytes(bytes(range(32)))  # the same draws in every run
        scratch.site(state)
        from bandit import calibrating
        from bandit.models import Bandit
        from benchmarks.reviewing import coverage, run

        # Every source is read as it stands: here people, and nothing else, put the machines right.
        held = calibrating.in_force(Bandit.objects.named("category"))
        calibrating.switch_off("category", version=held.version + 1 if held else 1, by="bench")
        over_all = np.array([astuple(coverage.covered(seed)) for seed in seeds], dtype=float)
        found = np.array([[astuple(each) for each in run.in_world(seed, WANTED, days)] for seed in seeds])
    return found[:, :, 0], found[:, :, 1], over_all


def table(wanted: Sequence[ReviewCase], regrets: Floats, drawn: Floats) -> str:
    lines = [f"{len(regrets)} runs. Regret won against no reviews, ± a standard error; of it ours less this one's"]
    for at, case in enumerate(wanted):
        if not case.reviews:
            lines.append(f"{case.fault.name}: regret {regrets[:, at].mean():.1f} without reviews")
            continue
        won = regrets[:, _case(wanted, case)] - regrets[:, at]
        behind = regrets[:, at] - regrets[:, _case(wanted, case, OURS)]
        lines.append(
            f"  {case.reviews:3} a week {case.order:20} {_told(won)}   {_told(behind)}   "
            f"{drawn[:, at].mean():4.1f} pairs count over all"
        )
    return "\n".join(lines)


def measured(wanted: Sequence[ReviewCase], regrets: Floats) -> dict[str, Any]:
    """What ours wins and what the best rival does, in regret: in the wronged world of 36 %, and in the mirror world.

    `se` is the largest standard error of ours less the best rival's, in the same runs; None for one run. `worse` is the
    world of 60 %.
    """
    figures: dict[str, Any] = {}
    errors = []
    for name, fault in FAULTS.items():
        for budget in BUDGETS[fault]:
            held = [case for case in wanted if case.fault == fault and case.reviews == budget]
            won = {case.order: regrets[:, _case(wanted, case)] - regrets[:, wanted.index(case)] for case in held}
            rival = max((order for order in won if order != OURS), key=lambda order, won=won: float(won[order].mean()))
            figures[f"{name or 'won'}{budget}"] = round(float(won[OURS].mean()), 2)
            figures[f"{f'{name}_best' if name else 'best_rival'}{budget}"] = round(float(won[rival].mean()), 2)
            figures[f"{f'{name}_' if name else ''}rival{budget}"] = rival
            errors.append(_error(won[OURS] - won[rival]))
    return {**figures, "se": round(max(errors), 2) if len(regrets) > 1 else None, "runs": len(regrets)}


def _case(wanted: Sequence[ReviewCase], case: ReviewCase, order: str = "") -> int:
    """The place of the same case with another order; without one, of its world without reviews."""
    reviews = case.reviews if order else 0
    asked = (case.fault, reviews, order)
    return next(at for at, each in enumerate(wanted) if (each.fault, each.reviews, each.order) == asked)


def _told(values: Floats) -> str:
    return f"{values.mean():+7.2f} ± {_error(values):.2f}"


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


if __name__ == "__main__":
    main()
