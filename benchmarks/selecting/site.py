"""A bandit with as many arms, and a ledger of as many rows, as wanted."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bandit.models import Bandit

FIRST_DAY, DAYS = date(2026, 1, 1), 90
SOURCES = ("judge", "human", "trajectory", "journal")
# Of ten rows eight are first rewards, one takes one back and one puts another in its place.
PARTS = (("apply", 1, 0.8), ("reverse", 1, 0.1), ("apply", 2, 0.1))
STEPS = 20
COLUMNS = (
    "bandit_id, arm_id, observation, revision, op, grader_id, value_micro, cost_micro, effective_day, recorded_at, "
    "settlement, provisional"
)
# The whole numbers from one to before another, as i; and the day that falls to i.
POSTGRES = ("generate_series({}::bigint, {} - 1) AS numbers(i)", f"DATE '{FIRST_DAY}' + (i % {DAYS})::int")
SQLITE = (
    "(WITH RECURSIVE n(i) AS (SELECT {} UNION ALL SELECT i + 1 FROM n WHERE i < {} - 1) SELECT i FROM n)",
    f"date('{FIRST_DAY}', '+' || (i % {DAYS}) || ' days')",
)


def bandit_with(arms: int) -> tuple[Bandit, list[str]]:
    """A new bandit with so many arms; it and their names."""
    from bandit.models import Arm, Bandit

    names = [f"arm-{number:05}" for number in range(arms)]
    made = Bandit.objects.create(name=f"of-{arms}", title=f"{arms} arms")
    Arm.objects.bulk_create([Arm(bandit=made, name=name) for name in names], batch_size=500)
    return made, names


def fill(bandit: Bandit, rows: int) -> None:
    """So many rows of its ledger, corrections among them, over DAYS days; the buckets stay as they are.

    By SQL, because a million rewards one by one take the better part of an hour; the ledger's own triggers look at
    each. In steps, because PostgreSQL plans what the triggers ask by what it knew of the table before.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        for op, revision, share in PARTS:
            upto = int(share * rows)
            step = max(upto // STEPS, 1)
            for low in range(0, upto, step):
                cursor.execute(_insert(bandit, op, revision, low, min(low + step, upto)))
                cursor.execute("ANALYZE bandit_ledgerentry")


def _insert(bandit: Bandit, op: str, revision: int, low: int, high: int) -> str:
    """Row i: an arm, a grader and a day by i's remainders, a value by a multiplication that scatters it."""
    from django.db import connection

    from bandit.models import Grader

    first = min(bandit.arms.values_list("pk", flat=True))
    graders = [Grader.objects.get_or_create(source=source, model="bench")[0].pk for source in SOURCES]
    if connection.vendor == "postgresql":
        series, day = POSTGRES
    else:
        series, day = SQLITE
    values = (
        f"{bandit.pk}, {first} + (i / 3) % {bandit.arms.count()}, 'session-' || i, {revision}, '{op}', "
        f"{min(graders)} + (i / 7) % {len(graders)}, (i * 7919 + {revision}) % 1000001, "
        f"CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 31) % 4000000 END, {day}, CURRENT_TIMESTAMP, 's', FALSE"
    )
    # Our own numbers, all of them.
    return f"INSERT INTO bandit_ledgerentry ({COLUMNS}) SELECT {values} FROM {series.format(low, high)}"  # noqa: S608


def by_hand() -> dict[tuple[object, ...], tuple[int, ...]]:
    """The buckets as Python's own integers say, one ledger row after the other."""
    from bandit.models import LedgerEntry

    fields = ("arm", "grader", "effective_day", "op", "value_micro", "cost_micro")
    sums: dict[tuple[object, ...], tuple[int, ...]] = {}
    for *key, op, value, cost in LedgerEntry.objects.values_list(*fields).iterator(20_000):
        sign = 1 if op == "apply" else -1
        n, s, q, dear, costed = sums.get(tuple(key), (0,) * 5)
        known = 0 if cost is None else sign
        sums[tuple(key)] = (n + sign, s + sign * value, q + sign * value**2, dear + sign * (cost or 0), costed + known)
    return {key: held for key, held in sums.items() if any(held)}


def stored() -> dict[tuple[object, ...], tuple[int, ...]]:
    from bandit.models import Bucket

    fields = ("arm", "grader", "effective_day", "n", "s", "q", "cost", "costed")
    rows = Bucket.objects.values_list(*fields).iterator()
    return {tuple(row[:3]): tuple(row[3:]) for row in rows if any(row[3:])}
