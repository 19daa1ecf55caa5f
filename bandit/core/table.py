"""Buckets as columns: integers added up exactly first, made floating-point numbers once, in one fixed order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from operator import attrgetter
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MICRO = 1_000_000
# The source of an abstention: an observation that nobody could grade is on record, with no value and no weight.
ABSTAINED = "unscored"
# Sources that look at the work, each in its own words: their spread says how much a grade is worth.
JUDGE = "judge"
GRADED = ("human", JUDGE)
# A row that is read as it stands has no line.
NO_LINE = -1
# What a bucket adds up: rewards, Σr, Σr², Σ of the known costs, and how many are known.
MOMENTS = ("n", "s", "q", "cost", "costed")
MEASURES = attrgetter("salience", *MOMENTS)

Key = TypeVar("Key")
Sums = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRow:
    """One source's rewards of one arm on one day, as exact integers: count n, Σr and Σr² in (squared) micro-units.

    `stratum` is the caller's own further division of them, "" for none; `context` the circumstance that a baseline is
    taken from them for, "" for none. `salience` in percent says how much of these sessions was this arm's doing.
    `cost` is Σ of what is known of their cost, in micro-dollars, and `costed` of how many rewards it is known.
    `judge` names a judge by all that makes it one, "" where there is none to tell apart. `version`, `view`, `witness`,
    `standing` and `agent` say who graded what, as in the ledger.
    """

    arm: str
    source: str
    day: date
    n: int
    s: int
    q: int
    stratum: str = ""
    context: str = ""
    salience: int = 100
    cost: int = 0
    costed: int = 0
    judge: str = ""
    version: str = ""
    view: str = ""
    witness: str = ""
    standing: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows as columns, summed exactly over graders and strata, in the order of arm, source, day and salience.

    `n` rewards; `s`, `f` and `q` are Σr, Σ(1−r) and Σr² in units of 1; `age` in days, 0 today; `salience` in [0, 1];
    `cost` in dollars, of `costed` of the rewards. `factor` in [0, 1] is what the row's standing leaves of its weight,
    `capped` in (0, 1] what its agent's cap does.

    `line` is the number of the map by which a row is read, NO_LINE where it is read as it stands. With one, `s` is the
    mapped sum, which may be outside [0, n], `raw` what it was before, and `doubt` the variance of the map at its arm.
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
    salience: Floats
    cost: Floats
    costed: Floats
    factor: Floats
    capped: Floats
    line: Ints
    raw: Floats
    doubt: Floats

    @property
    def slot(self) -> Ints:
        """A number for each (arm, source)."""
        slots: Ints = self.arm * max(len(self.sources), 1) + self.source
        return slots

    def weighing(self, factor: float, capped: float) -> Self:
        """The same, with what their standing leaves of the rows, and their agents' caps."""
        return replace(self, factor=np.full(len(self.n), factor), capped=np.full(len(self.n), capped))

    def by_arm(self, values: Floats) -> Floats:
        """Σ of `values` over each arm's rows, in the order of `names`."""
        sums: Floats = np.bincount(self.arm, weights=values, minlength=len(self.names)).astype(np.float64)
        return sums


def tabulate(
    rows: Iterable[RewardRow], names: tuple[str, ...], today: date, sources: tuple[str, ...] | None = None
) -> Table:
    """Rows in any order as a table; rows of one arm, source, day and salience are added up, sums of nothing left out.

    `sources`, sorted, where the table is to have more of them than its rows. Raises KeyError for a row of an arm that
    is not in `names`.
    """
    held = list(rows)
    sources = tuple(sorted({row.source for row in held})) if sources is None else sources
    arm_at, source_at = positions(names), positions(sources)
    columns = np.array(
        [(arm_at[row.arm], source_at[row.source], row.day.toordinal(), *MEASURES(row)) for row in held], dtype=np.int64
    ).reshape(-1, 9)
    arm, source, day, salience, count, total, squares, cost, costed = _summed(columns).T
    return Table(
        names=names,
        sources=sources,
        arm=arm,
        source=source,
        age=(today.toordinal() - day).astype(np.float64),
        n=count.astype(np.float64),
        s=total / MICRO,
        f=(count * MICRO - total) / MICRO,
        q=squares / MICRO**2,
        salience=salience / 100,
        cost=cost / MICRO,
        costed=costed.astype(np.float64),
        factor=np.ones(len(arm)),
        capped=np.ones(len(arm)),
        line=np.full(len(arm), NO_LINE),
        raw=total / MICRO,
        doubt=np.zeros(len(arm)),
    )


def joined(tables: Sequence[Table]) -> Table:
    """Tables of the same names and sources as one, one after the other; at least one."""
    if len(tables) == 1:
        return tables[0]
    columns = [each.name for each in fields(Table) if each.name not in {"names", "sources"}]
    whole: dict[str, Any] = {name: np.concatenate([getattr(table, name) for table in tables]) for name in columns}
    return replace(tables[0], **whole)


def _summed(columns: Ints) -> Ints:
    """In the order of the first four columns; rows that are alike there as one, sums of nothing left out."""
    if not len(columns):
        return columns
    ordered = columns[np.lexsort(columns[:, 3::-1].T)]
    starts = np.flatnonzero(np.append(True, (ordered[1:, :4] != ordered[:-1, :4]).any(axis=1)))
    sums: Ints = np.hstack((ordered[starts, :4], np.add.reduceat(ordered[:, 4:], starts, axis=0)))
    kept: Ints = sums[sums[:, 4] != 0]
    return kept


def add(sums: dict[Key, Sums], key: Key, row: RewardRow) -> None:
    """Add the row's n, s, q, cost and costed to what `sums` has for `key`."""
    n, s, q, cost, costed = sums.get(key, (0, 0, 0, 0, 0))
    sums[key] = (n + row.n, s + row.s, q + row.q, cost + row.cost, costed + row.costed)


def positions(names: tuple[str, ...]) -> dict[str, int]:
    """Each name's place."""
    return {name: i for i, name in enumerate(names)}
