"""Are decisions drawn as their logged chances say? Off-policy estimates and holdouts stand and fall with that.

20,000 decisions through the site's own selection, on a site where everything that decides who may be chosen happens
again and again (`benchmarks/deciding/scene.py`): supply, pauses, retirements, merges, probation, the limit of reading,
feedback on it, substitution, contexts, overrides, retries, changes of policy. Draws are compared with chances by
chi-square, in groups of equal eligible sets (`benchmarks/deciding/agreement.py`). Each row's chances add up to 1, none
is below what the policy promises, an override logs 1, and a retry gets the same row.

    python benchmarks/propensities.py [--quick | --smoke] [--seed N]
"""

import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.deciding.agreement import agreement
from benchmarks.scratch import Size

DECISIONS = {Size.FULL: 20_000, Size.QUICK: 1_500, Size.SMOKE: 100}
# Draws that are as their chances say come out with less once in so many.
LEAST_P = 0.001


def main() -> None:
    parser = scratch.parser(__doc__, quick="1,500 decisions instead of 20,000", smoke="100 decisions")
    parser.add_argument("--seed", type=int, default=1, help="of what happens on the site; the draws are hashes of ids")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state)
        from benchmarks.deciding.scene import Scene, odds_of

        scene, start = Scene(seed=given.seed), time.monotonic()
        scene.run(DECISIONS[given.size])
        found = agreement((odds_of(row), row.arm.name) for row in scene.drawn)
    print(f"{time.monotonic() - start:.0f} s; {found.draws:,} draws in {found.groups} eligible sets; what happened:")
    for name, count in sorted(scene.seen.items()):
        print(f"{count:7,} {name}")
    for what in scene.broken[:20]:
        print("BROKEN", what)
    print(f"chi-square {found.chi_square:.1f} with {found.freedom} degrees of freedom, p = {found.p:.3f}")
    figures = {
        "draws": found.draws,
        "p": round(found.p, 4),
        "least_p": round(found.least_p, 4),
        "broken": len(scene.broken),
        "missed": [name for name, p in (("p", found.p), ("least_p", found.least_p)) if p <= LEAST_P],
        "seen": dict(sorted(scene.seen.items())),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
