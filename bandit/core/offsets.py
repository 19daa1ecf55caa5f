"""Offsets: correcting a biased source's rewards when they are read, by the bias that people's grades show.

With δ the offset of a stratum (arm, source, stratum), and its day's sums N, S = Σr and Q = Σr²:

    S' = clip(S + δ·N, 0, N)        F' = N − S'        Q' = clip(Q + 2δ·S + δ²·N, S'²/N, S')

Everything is integers in micro-units, δ too, so that neither the order of rewards nor how they are split changes a bit.
Nothing is stored: without offsets the sums are the ledger's own.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bandit.core.table import MICRO, Ints, RewardRows, RowKind, sum_by_key

# The names of an arm, of a source, and of the source's stratum within that arm: what one offset is for.
Stratum = tuple[str, str, str]

# The source that biases are measured against.
TRUTH = "human"


def check_offsets(offsets: Mapping[Stratum, float]) -> None:
    """Raise ValueError for an offset that isn't a number from −1 to 1, or that would shift human grades."""
    for (arm, source, stratum), offset in offsets.items():
        if source == TRUTH:
            raise ValueError(f"{TRUTH} grades are never moved; got an offset of {offset!r} for them on {arm!r}")
        if not math.isfinite(offset) or abs(offset) > 1:
            raise ValueError(f"an offset is a number from -1 to 1; got {offset!r} for {arm}, {source}, {stratum!r}")


def add_offsets(
    rows: RewardRows,
    group: Ints,
    offsets: Mapping[Stratum, float],
    contexts: Mapping[str, float],
    sources: Mapping[str, float],
) -> tuple[RewardRows, Ints]:
    """The rows summed by `group` (m,), (arm, source, stratum), context, salience and day, each sum shifted by the
    module's formula; and the group of each resulting row.

    δ is the sum of the offsets of the row's stratum, context and source, each from −1 to 1 and 0 if missing. Agents,
    views and versions are summed before the shift, so that each sum is clipped once.
    """
    # Kinds that only differ in columns that offsets don't depend on are merged into one.
    index_of: dict[RowKind, int] = {}
    merged = []
    for kind in rows.kinds:
        offset_kind = kind._replace(judge="", version="", view="", witness="", standing="", agent="")
        merged.append(index_of.setdefault(offset_kind, len(index_of)))
    merged_index = np.array(merged, dtype=np.int64)[rows.kind_index]
    keys, sums = sum_by_key(np.array((group, merged_index, rows.day)).T, rows.sums)
    group, kind_index, day = np.ascontiguousarray(keys.T)
    result = RewardRows.from_columns(tuple(index_of), kind_index, day, sums)
    n, s, q = (result.sums[:, column] for column in range(3))
    shift = shifts(result, offsets, contexts, sources)
    is_shifted = (n > 0) & (shift != 0)
    divisor = np.maximum(n, 1)
    new_s = np.clip(s + shift * n, 0, n * MICRO)
    # The lower bound ⌈new_s²/n⌉, computed from quotient and remainder so that no square overflows.
    whole, rest = new_s // divisor, new_s % divisor
    min_q = whole**2 * n + 2 * whole * rest - (-(rest**2) // divisor)
    new_q = np.minimum(np.maximum(q + 2 * shift * s + shift**2 * n, min_q), new_s * MICRO)
    new_sums = np.column_stack((n, np.where(is_shifted, new_s, s), np.where(is_shifted, new_q, q), result.sums[:, 3:]))
    return replace(result, sums=new_sums), group


def shifts(
    rows: RewardRows,
    offsets: Mapping[Stratum, float],
    contexts: Mapping[str, float],
    sources: Mapping[str, float],
) -> Ints:
    """What to add to every reward that a row sums up, for each row, (m,), in micro-units.

    It is the sum of the offsets of the row's (arm, source, stratum), of its context and of its source, each 0 if there
    is none.
    """

    def shift(kind: RowKind) -> int:
        offset = offsets.get((kind.arm, kind.source, kind.stratum), 0.0) + contexts.get(kind.context, 0.0)
        return round((offset + sources.get(kind.source, 0.0)) * MICRO)

    return rows.map_kinds(shift)
