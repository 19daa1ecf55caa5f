"""How much of what lost grades cost the bandit a few reviews a week win back, with and without recalibration.

The world of `benchmarks/regret.py`, where the best arm loses 36 % of its grades; here no verdict ever comes late.
A good review reads the evidence; a careless one starts from the number shown (`benchmarks/simulation/people.py`). The
journal has no cap here: that limits a bias whatever it is, and leaves recalibration nothing to win (`regret.py`).

    python benchmarks/recalibration.py [--quick | --smoke]
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from benchmarks.simulation import figures
from benchmarks.simulation.regimes import JOURNAL, NO_CAPS, NOBODY, ORACLE, REVIEWS
from benchmarks.simulation.run import runs
from benchmarks.simulation.world import DAYS

CARELESS = replace(REVIEWS, name="twenty careless reviews a week, recalibrated", reviews=20, careful=False, target=None)
COMPARED = (
    ORACLE,
    NOBODY,
    replace(REVIEWS, name="ten good reviews a week, no recalibration", recalibrated=False, target=None),
    REVIEWS,
    JOURNAL,
    replace(REVIEWS, name="journal learned as reward, ten good reviews, recalibrated", weights=JOURNAL.weights),
    replace(REVIEWS, name="five good reviews a week, recalibrated", reviews=5, target=None),
    replace(CARELESS, name="twenty careless reviews a week, no recalibration", recalibrated=False),
    CARELESS,
)
# Runs, and days of each.
SIZES = {Size.FULL: (40, DAYS), Size.QUICK: (4, DAYS), Size.SMOKE: (1, 14)}
REGIMES = tuple(replace(regime, caps=NO_CAPS) for regime in COMPARED)


def main() -> None:
    parser = scratch.parser(__doc__, quick="4 runs instead of 40", smoke="one run of 14 days")
    count, days = SIZES[parser.parse_args().size]
    found = runs(range(count), REGIMES, days=days)
    print(figures.table(found, REGIMES))
    ratios = {regime.name: round(figures.ratio(found, regime), 2) for regime in REGIMES[1:]}
    oracle = round(figures.mean_regret(found, ORACLE), 1)
    print(json.dumps({"runs": len(found[ORACLE.name]), "oracle_regret": oracle, "ratios": ratios}))


if __name__ == "__main__":
    main()
