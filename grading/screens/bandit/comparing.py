"""Arms compared inside each circumstance, since an aggregate hides where one wins and who is compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bandit.core.estimate import Estimate, estimate
from bandit.core.table import MICRO, RewardRows, distinct, sums_by_group

# Fewer rewards, or of fewer days, compare nothing.
LEAST, LEAST_DAYS = 20, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCell:
    """The rewards of one arm in one context: `n` on `days` days, and their mean; None where they are too few."""

    n: int
    days: int
    estimate: Estimate | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the 90 % interval."""
        return None if self.estimate is None else (self.estimate.high - self.estimate.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRow:
    """One arm: a cell for each context, in the table's order; None where it never ran."""

    title: str
    cells: tuple[ContextCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextComparison:
    contexts: tuple[str, ...]
    lines: tuple[ContextRow, ...]


def comparison(rows: RewardRows, names: Sequence[str], titles: Mapping[str, str]) -> ContextComparison | None:
    """The arms `names` by context, as the rewards were given; None where no reward has a context."""
    told_in = rows.select(rows.mask(lambda kind: bool(kind.context)))
    keys = sorted({(kind.arm, kind.context) for kind in told_in.kinds})
    place = {key: number for number, key in enumerate(keys)}
    cell = told_in.map_kinds(lambda kind: place[kind.arm, kind.context])
    sums = sums_by_group(cell, told_in.sums, len(keys)).tolist()
    days, day = distinct(told_in.day)
    cells_of_days = distinct((cell * len(days) + day)[told_in.n != 0])[0] // max(len(days), 1)
    days_of = np.bincount(cells_of_days, minlength=len(keys))
    contexts = tuple(sorted({context for (_, context), (n, *_) in zip(keys, sums, strict=True) if n > 0}))
    if not contexts:
        return None
    cells: dict[tuple[str, str], ContextCell] = {}
    for key, (n, s, q, *_), days in zip(keys, sums, days_of.tolist(), strict=True):
        told = None
        if n <= 0:
            continue
        if n >= LEAST and days >= LEAST_DAYS:
            mean = s / n / MICRO
            variance = max(q / MICRO**2 - n * mean**2, 0.0) / (n - 1)
            told = estimate(mean, variance / n, n - 1)
        cells[key] = ContextCell(n=n, days=days, estimate=told)
    lines = (
        ContextRow(title=titles.get(name, name), cells=tuple(cells.get((name, context)) for context in contexts))
        for name in names
    )
    return ContextComparison(contexts=contexts, lines=tuple(line for line in lines if any(line.cells)))
