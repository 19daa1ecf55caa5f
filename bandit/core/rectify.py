"""Correcting a biased source's rewards when they are read, by the bias that people's grades show.

With δ the offset of a stratum (arm, source, stratum), and its day's sums N, S = Σr and Q = Σr²:

    S' = clip(S + δ·N, 0, N)        F' = N − S'        Q' = clip(Q + 2δ·S + δ²·N, S'²/N, S')

Everything is integers in micro-units, δ too, so that the order of rewards and how they are split change no bit (L5),
and nothing is stored: without offsets the sums are the ledger's own again.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import date

from bandit.core.table import MICRO, RewardRow, Sums, add

Stratum = tuple[str, str, str]
# Arm, source, stratum, context, salience and day: what names a row.
Cell = tuple[str, str, str, str, int, date]

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
) -> list[RewardRow]:
    """The rows, added up by all that names them, and moved by the `offsets` of their (arm, source, stratum).

    `baseline` moves them further by their context. Rows with neither stay as they are. All in units of reward, −1 to 1.
    By what else tells them apart no offset differs, so that rows are added up over that first: each sum is clipped
    once, however many agents, views or versions it came from.
    """
    sums: dict[Cell, Sums] = {}
    for row in rows:
        add(sums, (row.arm, row.source, row.stratum, row.context, row.salience, row.day), row)
    contexts = baseline or {}
    found = []
    for (arm, source, stratum, context, salience, day), (n, s, q, cost, costed) in sums.items():
        step = round((offsets.get((arm, source, stratum), 0.0) + contexts.get(context, 0.0)) * MICRO)
        moved_s, moved_q = s, q
        if n > 0 and step:
            moved_s = min(max(s + step * n, 0), n * MICRO)
            moved_q = min(max(q + 2 * step * s + step**2 * n, -(-(moved_s**2) // n)), moved_s * MICRO)
        found.append(
            RewardRow(
                arm=arm,
                source=source,
                stratum=stratum,
                context=context,
                salience=salience,
                day=day,
                n=n,
                s=moved_s,
                q=moved_q,
                cost=cost,
                costed=costed,
            )
        )
    return found
