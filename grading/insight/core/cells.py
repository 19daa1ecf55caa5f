"""Sessions summed by cell: those of one day that agree in everything a comparison looks at."""

import datetime as dt
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grading.insight.core.results import Span

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


class GraderIdentity(NamedTuple):
    """Who gave a reward: a source and, of a judge, the model that answered, the rubric's hash and the digest version.

    All are empty for a session without a grade.
    """

    source: str = ""
    model: str = ""
    rubric: str = ""
    version: str = ""

    def __str__(self) -> str:
        rubric = f"under rubric {self.rubric[:4]}" if self.rubric else ""
        return " ".join(part for part in (self.model or self.source, rubric) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellColumn:
    """A column of a table: `labels[codes[i]]` is the value of row i."""

    labels: tuple[Hashable, ...]
    codes: Integers

    @classmethod
    def from_values(cls, values: Sequence[Hashable]) -> "CellColumn":
        numbers: dict[Hashable, int] = {}
        codes = np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)
        return cls(labels=tuple(numbers), codes=codes)

    def is_one_of(self, labels: set[Hashable]) -> Booleans:
        """For each row, whether its value is one of these."""
        return np.array([label in labels for label in self.labels] or [False], dtype=bool)[self.codes]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSums:
    """For each cell: how many sessions have a value of the measure, their sum and their sum of squares."""

    count: Floats
    total: Floats
    squares: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """Cells as columns of equal length. `days` are ordinals of dates; `sessions` counts all sessions of a cell, and
    `provisional` those whose reward may still change.
    """

    days: Integers
    columns: Mapping[str, CellColumn]
    sessions: Floats
    provisional: Floats
    sums: Mapping[str, MeasureSums]

    def __len__(self) -> int:
        return len(self.days)

    def where(self, rows: Booleans | Integers | slice) -> "CellTable":
        """The cells for which `rows` is true, or that it names."""
        return CellTable(
            days=self.days[rows],
            columns={
                name: CellColumn(labels=column.labels, codes=column.codes[rows])
                for name, column in self.columns.items()
            },
            sessions=self.sessions[rows],
            provisional=self.provisional[rows],
            sums={
                name: MeasureSums(count=each.count[rows], total=each.total[rows], squares=each.squares[rows])
                for name, each in self.sums.items()
            },
        )

    def during(self, span: Span) -> "CellTable":
        """The cells of the days of a span."""
        return self.where((self.days >= span.first.toordinal()) & (self.days <= span.last.toordinal()))

    def shifted(self, measure: str, shift: Floats) -> "CellTable":
        """With `shift[i]` added to the value of each session of cell i."""
        each = self.sums[measure]
        shifted = MeasureSums(
            count=each.count,
            total=each.total + shift * each.count,
            squares=each.squares + 2 * shift * each.total + shift**2 * each.count,
        )
        return CellTable(
            days=self.days,
            columns=self.columns,
            sessions=self.sessions,
            provisional=self.provisional,
            sums={**self.sums, measure: shifted},
        )


def day_of(ordinal: int) -> dt.date:
    return dt.date.fromordinal(int(ordinal))


def group_sums(groups: Integers, values: Floats, count: int) -> Floats:
    """The sum of the values of each group, numbered from 0 to `count` − 1."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64)
