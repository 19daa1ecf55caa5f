"""Rewards of a source that is known to be off, moved at read by what people's grades say it is off by.

With δ the offset of a stratum (arm, source, stratum), and its day's sums N, S = Σr and Q = Σr²:

    S' = clip(S + δ·N, 0, N)        F' = N − S'        Q' = clip(Q + 2δ·S + δ²·N, S'²/N, S')

Everything is integers in micro-units, δ too, so that the order of rewards and how they are split change no bit (L5),
and nothing is stored: without offsets the sums are the ledger's own again.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import date

from bandit.core.table import MICRO, Row

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


def rectified(rows: Iterable[Row], offsets: Mapping[Stratum, float]) -> list[Row]:
    """The rows, added up by arm, source, stratum and day, and moved by the `offsets` of their (arm, source, stratum).

    Rows of a stratum without an offset stay as they are. Offsets are in units of reward, −1 to 1.
    """
    sums: dict[tuple[Stratum, date], tuple[int, int, int]] = {}
    for row in rows:
        key = ((row.arm, row.source, row.stratum), row.day)
        n, s, q = sums.get(key, (0, 0, 0))
        sums[key] = (n + row.n, s + row.s, q + row.q)
    return [_moved(key, day, *moments, offsets.get(key, 0.0)) for (key, day), moments in sums.items()]


def _moved(key: Stratum, day: date, n: int, s: int, q: int, offset: float) -> Row:  # noqa: PLR0917 - a key and sums
    arm, source, stratum = key
    step = round(offset * MICRO)
    if n > 0 and step:
        q += 2 * step * s + step**2 * n
        s = min(max(s + step * n, 0), n * MICRO)
        q = min(max(q, -(-(s**2) // n)), s * MICRO)
    return Row(arm=arm, source=source, stratum=stratum, day=day, n=n, s=s, q=q)
