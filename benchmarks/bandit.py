"""How fast are choosing and learning, and is a correction cheap?

A selection with 8, 100 and 10,000 arms. Then a ledger of a million rows, on SQLite and on PostgreSQL: added up from
nothing, compared bit for bit, and corrected (a reverse, an apply and the buckets, committed). Times are medians of one
run, by the clock; those of steps that wait for nothing are processor times.

"select" goes from buckets in memory to an arm: posteriors, P(best), floor, draw. It is compared with the plain
quadrature of P(best), which evaluates the incomplete beta function for every arm at every point. "read anew" loads
buckets, policy and arms from the database first; "cached" only checks whether anything has changed. A "decision" also
checks eligibility, limits and feedback, stores its explanation, and commits. An "update" commits, too.

    python benchmarks/bandit.py [--quick | --smoke]
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betainc, betaincinv

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from tests import postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from bandit.core.posterior import Posterior
    from bandit.core.table import RewardRow
    from bandit.models import Bandit

# Rows of the ledger, how often a step is repeated, and numbers of arms.
SIZES = {
    Size.FULL: (1_000_000, 60, (8, 100, 10_000)),
    Size.QUICK: (20_000, 6, (8, 100)),
    Size.SMOKE: (100, 1, (3,)),
}
FIRST_DAY, DAYS = date(2026, 1, 1), 90
NOW = datetime.combine(FIRST_DAY + timedelta(days=DAYS), time_of_day(12), UTC)
QUADRATURE_POINTS = 1024
# The rewards that a bandit has had: at least so many, or so many for each arm.
MIN_ROWS, ROWS_PER_ARM = 2_000, 5
# Steps are repeated less often with many arms: the plain quadrature takes seconds at 10,000.
MAX_ARMS_TIMES_REPEATS, MIN_REPEATS = 30_000, 3
STEPS_TIMED_BY_PROCESSOR = ("plain quadrature", "our quadrature", "select")
LEDGER_ARMS, REPLAYS = 8, 3
SOURCES = ("judge", "human", "trajectory", "journal")
# Of ten ledger rows, eight are first rewards, one takes a reward back and one puts another in its place.
LEDGER_PARTS = (("apply", 1, 0.8), ("reverse", 1, 0.1), ("apply", 2, 0.1))
INSERTS_PER_PART = 20
# The numbers from low to high as column i, and the day of row i.
POSTGRES_SERIES = "generate_series({low}::bigint, {high} - 1) AS numbers(i)", f"DATE '{FIRST_DAY}' + (i % {DAYS})::int"
SQLITE_SERIES = (
    "(WITH RECURSIVE n(i) AS (SELECT {low} UNION ALL SELECT i + 1 FROM n WHERE i < {high} - 1) SELECT i FROM n)",
    f"date('{FIRST_DAY}', '+' || (i % {DAYS}) || ' days')",
)


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="20,000 rows, and 8 and 100 arms", smoke="100 rows, 3 arms, without PostgreSQL"
    )
    size = parser.parse_args().size
    rows, repeats, arm_counts = SIZES[size]
    times = run_with_new_site(time_selections, repeats, arm_counts)
    print_selection_times(times)
    databases = {"SQLite": run_with_new_site(time_ledger, rows, repeats)}
    if size is not Size.SMOKE:
        with postgres.server() as url:
            databases["PostgreSQL"] = run_with_new_site(time_ledger, rows, repeats, database=url)
    for name, ledger in databases.items():
        print(f"{name}, {rows:,} rows: {ledger}")
    correction_ms = {name: round(ledger["correction_ms"], 2) for name, ledger in databases.items()}
    figures = {
        "select_vs_quadrature": round(max(map(select_vs_quadrature, times.values())), 3),
        "select_cached_ms": round(next(iter(times.values()))["select, cached"], 3),
        "correction_ms_sqlite": correction_ms["SQLite"],
        "correction_ms_postgres": correction_ms.get("PostgreSQL"),
        "replay_s": round(max(ledger["replay_s"] for ledger in databases.values()), 2),
        "bit_equal": all(ledger["bit_equal"] for ledger in databases.values()),
        "sizes": times,
        "databases": databases,
    }
    print(json.dumps(figures))


def run_with_new_site(work: Callable[..., Any], *arguments: object, database: str = "") -> Any:
    """Call `work` in a new process that has a site of its own: a process has the settings of one database."""
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as state,
        ProcessPoolExecutor(1, spawn, _make_site, (state, database)) as process,
    ):
        return process.submit(work, *arguments).result()


def _make_site(state: str, database: str) -> None:
    scratch.site(state, database=database)


def print_selection_times(times: dict[int, dict[str, float]]) -> None:
    steps = next(iter(times.values()))
    rows = [[step, *(f"{of_size[step]:.3f}" for of_size in times.values())] for step in steps]
    rows.append(["select ÷ plain quadrature", *(f"{select_vs_quadrature(each):.2f}" for each in times.values())])
    print(scratch.table(["milliseconds", *(f"{arms:,} arms" for arms in times)], rows))


def select_vs_quadrature(times: dict[str, float]) -> float:
    return times["select"] / times["plain quadrature"]


def clock_ms(work: Callable[[], object], now: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds that one call takes."""
    start = now()
    work()
    return (now() - start) * 1000


