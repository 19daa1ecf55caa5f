"""Reward buckets as NumPy columns: sums are exact integers, converted to floats once and in one fixed order."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MICRO = 1_000_000
# The source of an abstention: a recorded observation that nobody could grade, with no value and no weight.
ABSTAINED = "unscored"
# Sources that grade the work itself. Their variance determines how much evidence one grade is.
JUDGE = "judge"
GRADED = ("human", JUDGE)
# A key range with more combinations than this can't be packed into one int64 code.
MAX_CODES = 2**62
# `distinct` sorts when the range of the values is at least this many times their count.
MAX_SPARSITY = 16
# `Table.estimate` of a row whose grades count.
GRADES = -1
# What a bucket sums: the number of rewards, Σr, Σr², Σ of the known costs, and the number of known costs.
MOMENTS = ("n", "s", "q", "cost", "costed")
moments_of = attrgetter(*MOMENTS)

Sums = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRow:
    """One source's rewards of one arm on one day, as exact integers: count n, Σr and Σr² in (squared) micro-units.

    `stratum` is the caller's own subdivision and `context` the circumstance that a baseline corrects for; "" for none.
    `salience` in percent is the arm's share in these sessions' work. `cost` is Σ of the known costs in micro-dollars,
    `costed` the number of rewards with a known cost. `judge` identifies the judge (model, prompt and so on), "" if
    there is none. `version`, `view`, `witness`, `standing` and `agent` are the ledger's columns.
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


class RowKind(NamedTuple):
    """A `RewardRow` without its day and sums. Many rows share few kinds."""

    arm: str
    source: str
    stratum: str
    context: str
    salience: int
    judge: str
    version: str
    view: str
    witness: str
    standing: str
    agent: str


kind_of = attrgetter(*RowKind._fields)


@dataclass(frozen=True, slots=True, eq=False)
class RewardRows:
    """Reward rows as read-only integer columns of m rows. Functions of a row's kind are computed once per kind.

    `kind_index` (m,) points into `kinds`; every kind has a row, and two kinds may be equal. `day` (m,) is an ordinal,
    `sums` (m, 5) the MOMENTS.
    """

    kinds: tuple[RowKind, ...]
    kind_index: Ints
    day: Ints
    sums: Ints

    @classmethod
    def from_rows(cls, rows: Iterable[RewardRow]) -> "RewardRows":
        """Convert rows to columns; rows that already are columns are returned as they are."""
        if isinstance(rows, RewardRows):
            return rows
        index_of: dict[RowKind, int] = {}
        records = []
        for row in rows:
            index = index_of.setdefault(RowKind(*kind_of(row)), len(index_of))
            records.append((index, row.day.toordinal(), *moments_of(row)))
        columns = np.array(records, dtype=np.int64).reshape(-1, 2 + len(MOMENTS))
        return cls(tuple(index_of), columns[:, 0], columns[:, 1], columns[:, 2:])

    @classmethod
    def from_columns(cls, kinds: Sequence[RowKind], kind_index: Ints, day: Ints, sums: Ints) -> "RewardRows":
        """Build rows from columns, dropping kinds that no row refers to and renumbering `kind_index` to match."""
        is_used = np.zeros(len(kinds), dtype=np.bool_)
        is_used[kind_index] = True
        used_kinds = tuple(kind for kind, used in zip(kinds, is_used, strict=True) if used)
        new_index = np.cumsum(is_used) - 1
        return cls(used_kinds, new_index[kind_index], day, sums)

    def __len__(self) -> int:
        return len(self.kind_index)

    def __iter__(self) -> Iterator[RewardRow]:
        columns = zip(self.kind_index.tolist(), self.day.tolist(), self.sums.tolist(), strict=True)
        for number, day, (n, s, q, cost, costed) in columns:
            kind = self.kinds[number]._asdict()
            yield RewardRow(**kind, day=date.fromordinal(day), n=n, s=s, q=q, cost=cost, costed=costed)

    @property
    def n(self) -> Ints:
        """Number of rewards in each row, (m,)."""
        return self.sums[:, 0]

    def map_kinds(self, function: Callable[[RowKind], Any], dtype: Any = np.int64) -> NDArray[Any]:
        """`function` of each row's kind, (m,)."""
        return np.array([function(kind) for kind in self.kinds], dtype=dtype)[self.kind_index]

    def mask(self, predicate: Callable[[RowKind], bool]) -> Flags:
        """Whether `predicate` is true of each row's kind, (m,)."""
        flags: Flags = self.map_kinds(predicate, np.bool_)
        return flags

    def select(self, flags: Flags) -> "RewardRows":
        """The rows whose flag is set."""
        if flags.all():
            return self
        return RewardRows.from_columns(self.kinds, self.kind_index[flags], self.day[flags], self.sums[flags])

    def plus(self, rows: Iterable[RewardRow]) -> "RewardRows":
        """These rows followed by `rows`. Their kinds are appended, even if equal."""
        more = RewardRows.from_rows(rows)
        if not len(more):
            return self
        kind_index = np.concatenate((self.kind_index, len(self.kinds) + more.kind_index))
        day, sums = np.concatenate((self.day, more.day)), np.concatenate((self.sums, more.sums))
        return RewardRows(self.kinds + more.kinds, kind_index, day, sums)

    def totals(self) -> Iterator[tuple[RowKind, Sums]]:
        """Each kind with its MOMENTS summed over all days; two kinds may be equal."""
        sums = sums_by_group(self.kind_index, self.sums, len(self.kinds))
        yield from zip(self.kinds, sums.tolist(), strict=True)


