"""Buckets as columns: integers added up exactly first, made floating-point numbers once, in one fixed order."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from operator import attrgetter
from typing import Any, NamedTuple, Self

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
# More keys than this have no numbers of their own.
MOST_CODES = 2**62
# Numbers that are so many times as far apart as there are of them are sorted.
MOST_APART = 16
# A row that is read as it stands has no line.
NO_LINE = -1
# What a row's standing leaves of its weight, and its agent's cap.
Left = tuple[float, float]
WHOLE: Left = (1.0, 1.0)
# What a bucket adds up: rewards, Σr, Σr², Σ of the known costs, and how many are known.
MOMENTS = ("n", "s", "q", "cost", "costed")
MEASURES = attrgetter(*MOMENTS)

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


class RowKind(NamedTuple):
    """What a `RewardRow` says but for its day and its sums: there are few of these where there are many rows."""

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


KIND = attrgetter(*RowKind._fields)


@dataclass(frozen=True, slots=True, eq=False)
class RewardRows:
    """Rows in some order as columns of integers, (m,) each, which nobody changes: whatever is asked of all of them is
    asked of their `kinds`, each of which has a row; two may be alike. `day` is an ordinal, `sums` (m, 5) the MOMENTS.
    """

    kinds: tuple[RowKind, ...]
    kind: Ints
    day: Ints
    sums: Ints

    @classmethod
    def of(cls, rows: Iterable[RewardRow]) -> "RewardRows":
        """These rows; as they are, where they are columns already."""
        if isinstance(rows, RewardRows):
            return rows
        numbers: dict[RowKind, int] = {}
        found = [
            (numbers.setdefault(RowKind(*KIND(row)), len(numbers)), row.day.toordinal(), *MEASURES(row)) for row in rows
        ]
        columns = np.array(found, dtype=np.int64).reshape(-1, 2 + len(MOMENTS))
        return cls(tuple(numbers), columns[:, 0], columns[:, 1], columns[:, 2:])

    @classmethod
    def made(cls, kinds: Sequence[RowKind], kind: Ints, day: Ints, sums: Ints) -> "RewardRows":
        """Of these columns, with those kinds that have a row."""
        used = np.zeros(len(kinds), dtype=np.bool_)
        used[kind] = True
        held = tuple(each for each, is_used in zip(kinds, used.tolist(), strict=True) if is_used)
        return cls(held, (np.cumsum(used) - 1)[kind], day, sums)

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[RewardRow]:
        columns = zip(self.kind.tolist(), self.day.tolist(), self.sums.tolist(), strict=True)
        for number, day, sums in columns:
            yield _row(self.kinds[number], day, sums)

    @property
    def n(self) -> Ints:
        """How many rewards each row has."""
        return self.sums[:, 0]

    def each(self, of: Callable[[RowKind], Any], dtype: Any = np.int64) -> NDArray[Any]:
        """What `of` says of each row's kind, (m,)."""
        return np.array([of(kind) for kind in self.kinds], dtype=dtype)[self.kind]

    def which(self, of: Callable[[RowKind], bool]) -> Flags:
        """The rows of whose kind this is so, as flags (m,)."""
        found: Flags = self.each(of, np.bool_)
        return found

    def where(self, flags: Flags) -> "RewardRows":
        """Those of the rows that have their flag."""
        if flags.all():
            return self
        return RewardRows.made(self.kinds, self.kind[flags], self.day[flags], self.sums[flags])

    def plus(self, rows: Iterable[RewardRow]) -> "RewardRows":
        """These rows and more of them."""
        more = RewardRows.of(rows)
        if not len(more):
            return self
        kind = np.concatenate((self.kind, len(self.kinds) + more.kind))
        day, sums = np.concatenate((self.day, more.day)), np.concatenate((self.sums, more.sums))
        return RewardRows(self.kinds + more.kinds, kind, day, sums)

    def totals(self) -> Iterator[tuple[RowKind, Sums]]:
        """The MOMENTS of each kind, over all days."""
        found = sums_of(self.kind, self.sums, len(self.kinds))
        yield from zip(self.kinds, found.tolist(), strict=True)


