"""What seed 001's faults cost a bandit that learns from whatever the chain ends at, and what one pays that does not.

Eight arms, fifty sessions a day for sixty days; the best arm loses 36 % of its grades to worktrees, a race for the log
and the judge's outages (`benchmarks/simulation/world.py` says how). Regret is what the chosen arms' true means fall
short of the best one's; the oracle is the same bandit where every grade is there at once and true. All run on the
site's own chain and the bandit's own cores, with the same worlds, chances and draws for all. The posterior is read
once a day, so that a day's choices share their odds; `--reads 5` reads it after every tenth session, which over forty
runs moved the oracle's regret by 3 % and the ratios by .02 at most (the floor's from 5.95 to 6.17).

Then seed 000's: what reading is worth, and how often it is chosen, where commits are counted and where artifacts are.

With `--policies` something else: version 0.1.0's policy, today's and rivals, side by side in one run, in worlds that
stay the same, drift, break and change places, with ten sessions a day, with thirty arms, without a judge, and with
those faults; in each, today's regret beside version 0.1.0's.

    python benchmarks/regret.py [--policies] [--quick | --smoke] [--runs N] [--workers N] [--reads N] [--days N]
                                [--first-seed N]
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from benchmarks.simulation import figures, policies, stories
from benchmarks.simulation.regimes import (
    ADVISED,
    FLOOR,
    JOURNAL,
    LATE,
    MISSING,
    NEVER_LOST,
    NO_CAPS,
    NOBODY,
    ORACLE,
    REVIEWS,
    WEIGHTED,
)
from benchmarks.simulation.run import Found, runs
from benchmarks.simulation.stories import Story
from benchmarks.simulation.world import A_DAY, DAYS, LOSS

# Runs, and days of each.
SIZES = {Size.FULL: (200, DAYS), Size.QUICK: (4, DAYS), Size.SMOKE: (1, 14)}
# Days for which lessons are looked at.
LESSON_DAYS = {Size.FULL: 180, Size.QUICK: 90, Size.SMOKE: 10}
# Reading and lessons need fewer runs: one for so many.
READING_EVERY = 10
NAMED = {
    "floor": FLOOR,
    "journal": JOURNAL,
    "weighted_replaced": WEIGHTED,
    "missing_rejudged": MISSING,
    "reviews10": REVIEWS,
}
BESIDE = {
    "never_lost": NEVER_LOST,
    "weighted_next_morning": replace(
        WEIGHTED, name="weighted fallback, replaced next morning", rejudged_after=1, target=None
    ),
    "weighted_in_a_week": replace(
        WEIGHTED, name="weighted fallback, replaced in a week", rejudged_after=7, target=None
    ),
    "weighted_uncapped": replace(
        WEIGHTED, name="weighted fallback, no cap on the journal, replaced later", caps=NO_CAPS, target=None
    ),
    "weighted_advised_cap": replace(
        WEIGHTED, name="weighted fallback, the advised cap, replaced later", caps=ADVISED, target=None
    ),
    "weighted_for_good": NOBODY,
    "weighted_uncapped_for_good": replace(
        NOBODY, name="weighted fallback, no cap on the journal, nobody looks", caps=NO_CAPS
    ),
    "weighted_advised_for_good": replace(NOBODY, name="weighted fallback, the advised cap, nobody looks", caps=ADVISED),
    "reviews10_uncapped": replace(
        REVIEWS, name="ten good reviews a week, no cap on the journal", caps=NO_CAPS, target=None
    ),
    "careless20_uncapped": replace(
        REVIEWS,
        name="twenty careless reviews a week, no cap on the journal",
        caps=NO_CAPS,
        reviews=20,
        careful=False,
        target=None,
    ),
    "missing_for_good": replace(MISSING, name="missing, never re-judged", rejudged_after=None, target=None),
}
REGIMES = (ORACLE, *NAMED.values(), *BESIDE.values())


def main() -> None:
    parser = scratch.parser(__doc__, quick="4 runs instead of 200", smoke="one run of 14 days")
    parser.add_argument("--runs", type=int, help="how many runs; each has a seed of its own, from 0 up")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes; their number changes no figure")
    parser.add_argument("--reads", type=int, default=1, choices=[n for n in range(1, A_DAY + 1) if A_DAY % n == 0])
    parser.add_argument("--days", type=int, help="of a run")
    parser.add_argument("--first-seed", type=int, default=0, help="of the runs; each takes the next")
    parser.add_argument("--policies", action="store_true", help="compare policies in changing worlds instead")
    given = parser.parse_args()
    usual_runs, usual_days = SIZES[given.size]
    seeds = range(given.first_seed, given.first_seed + (given.runs or usual_runs))
    days = given.days or usual_days
    if given.policies:
        compared = policies.contests(seeds, days=days, workers=given.workers)
        print(policies.report(compared))
        called = policies.null_lessons(seeds[::READING_EVERY], days=LESSON_DAYS[given.size], workers=given.workers)
        print(json.dumps(policies.measured(compared, called)))
        return
    found = runs(seeds, REGIMES, days=days, reads=given.reads, workers=given.workers)
    told = stories.stories(seeds[::READING_EVERY], days=days, workers=given.workers)
    print(report(found, told))
    print(json.dumps(measured(found, told)))


def report(found: Found, told: Mapping[str, Sequence[Story]]) -> str:
    head = f"{len(found[ORACLE.name])} runs; the best arm loses {LOSS:.0%} of its grades"
    late = f"a late verdict comes in {LATE} days"
    return "\n".join([f"{head}; {late}", figures.table(found, REGIMES), "", stories.table(told)])


def measured(found: Found, told: Mapping[str, Sequence[Story]]) -> dict[str, Any]:
    """The figures by name: ratios of regret to the oracle's; biases in reward."""
    return {
        **{name: round(figures.ratio(found, regime), 3) for name, regime in NAMED.items()},
        "victim_bias": round(figures.bias(found, MISSING), 4),
        "intervals": {name: _rounded(figures.interval(found, regime)) for name, regime in NAMED.items()},
        "beside": {name: round(figures.ratio(found, regime), 3) for name, regime in BESIDE.items()},
        "biases": {name: round(figures.bias(found, regime), 4) for name, regime in (NAMED | BESIDE).items()},
        "oracle_regret": round(figures.mean_regret(found, ORACLE), 1),
        "runs": len(found[ORACLE.name]),
        "reading": stories.measured(told),
    }


def _rounded(pair: tuple[float, float]) -> list[float]:
    return [round(each, 3) for each in pair]


if __name__ == "__main__":
    main()
