"""Arms compared inside each circumstance, since an aggregate hides where one wins and who is compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from bandit.core.estimate import Estimate, estimate
from bandit.core.table import MICRO, RewardRow

# Fewer rewards, or of fewer days, compare nothing.
LEAST, LEAST_DAYS = 20, 3


@dataclass(slots=True)
class _Sums:
    n: int = 0
    s: int = 0
    q: int = 0
    days: set[date] = field(default_factory=set)

    def add(self, row: RewardRow) -> None:
        self.n, self.s, self.q = self.n + row.n, self.s + row.s, self.q + row.q
        if row.n:
            self.days.add(row.day)


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


def comparison(rows: Iterable[RewardRow], names: Sequence[str], titles: Mapping[str, str]) -> ContextComparison | None:
    """The arms `names` by context, as the rewards were given; None where no reward has a context."""
    sums: dict[tuple[str, str], _Sums] = {}
    for row in rows:
        if row.context:
            sums.setdefault((row.arm, row.context), _Sums()).add(row)
    sums = {key: found for key, found in sums.items() if found.n > 0}
    contexts = tuple(sorted({context for _, context in sums}))
    if not contexts:
        return None
    cells: dict[tuple[str, str], ContextCell] = {}
    for key, found in sums.items():
        n, days, told = found.n, len(found.days), None
        if n >= LEAST and days >= LEAST_DAYS:
            mean = found.s / n / MICRO
            variance = max(found.q / MICRO**2 - n * mean**2, 0.0) / (n - 1)
            told = estimate(mean, variance / n, n - 1)
        cells[key] = ContextCell(n=n, days=days, estimate=told)
    lines = (
        ContextRow(title=titles.get(name, name), cells=tuple(cells.get((name, context)) for context in contexts))
        for name in names
    )
    return ContextComparison(contexts=contexts, lines=tuple(line for line in lines if any(line.cells)))