def _row(kind: RowKind, day: int, sums: Sequence[int]) -> RewardRow:
    n, s, q, cost, costed = sums
    return RewardRow(**kind._asdict(), day=date.fromordinal(day), n=n, s=s, q=q, cost=cost, costed=costed)


def sums_of(group: Ints, columns: Ints, groups: int) -> Ints:
    """Exact sums of each column (m, c) over the rows (m,) of each group, (groups, c)."""
    found = np.zeros((columns.shape[1], groups), dtype=np.int64)
    for sums, column in zip(found, columns.T, strict=True):
        np.add.at(sums, group, column)  # one column at a time: of several at once NumPy takes ten times as long
    return found.T


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
    rows: Iterable[RewardRow],
    names: tuple[str, ...],
    today: date,
    sources: tuple[str, ...] | None = None,
    *,
    lefts: Sequence[Left] = (WHOLE,),
    left: Ints | None = None,
) -> Table:
    """Rows in any order as a table; rows of one arm, source, day and salience are added up, sums of nothing left out.

    `sources`, sorted, where the table is to have more of them than its rows. Where `left` (m,) says which of `lefts` is
    left of each row, those of which another is left are rows of their own, in the order of `lefts` first. Raises
    KeyError for a row of an arm that is not in `names`.
    """
    held = RewardRows.of(rows)
    sources = tuple(sorted({kind.source for kind in held.kinds})) if sources is None else sources
    arm_at, source_at = positions(names), positions(sources)
    named = np.array(
        [(arm_at[kind.arm], source_at[kind.source], kind.salience) for kind in held.kinds], dtype=np.int64
    ).reshape(-1, 3)
    which = np.zeros(len(held), dtype=np.int64) if left is None else left
    arm, source, salience = np.ascontiguousarray(named.T)[:, held.kind]
    key, sums = summed(np.array((which, arm, source, held.day, salience)).T, held.sums)
    which, arm, source, day, salience = np.ascontiguousarray(key.T)
    factor, capped = np.array(lefts, dtype=np.float64).reshape(-1, 2)[which].T
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


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """The numbers that there are, in order, and which of them each of the values (m,) is. Without sorting where they
    lie close together.
    """
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low >= MOST_APART * len(values):
        numbers, place = np.unique(values, return_inverse=True)
        return numbers, place
    there = np.zeros(high - low + 1, dtype=np.bool_)
    there[values - low] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[values - low]


def summed(keys: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """The keys (m, k) in their order, alike ones as one, with the sums of their columns; sums of nothing left out."""
    if not len(keys):
        return keys, columns
    code = _codes(keys)
    if code is None:
        order = np.lexsort(keys[:, ::-1].T)
        ordered = keys[order]
        is_first = (ordered[1:] != ordered[:-1]).any(axis=1)
    else:
        order = np.argsort(code, kind="stable")  # rows come almost in order
        code = code[order]
        is_first = code[1:] != code[:-1]
    sums, starts = columns.take(order, axis=0), np.flatnonzero(np.append(True, is_first))
    if len(starts) < len(order):
        sums, order = np.add.reduceat(sums, starts, axis=0), order[starts]
    kept = sums[:, 0] != 0
    return keys.take(order[kept], axis=0), sums[kept]


def _codes(keys: Ints) -> Ints | None:
    """A number for each of the keys (m, k), m > 0, that are in the same order; None where they are too far apart."""
    columns = [np.ascontiguousarray(column) for column in keys.T]  # along which NumPy is ten times as fast
    ranges = [(int(column.min()), int(column.max())) for column in columns]
    spans = [high - low + 1 for low, high in ranges]
    if math.prod(spans) > MOST_CODES:
        return None
    code: Ints = np.zeros(len(keys), dtype=np.int64)
    for column, (low, _high), span in zip(columns, ranges, spans, strict=True):
        if span > 1:
            code = code * span + (column - low)
    return code


def positions(names: tuple[str, ...]) -> dict[str, int]:
    """Each name's place."""
    return {name: i for i, name in enumerate(names)}
