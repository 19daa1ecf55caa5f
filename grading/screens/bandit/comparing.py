"""Mean rewards of the arms by context. The overall mean hides in which contexts an arm does better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bandit.core.estimate import Estimate, estimate
from bandit.core.table import MICRO, RewardRows, distinct, sums_by_group

# A cell with fewer rewards, or rewards of fewer days, has no estimate.
MIN_REWARDS, MIN_DAYS = 20, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCell:
    """The rewards of one arm in one context: `n` on `days` days, and their mean, None if they are too few."""

    n: int
    days: int
    estimate: Estimate | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the 90 % interval."""
        return None if self.estimate is None else (self.estimate.high - self.estimate.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRow:
    """One arm, with a cell for each context in the table's order; None if it never ran in that."""

    title: str
    cells: tuple[ContextCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextComparison:
    """The table of arms by context: those with an estimate. `missing` counts the contexts in which no arm has one."""

    contexts: tuple[str, ...]
    lines: tuple[ContextRow, ...]
    missing: int


def comparison(rows: RewardRows, names: Sequence[str], titles: Mapping[str, str]) -> ContextComparison | None:
    """The arms `names` by context, with raw rewards; None if no reward has a context."""
    with_context = rows.select(rows.mask(lambda kind: bool(kind.context)))
    keys = sorted({(kind.arm, kind.context) for kind in with_context.kinds})
    index = {key: number for number, key in enumerate(keys)}
    key_index = with_context.map_kinds(lambda kind: index[kind.arm, kind.context])  # one for each row
    sums = sums_by_group(key_index, with_context.sums, len(keys)).tolist()
    # The number of distinct days of each key: number the pairs of key and day, and count the pairs of each key.
    days, day_index = distinct(with_context.day)
    pairs, _pair_index = distinct((key_index * len(days) + day_index)[with_context.n != 0])
    day_counts = np.bincount(pairs // max(len(days), 1), minlength=len(keys)).tolist()
    contexts = tuple(sorted({context for (_, context), (n, *_) in zip(keys, sums, strict=True) if n > 0}))
    if not contexts:
        return None
    cells: dict[tuple[str, str], ContextCell] = {}
    for key, (n, total, squares, *_), day_count in zip(keys, sums, day_counts, strict=True):
        if n <= 0:
            continue
        mean_reward = None
        if n >= MIN_REWARDS and day_count >= MIN_DAYS:
            mean = total / n / MICRO
            variance = max(squares / MICRO**2 - n * mean**2, 0.0) / (n - 1)
            mean_reward = estimate(mean, variance / n, n - 1)
        cells[key] = ContextCell(n=n, days=day_count, estimate=mean_reward)
    estimated = {key for key, cell in cells.items() if cell.estimate is not None}
    listed_contexts = tuple(context for context in contexts if any(place == context for _arm, place in estimated))
    lines = tuple(
        ContextRow(title=titles.get(name, name), cells=tuple(cells.get((name, context)) for context in listed_contexts))
        for name in names
        if any(arm == name for arm, _place in estimated)
    )
    return ContextComparison(contexts=listed_contexts, lines=lines, missing=len(contexts) - len(listed_contexts))
