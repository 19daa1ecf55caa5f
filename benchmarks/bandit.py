"""How fast are choosing and learning, beside libraries that forget nothing and know less? And is a correction cheap?

Select and update with 8, 100 and 10,000 arms; then a ledger of a million rows, on SQLite and on PostgreSQL: added up
again from nothing, compared bit for bit, and corrected (a reverse, an apply, the buckets, committed). Times are medians
of one run, everything in turn, and ratios are of medians of the same run: by the wall, but for the first three steps,
which compute and wait for nothing, by the processor's time.

"select" goes from the buckets, in memory, to an arm: posteriors, P(best), floor, draw; it is held against the bare
quadrature of P(best), which asks the incomplete beta function for every arm at every point. "read anew" has the
database tell the buckets, policy and arms first; "cached" asks it only whether anything changed. A "decision" does
more: who may be chosen, limits, feedback, words and numbers on record, committed; and an update is committed, too.

    bin/setup rivals                            # the other libraries, from requirements-rivals.txt
    python benchmarks/bandit.py [--quick | --smoke]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from benchmarks.selecting.rivals import WORDS, installed
from tests import postgres

ROOT = Path(__file__).resolve().parent.parent
# Rows of the ledger, how often a step is repeated, and numbers of arms.
SIZES = {
    Size.FULL: (1_000_000, 60, (8, 100, 10_000)),
    Size.QUICK: (20_000, 6, (8, 100)),
    Size.SMOKE: (100, 1, (3,)),
}
# What was promised; see the design.
AIMS = {
    "select_vs_quadrature": 1.2,
    "select_cached_ms": 2.0,
    "correction_ms_sqlite": 10.0,
    "correction_ms_postgres": 10.0,
    "replay_s": 3.0,
}
NAMES = {"SQLite": "sqlite", "PostgreSQL": "postgres"}


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="20,000 rows, and 8 and 100 arms", smoke="100 rows, 3 arms, without PostgreSQL"
    )
    size = parser.parse_args().size
    rows, repeats, sizes = SIZES[size]
    with tempfile.TemporaryDirectory() as state:
        times = measure("sizes", f"{state}/sizes", repeats, *sizes)
        print(table(times))
        print(rivals_said())
        databases = {"SQLite": measure("ledger", f"{state}/ledger", rows, repeats)}
        if size is not Size.SMOKE:
            with postgres.server() as url:
                databases["PostgreSQL"] = measure("ledger", f"{state}/postgres", rows, repeats, url)
    print(million(rows, databases))
    print(json.dumps(figures(times, databases)))


def measure(part: str, state: str, *arguments: object) -> dict:
    """What a part says in its last line, run in a process of its own: settings are of one database."""
    command = [sys.executable, "-m", f"benchmarks.selecting.{part}", state, *map(str, arguments)]
    Path(state).mkdir(mode=0o700)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def table(times: dict[str, dict[str, float]]) -> str:
    """Milliseconds by step and number of arms, and how a selection compares with the bare quadrature."""
    sizes = list(times)
    lines = [f"{'milliseconds':24}" + "".join(f"{int(arms):>12,} arms" for arms in sizes)]
    lines += [f"{step:24}" + "".join(f"{times[arms][step]:17.3f}" for arms in sizes) for step in times[sizes[0]]]
    ratios = "".join(f"{vs_quadrature(times[arms]):17.2f}" for arms in sizes)
    return "\n".join([*lines, f"{'select ÷ plain':24}{ratios}"])


def vs_quadrature(times: dict[str, float]) -> float:
    """A selection from the buckets against the bare quadrature alone."""
    return times["select"] / times["plain quadrature"]


def rivals_said() -> str:
    missing = ", ".join(name for name in WORDS if name not in installed())
    left_out = [f"Left out, because not installed (bin/setup rivals): {missing}."] if missing else []
    ours = "ours: P(best) itself, fractional rewards, decay by time, any reward undone exactly, all in the database."
    return "\n".join([ours, *(WORDS[name] for name in installed()), *left_out])


def million(rows: int, databases: dict[str, dict]) -> str:
    return "\n".join(
        f"{name}: {rows:,} rows added up and compared in {found['replay_s']:.2f} s, into empty buckets in "
        f"{found['written_s']:.2f} s, {'bit for bit' if found['bit_equal'] else 'WRONG'}; a correction takes "
        f"{found['correction_ms']:.2f} ms (the slowest {found['correction_worst_ms']:.0f})"
        for name, found in databases.items()
    )


def figures(times: dict[str, dict[str, float]], databases: dict[str, dict]) -> dict[str, object]:
    """The headline: the worst ratio of all sizes, the slower replay; a cached selection with the fewest arms."""
    sizes = list(times.values())
    found: dict[str, object] = {
        "select_vs_quadrature": round(max(map(vs_quadrature, sizes)), 3),
        "select_cached_ms": round(sizes[0]["select, cached"], 3),
        **{f"correction_ms_{short}": correction(databases.get(name)) for name, short in NAMES.items()},
        "replay_s": round(max(each["replay_s"] for each in databases.values()), 2),
        "bit_equal": all(each["bit_equal"] for each in databases.values()),
    }
    missed = [name for name, aim in AIMS.items() if found[name] is not None and found[name] > aim]
    return {**found, "missed": missed, "sizes": times, "databases": databases}


def correction(measured: dict | None) -> float | None:
    """Milliseconds; None where the database was left out."""
    return None if measured is None else round(measured["correction_ms"], 2)


if __name__ == "__main__":
    main()
