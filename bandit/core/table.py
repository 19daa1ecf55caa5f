"""Buckets as columns: integers added up exactly first, made floating-point numbers once, in one fixed order."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MICRO = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One source's rewards of one arm on one day, as exact integers: count n, Σr and Σr² in (squared) micro-units.

    `stratum` is the caller's own further division of them, "" for none.
    """

    arm: str
    source: str
    day: date
    n: int
    s: int
    q: int
    stratum: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows as columns, summed exactly over graders and strata, in the order of arm, source and day.

    `n` rewards; `s`, `f` and `q` are Σr, Σ(1−r) and Σr² in units of 1; `age` in days, 0 today.
    """

    names: tuple[str, ...]
    sources: tuple[str, ...]
    arm: Ints
    source: Ints
    age: Floats
    n: Floats
    s: Floats
    f: Floats
    q: Floats

    def by_arm(self, values: Floats) -> Floats:
        """Σ of `values` over each arm's rows, in the order of `names`."""
        sums: Floats = np.bincount(self.arm, weights=values, minlength=len(self.names)).astype(np.float64)
        return sums


def tabulate(rows: Iterable[Row], names: tuple[str, ...], today: date) -> Table:
    """Rows in any order as a table; rows of one arm, source and day are added up, sums of nothing are left out.

    Raises KeyError for a row of an arm that is not in `names`.
    """
    sums: dict[tuple[str, str, date], tuple[int, int, int]] = {}
    for row in rows:
        key = (row.arm, row.source, row.day)
        n, s, q = sums.get(key, (0, 0, 0))
        sums[key] = (n + row.n, s + row.s, q + row.q)
    keys = sorted(key for key, (n, _, _) in sums.items() if n)
    sources = tuple(sorted({source for _, source, _ in keys}))
    arm_at, source_at = positions(names), positions(sources)
    columns = np.array([sums[key] for key in keys], dtype=np.int64).reshape(-1, 3)
    count, total, squares = columns[:, 0], columns[:, 1], columns[:, 2]
    return Table(
        names=names,
        sources=sources,
        arm=np.array([arm_at[arm] for arm, _, _ in keys], dtype=np.int64),
        source=np.array([source_at[source] for _, source, _ in keys], dtype=np.int64),
        age=np.array([(today - day).days for _, _, day in keys], dtype=np.float64),
        n=count.astype(np.float64),
        s=total / MICRO,
        f=(count * MICRO - total) / MICRO,
        q=squares / MICRO**2,
    )


def positions(names: tuple[str, ...]) -> dict[str, int]:
    """Each name's place."""
    return {name: i for i, name in enumerate(names)}
