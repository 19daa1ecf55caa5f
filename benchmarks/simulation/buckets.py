"""The sums that a bandit learns from, without a database."""

from collections.abc import Collection
from datetime import date, timedelta

from bandit.core.table import MICRO, RewardRow

START = date(2026, 1, 1)


def to_date(day: int) -> date:
    return START + timedelta(days=day)


class Buckets:
    """Integer sums of rewards by arm, source, day and more columns of `RewardRow`. A reward can be undone exactly."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], RewardRow] = {}

    @property
    def rows(self) -> Collection[RewardRow]:
        return self._rows.values()

    def add(self, value: float, *, arm: str, source: str, day: int, sign: int = 1, **columns: str) -> None:
        """Add a reward in [0, 1]; a `sign` of −1 undoes it."""
        key = (arm, source, day, *columns.values())
        micro = round(value * MICRO)
        row = self._rows.get(key)
        n, s, q = (row.n, row.s, row.q) if row else (0, 0, 0)
        self._rows[key] = RewardRow(
            arm=arm,
            source=source,
            day=to_date(day),
            n=n + sign,
            s=s + sign * micro,
            q=q + sign * micro**2,
            **columns,
        )