def sums_by_group(group: Ints, columns: Ints, groups: int) -> Ints:
    """Exact sums of `columns` (m, c) by `group` (m,), shape (groups, c)."""
    totals = np.zeros((columns.shape[1], groups), dtype=np.int64)
    for total, column in zip(totals, columns.T, strict=True):
        np.add.at(total, group, column)  # column by column: NumPy takes ten times as long for all columns at once
    return totals.T


class RowGroup(NamedTuple):
    """Rows are summed only within such a group: with equal factors for standing (`factor`) and agent's cap (`capped`).

    `estimate` is the index of the kind by which their values are estimated, or GRADES.
    """

    factor: float = 1.0
    capped: float = 1.0
    estimate: int = GRADES


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows as columns, summed exactly over graders and strata, ordered by group, arm, source, day and salience.

    `arm` and `source` are indexes into `names` and `sources`. `n` counts rewards; `s`, `f` and `q` are Σr, Σ(1−r) and
    Σr² in units of 1; `age` in days, 0 today; `salience` in [0, 1]; `cost` in dollars, known for `costed` rewards.
    `factor` in [0, 1] and `capped` in (0, 1] multiply the row's weight for its standing and its agent's cap.

    `estimate` is the index of the kind that a row's value is estimated by, GRADES if its grades count.
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
    estimate: Ints

    @property
    def slot(self) -> Ints:
        """Each row's (arm, source) as one index, arm · number of sources + source."""
        slots: Ints = self.arm * max(len(self.sources), 1) + self.source
        return slots

    def by_arm(self, values: Floats) -> Floats:
        """Sum of `values` over each arm's rows, in the order of `names`."""
        sums: Floats = np.bincount(self.arm, weights=values, minlength=len(self.names)).astype(np.float64)
        return sums


def tabulate(
    rows: Iterable[RewardRow],
    names: tuple[str, ...],
    today: date,
    sources: tuple[str, ...] | None = None,
    *,
    groups: Sequence[RowGroup] = (RowGroup(),),
    group_index: Ints | None = None,
) -> Table:
    """Sum rows, in any order, by group, arm, source, day and salience, and drop sums of no rewards.

    `sources`, sorted, defaults to the rows' own. `group_index` (m,) is the index of each row's group, 0 by default.
    Raises KeyError for a row of an arm that is not in `names`.
    """
    rows = RewardRows.from_rows(rows)
    sources = tuple(sorted({kind.source for kind in rows.kinds})) if sources is None else sources
    arm_at, source_at = positions(names), positions(sources)
    kind_columns = np.array(
        [(arm_at[kind.arm], source_at[kind.source], kind.salience) for kind in rows.kinds], dtype=np.int64
    ).reshape(-1, 3)
    group_index = np.zeros(len(rows), dtype=np.int64) if group_index is None else group_index
    arm, source, salience = np.ascontiguousarray(kind_columns.T)[:, rows.kind_index]
    key, sums = sum_by_key(np.array((group_index, arm, source, rows.day, salience)).T, rows.sums)
    group_index, arm, source, day, salience = np.ascontiguousarray(key.T)
    factor, capped = np.array([group[:2] for group in groups], dtype=np.float64).reshape(-1, 2)[group_index].T
    count, total, squares, cost, costed = np.ascontiguousarray(sums.T)
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
        factor=factor,
        capped=capped,
        estimate=np.array([group.estimate for group in groups], dtype=np.int64)[group_index],
    )


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values in order, and the index of each of the values (m,) among them.

    Like `np.unique` with `return_inverse`, but without sorting if the values are close together.
    """
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low >= MAX_SPARSITY * len(values):
        numbers, index = np.unique(values, return_inverse=True)
        return numbers, index
    is_present = np.zeros(high - low + 1, dtype=np.bool_)
    is_present[values - low] = True
    return np.flatnonzero(is_present) + low, (np.cumsum(is_present) - 1)[values - low]


def sum_by_key(keys: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """The distinct `keys` (m, k), sorted, and the sums of their `columns` (m, c). Keys whose first sum, the number of
    rewards, is 0 are left out.
    """
    if not len(keys):
        return keys, columns
    # Sort the keys, and mark each that differs from the one before.
    code = _sortable_codes(keys)
    if code is None:  # the keys don't fit into one integer each: this gives the same result, more slowly
        order = np.lexsort(keys[:, ::-1].T)  # by the first column first; `lexsort` takes it last
        ordered = keys[order]
        is_new = (ordered[1:] != ordered[:-1]).any(axis=1)
    else:
        order = np.argsort(code, kind="stable")  # fast, as rows are almost in order
        code = code[order]
        is_new = code[1:] != code[:-1]
    sums = columns.take(order, axis=0)
    starts = np.flatnonzero(np.append(True, is_new))
    if len(starts) < len(order):  # some keys are equal: sum each run of them
        sums, order = np.add.reduceat(sums, starts, axis=0), order[starts]
    has_rewards = sums[:, 0] != 0
    return keys.take(order[has_rewards], axis=0), sums[has_rewards]


def _sortable_codes(keys: Ints) -> Ints | None:
    """An integer for each of the keys (m, k), m > 0: equal keys have equal ones, and they sort as the keys do, by first
    column first. None if the keys' ranges don't fit into an int64.
    """
    columns = [np.ascontiguousarray(column) for column in keys.T]  # NumPy is ten times as fast on contiguous columns
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    if math.prod(spans) > MAX_CODES:
        return None
    # Each column is a digit of the code, in the base of its span.
    code: Ints = np.zeros(len(keys), dtype=np.int64)
    for column, low, span in zip(columns, lows, spans, strict=True):
        if span > 1:
            code = code * span + (column - low)
    return code


def positions(names: tuple[str, ...]) -> dict[str, int]:
    """The index of each name."""
    return {name: i for i, name in enumerate(names)}