# Selections


def time_selections(repeats: int, arm_counts: tuple[int, ...]) -> dict[int, dict[str, float]]:
    return {arms: time_steps(arms, repeats) for arms in arm_counts}


def time_steps(arms: int, repeats: int) -> dict[str, float]:
    """Median milliseconds of each step with this number of arms. All steps run in turn, again and again."""
    from bandit.audit import replay

    bandit, names = make_bandit(arms)
    rows = max(MIN_ROWS, ROWS_PER_ARM * arms)
    fill_ledger(bandit, rows)
    replay(write=True)
    steps = selection_steps(bandit.name, names, rows)
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(max(min(repeats, MAX_ARMS_TIMES_REPEATS // arms), MIN_REPEATS)):
        for name, step in steps.items():
            clock = time.process_time if name in STEPS_TIMED_BY_PROCESSOR else time.perf_counter
            times[name].append(clock_ms(step, clock))
    return {name: round(statistics.median(each), 4) for name, each in times.items()}


def selection_steps(bandit: str, names: list[str], rows: int) -> dict[str, Callable[[], object]]:
    """The steps in their order: after an update no posterior is cached, after a selection it is."""
    from bandit.core.propensity import p_best
    from bandit.models import Bandit
    from bandit.reading import posterior_of, rows_of
    from bandit.selection import select

    dice, sessions, decisions = np.random.default_rng(1), iter(range(rows // 2)), iter(range(1_000_000))
    posterior = posterior_of(bandit, NOW).posterior
    buckets = rows_of(Bandit.objects.named(bandit), posterior.policy, posterior.day)
    return {
        "plain quadrature": lambda: plain_quadrature(posterior.alpha, posterior.beta),
        "our quadrature": lambda: p_best(posterior.alpha, posterior.beta),
        "select": lambda: choose_from_buckets(buckets, posterior, next(decisions)),
        "update, written": lambda: correct(bandit, names, next(sessions), float(dice.random())),
        "select, read anew": lambda: choose(bandit, next(decisions)),
        "select, cached": lambda: choose(bandit, next(decisions)),
        "decision, written": lambda: select(bandit=bandit, decision_id=f"d-{next(decisions)}", supply=None, now=NOW),
    }


def choose_from_buckets(rows: list[RewardRow], like: Posterior, number: int) -> str:
    """An arm by the policy, arms and day of the posterior `like`, without the database."""
    from bandit.core.posterior import chances, fold
    from bandit.core.thompson import draw, uniform

    posterior = fold(rows, arms=like.names, policy=like.policy, today=like.day)
    return draw(chances(posterior.chance_of_best(like.names), like.policy), uniform("bench", str(number)))


def choose(bandit: str, number: int) -> str:
    """An arm by the posterior that the site has now."""
    from bandit.core.thompson import draw, uniform
    from bandit.reading import posterior_of

    return draw(posterior_of(bandit, NOW).chances, uniform(bandit, str(number)))


def plain_quadrature(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """P(best) of each arm, from the incomplete beta function of every arm at every point."""
    low, high = (float(betaincinv(alpha, beta, tail).max()) for tail in (1e-10, 1 - 1e-10))
    cdf = betainc(alpha[:, None], beta[:, None], np.linspace(low, high, QUADRATURE_POINTS)[None, :])
    cdf[:, -1] = 1.0
    log = np.log(np.maximum(cdf, 1e-300))
    others = np.exp(log.sum(axis=0) - log)
    mass = np.diff(cdf, axis=1, prepend=0.0)
    middle = (others + np.concatenate((others[:, :1], others[:, :-1]), axis=1)) / 2
    chance = (mass * middle).sum(axis=1)
    return chance / chance.sum()


# A large ledger


def time_ledger(rows: int, repeats: int) -> dict[str, Any]:
    """Replay and corrections on the database of this process."""
    from bandit.audit import replay

    bandit, names = make_bandit(LEDGER_ARMS)
    fill_ledger(bandit, rows)
    written_ms = clock_ms(lambda: replay(write=True))
    replay_ms = [clock_ms(replay) for _ in range(REPLAYS)]
    is_equal = sum_ledger() == stored_buckets()
    dice, corrections = Random(2), []
    for _ in range(repeats):
        session = dice.randrange(rows // 2)
        corrections.append(clock_ms(lambda session=session: correct(bandit.name, names, session, dice.random())))
    return {
        "replay_s": statistics.median(replay_ms) / 1000,
        "written_s": written_ms / 1000,
        "correction_ms": statistics.median(corrections),
        "correction_worst_ms": max(corrections),
        "bit_equal": is_equal and not replay().differences,
    }


def make_bandit(arms: int) -> tuple[Bandit, list[str]]:
    """A new bandit and the names of its arms."""
    from bandit.models import Arm, Bandit

    names = [f"arm-{number:05}" for number in range(arms)]
    bandit = Bandit.objects.create(name=f"of-{arms}", title=f"{arms} arms")
    Arm.objects.bulk_create([Arm(bandit=bandit, name=name) for name in names], batch_size=500)
    return bandit, names


def fill_ledger(bandit: Bandit, rows: int) -> None:
    """Write so many ledger rows over DAYS days, corrections among them. Buckets stay as they are.

    By SQL, because a million rewards one by one take the better part of an hour; the ledger's triggers check each row.
    In several statements, because PostgreSQL plans the triggers' queries by what it knew of the table before.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        for op, revision, share in LEDGER_PARTS:
            end = int(share * rows)
            step = max(end // INSERTS_PER_PART, 1)
            for low in range(0, end, step):
                cursor.execute(_insert(bandit, op, revision, low, min(low + step, end)))
                cursor.execute("ANALYZE bandit_ledgerentry")


def _insert(bandit: Bandit, op: str, revision: int, low: int, high: int) -> str:
    """Row i has an arm, a grader and a day by i's remainders, and a value by a multiplication that scatters it."""
    from django.db import connection

    from bandit.models import Grader

    first_arm = min(bandit.arms.values_list("pk", flat=True))
    graders = [Grader.objects.get_or_create(source=source, model="bench")[0].pk for source in SOURCES]
    series, day = POSTGRES_SERIES if connection.vendor == "postgresql" else SQLITE_SERIES
    columns = {
        "bandit_id": bandit.pk,
        "arm_id": f"{first_arm} + (i / 3) % {bandit.arms.count()}",
        "observation": "'session-' || i",
        "revision": revision,
        "op": f"'{op}'",
        "grader_id": f"{min(graders)} + (i / 7) % {len(graders)}",
        "value_micro": f"(i * 7919 + {revision}) % 1000001",
        "cost_micro": "CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 31) % 4000000 END",
        "effective_day": day,
        "recorded_at": "CURRENT_TIMESTAMP",
        "settlement": "'s'",
        "provisional": "FALSE",
    }
    values = ", ".join(map(str, columns.values()))
    numbers = series.format(low=low, high=high)
    return f"INSERT INTO bandit_ledgerentry ({', '.join(columns)}) SELECT {values} FROM {numbers}"  # noqa: S608


def sum_ledger() -> dict[tuple[object, ...], tuple[int, ...]]:
    """The buckets by plain integer sums over all ledger rows."""
    from bandit.models import LedgerEntry

    fields = ("arm", "grader", "effective_day", "op", "value_micro", "cost_micro")
    sums: dict[tuple[object, ...], tuple[int, ...]] = {}
    for *key, op, value, cost in LedgerEntry.objects.values_list(*fields).iterator(20_000):
        sign = 1 if op == "apply" else -1
        n, s, q, cost_sum, costed = sums.get(tuple(key), (0,) * 5)
        sums[tuple(key)] = (
            n + sign,
            s + sign * value,
            q + sign * value**2,
            cost_sum + sign * (cost or 0),
            costed + (0 if cost is None else sign),
        )
    return {key: moments for key, moments in sums.items() if any(moments)}


def stored_buckets() -> dict[tuple[object, ...], tuple[int, ...]]:
    from bandit.models import Bucket

    fields = ("arm", "grader", "effective_day", "n", "s", "q", "cost", "costed")
    rows = Bucket.objects.values_list(*fields).iterator()
    return {tuple(row[:3]): tuple(row[3:]) for row in rows if any(row[3:])}


def correct(bandit: str, names: list[str], session: int, value: float) -> None:
    """Give the session of this number another reward, by a person."""
    from django.db import transaction

    from bandit.ledger import Credit, GraderKey, set_credits

    with transaction.atomic():
        change = set_credits(
            {bandit: {names[session // 3 % len(names)]: Credit(value=value, grader=GraderKey(source="human"))}},
            observation=f"session-{session}",
            effective_day=FIRST_DAY + timedelta(days=session % DAYS),
            settlement="bench",
            policy_version="bench",
        )
    assert len(change.reversed) == len(change.applied) == 1, "a correction reverses one reward and applies one"  # noqa: S101


if __name__ == "__main__":
    main()
