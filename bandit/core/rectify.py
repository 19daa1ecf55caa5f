"""Correcting a biased source's rewards when they are read, by the bias that people's grades show.

With δ the offset of a stratum (arm, source, stratum), and its day's sums N, S = Σr and Q = Σr²:

    S' = clip(S + δ·N, 0, N)        F' = N − S'        Q' = clip(Q + 2δ·S + δ²·N, S'²/N, S')

Everything is integers in micro-units, δ too, so that the order of rewards and how they are split change no bit (L5),
and nothing is stored: without offsets the sums are the ledger's own again.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from bandit.core.table import MICRO, Ints, RewardRow, RewardRows, RowKind, summed

Stratum = tuple[str, str, str]

# What the others are measured by.
TRUTH = "human"


def check_offsets(offsets: Mapping[Stratum, float]) -> None:
    """Raises ValueError for an offset that is no number from −1 to 1, or that would move a person's grades."""
    for (arm, source, stratum), offset in offsets.items():
        if source == TRUTH:
            raise ValueError(f"{TRUTH} grades are never rectified; got an offset of {offset!r} for them on {arm!r}")
        if not math.isfinite(offset) or abs(offset) > 1:
            raise ValueError(f"an offset is a number from -1 to 1; got {offset!r} for {arm}, {source}, {stratum!r}")


def rectified(
    rows: Iterable[RewardRow], offsets: Mapping[Stratum, float], baseline: Mapping[str, float] | None = None
) -> RewardRows:
    """The rows, added up by all that names them, and moved by the `offsets` of their (arm, source, stratum).

    `baseline` moves them further by their context. Rows with neither stay as they are. All in units of reward, −1 to 1.
    By what else tells them apart no offset differs, so that rows are added up over that first: each sum is clipped
    once, however many agents, views or versions it came from.
    """
    held = RewardRows.of(rows)
    return rectified_apart(held, np.zeros(len(held), dtype=np.int64), offsets, baseline or {})[0]


def rectified_apart(
    held: RewardRows, apart: Ints, offsets: Mapping[Stratum, float], contexts: Mapping[str, float]
) -> tuple[RewardRows, Ints]:
    """As `rectified`, but that rows are added up only with those that have the same number in `apart` (m,); and the
    numbers of what it gives, in their order.
    """
    numbers: dict[RowKind, int] = {}
    merged = [numbers.setdefault(_named(kind), len(numbers)) for kind in held.kinds]
    keys, sums = summed(np.array((apart, np.array(merged, dtype=np.int64)[held.kind], held.day)).T, held.sums)
    apart, kind, day = np.ascontiguousarray(keys.T)
    found = RewardRows.made(tuple(numbers), kind, day, sums)
    n, s, q = (found.sums[:, column] for column in range(3))
    step = found.each(
        lambda kind: round(
            (offsets.get((kind.arm, kind.source, kind.stratum), 0.0) + contexts.get(kind.context, 0.0)) * MICRO
        )
    )
    moves = (n > 0) & (step != 0)
    most = np.maximum(n, 1)
    moved_s = np.clip(s + step * n, 0, n * MICRO)
    # ⌈moved_s²/n⌉ by the mean's whole part and the rest, whose squares are no larger than what is given here.
    whole, rest = moved_s // most, moved_s % most
    least = whole**2 * n + 2 * whole * rest - (-(rest**2) // most)
    moved_q = np.minimum(np.maximum(q + 2 * step * s + step**2 * n, least), moved_s * MICRO)
    moved = np.column_stack((n, np.where(moves, moved_s, s), np.where(moves, moved_q, q), found.sums[:, 3:]))
    return replace(found, sums=moved), apart


def _named(kind: RowKind) -> RowKind:
    """What an offset may differ by, without the rest."""
    return kind._replace(judge="", version="", view="", witness="", standing="", agent="")
