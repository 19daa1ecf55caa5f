"""What do lost grades cost a bandit, by what stands in for them?

Eight arms, fifty sessions a day for sixty days. The best arm loses 36 % of its grades to worktrees, overwritten logs
and the judge's outages (`benchmarks/simulation/world.py` says how). Regret is how much less the chosen arms earn, by
their true means, than the best arm would have. The oracle is the same bandit with every grade true and at once. All
regimes run on the site's own chain and the bandit's own cores, with the same worlds, chances and draws. The posterior
is read once a day, so a day's choices share their odds.

With `--policies`, it compares today's policy of a new site with that of the first release and three simple rivals, in
sixteen worlds in which arms stay the same, change, or have good and bad days, and in two more
(`benchmarks/simulation/worlds.py`).

    python benchmarks/regret.py [--policies] [--quick | --smoke] [--runs N] [--first-seed N] [--days N]
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.machine_human import MachineHumanPair
from bandit.core.posterior import chances
from bandit.core.thompson import draw, uniform
from benchmarks import scratch
from benchmarks.scratch import Size
from benchmarks.simulation import policies
from benchmarks.simulation.policies import interval, ratio
from benchmarks.simulation.regimes import BESIDE, LATE_DAYS, MISSING, NAMED, ORACLE, Regime
from benchmarks.simulation.site import SimulatedSite
from benchmarks.simulation.world import ARMS, DAYS, LOSS, MEANS, SESSIONS_PER_DAY, VICTIM, Floats, make_world

# Runs, and days of each.
SIZES = {Size.FULL: (200, DAYS), Size.QUICK: (4, DAYS), Size.SMOKE: (1, 14)}
WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run's regret; the victim's share of all choices; and its posterior mean at the end, with all late verdicts."""

    regret: float
    share: float
    mean: float


Runs = Mapping[str, Sequence[Run]]  # by the regime's name


def main() -> None:
    parser = scratch.parser(__doc__, quick="4 runs instead of 200", smoke="one run of 14 days")
    parser.add_argument("--runs", type=int, help="how many runs; each has a seed of its own")
    parser.add_argument("--first-seed", type=int, default=0, help="the seed of the first run; the others follow")
    parser.add_argument("--days", type=int, help="of a run")
    parser.add_argument("--policies", action="store_true", help="compare policies in changing worlds instead")
    options = parser.parse_args()
    default_runs, default_days = SIZES[options.size]
    seeds = range(options.first_seed, options.first_seed + (options.runs or default_runs))
    days = options.days or default_days
    if options.policies:
        lives = policies.live_in_worlds(seeds, days)
        print(policies.table(lives))
        print(json.dumps(policies.figures(lives)))
        return
    runs = run_regimes(seeds, (ORACLE, *NAMED.values(), *BESIDE.values()), days=days)
    print(f"{len(seeds)} runs; the best arm loses {LOSS:.0%} of its grades; a late verdict comes in {LATE_DAYS} days")
    print(table(runs))
    print(json.dumps(figures(runs)))


def run_regimes(
    seeds: Iterable[int], regimes: Sequence[Regime], *, days: int = DAYS, workers: int | None = None
) -> Runs:
    """Run all regimes in each seed's world. A run depends on its seed alone, not on the number of workers."""
    with ProcessPoolExecutor(workers) as pool:
        by_seed = list(pool.map(partial(run_in_world, regimes=regimes, days=days), seeds))
    return {regime.name: [runs[number] for runs in by_seed] for number, regime in enumerate(regimes)}


def run_in_world(seed: int, regimes: Sequence[Regime], days: int) -> list[Run]:
    return [run(seed, regime, days) for regime in regimes]


def run(seed: int, regime: Regime, days: int) -> Run:
    """One regime in this seed's world, day by day."""
    world, site, pairs = make_world(seed, days), SimulatedSite(regime), list[MachineHumanPair]()
    for day in range(days):
        if regime.rejudged_after is not None:
            site.judge_again(day - regime.rejudged_after)
        if regime.reviews and day and day % WEEK == 0:
            pairs += site.review()
            site.fit_offsets(pairs)
        odds = chances(site.posterior(day).chance_of_best(ARMS), site.policy)
        for slot in range(SESSIONS_PER_DAY):
            arm = draw(odds, uniform(f"simulation-{seed}", f"{day}/{slot}"))
            site.finish(world.facts(day, slot, ARMS.index(arm)))
    site.judge_again(days)
    arms = [session.facts.arm for session in site.sessions]
    return Run(
        regret=sum(MEANS[VICTIM] - MEANS[arm] for arm in arms),
        share=arms.count(VICTIM) / len(arms),
        mean=site.posterior(days).arms[ARMS[VICTIM]].mean,
    )


# Figures


def regrets(runs: Runs, regime: Regime) -> Floats:
    return np.array([run.regret for run in runs[regime.name]])


def regret_ratio(runs: Runs, regime: Regime) -> float:
    """The mean regret, relative to the oracle's."""
    return ratio(regrets(runs, regime), regrets(runs, ORACLE))


def bias(runs: Runs, regime: Regime) -> float:
    """How far the victim's posterior mean is off at the end, on average over the runs."""
    return float(np.mean([run.mean for run in runs[regime.name]])) - MEANS[VICTIM]


def figures(runs: Runs) -> dict[str, Any]:
    """The figures by name: regrets relative to the oracle's, and biases of the victim's mean."""
    intervals = {name: interval(regrets(runs, regime), regrets(runs, ORACLE)) for name, regime in NAMED.items()}
    return {
        **{name: round(regret_ratio(runs, regime), 3) for name, regime in NAMED.items()},
        "victim_bias": round(bias(runs, MISSING), 4),
        "intervals": {name: [round(bound, 3) for bound in bounds] for name, bounds in intervals.items()},
        "beside": {name: round(regret_ratio(runs, regime), 3) for name, regime in BESIDE.items()},
        "biases": {name: round(bias(runs, regime), 4) for name, regime in (NAMED | BESIDE).items()},
        "oracle_regret": round(float(regrets(runs, ORACLE).mean()), 1),
        "runs": len(runs[ORACLE.name]),
    }


def table(runs: Runs) -> str:
    headings = ["regime", "regret", "ratio", "90 % interval", "best arm's share", "its mean is off by"]
    rows = []
    for regime in (ORACLE, *NAMED.values(), *BESIDE.values()):
        mine = regrets(runs, regime)
        low, high = interval(mine, regrets(runs, ORACLE))
        share = np.mean([run.share for run in runs[regime.name]])
        row = [f"{mine.mean():.1f}", f"{regret_ratio(runs, regime):.3f}", f"{low:.3f} – {high:.3f}"]
        rows.append([regime.name, *row, f"{share:.2f}", f"{bias(runs, regime):+.4f}"])
    return scratch.table(headings, rows)


if __name__ == "__main__":
    main()
