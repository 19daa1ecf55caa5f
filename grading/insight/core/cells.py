"""Sessions summed by cell: those of one day that agree in everything a comparison looks at."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """Cells as arrays (n,). `days` are ordinals of dates. `sessions` counts all sessions of a cell, and `provisional`
    those whose reward may still change. `columns` are by name, and `sums` by the name of the measure.
    """

    days: Integers
    columns: Mapping[str, CellColumn]
    sessions: Floats
    provisional: Floats
    sums: Mapping[str, MeasureSums]

    def __len__(self) -> int:
        return len(self.days)

    def where(self, rows: Booleans | Integers | slice) -> "CellTable":
        """The cells at these flags, indexes or slice."""
        return CellTable(
            days=self.days[rows],
            columns={
                name: CellColumn(labels=column.labels, codes=column.codes[rows])
                for name, column in self.columns.items()
            },
            sessions=self.sessions[rows],
            provisional=self.provisional[rows],
            sums={
                name: MeasureSums(count=sums.count[rows], total=sums.total[rows], squares=sums.squares[rows])
                for name, sums in self.sums.items()
            },
        )

    def is_during(self, span: Span) -> Booleans:
        """Whether each cell is of a day of the span."""
        return np.asarray((self.days >= span.first.toordinal()) & (self.days <= span.last.toordinal()), dtype=bool)

    def during(self, span: Span) -> "CellTable":
        """The cells of the days of the span."""
        return self.where(self.is_during(span))

    def shifted(self, measure: str, shift: Floats) -> "CellTable":
        """A copy with `shift[i]` added to the measure's value of each session of cell i."""
        sums = self.sums[measure]
        shifted = MeasureSums(
            count=sums.count,
            total=sums.total + shift * sums.count,
            squares=sums.squares + 2 * shift * sums.total + shift**2 * sums.count,
        )
        return replace(self, sums={**self.sums, measure: shifted})


def group_sums(groups: Integers, values: Floats, count: int) -> Floats:
    """The sum of the values of each group, numbered from 0 to `count` − 1."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64)
