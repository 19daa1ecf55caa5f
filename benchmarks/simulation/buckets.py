"""What the ledger amounts to in a run: integer sums, moved by each credit, as the site's buckets are."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta

from bandit.core.table import MICRO, RewardRow
from grading.reward.decide import Decision
from grading.vocabulary import Source

START = date(2026, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What the bandit learns of one session: `value` in [0, 1] from a source, in a stratum."""

    value: float
    source: Source
    stratum: str = ""


def credited(decision: Decision, stratum: str = "") -> Credit | None:
    """What a decision of the chain teaches: nothing where there is no reward, or where its source has no weight."""
    if decision.value is None or decision.decider is None or decision.weight == 0:
        return None
    return Credit(value=decision.value, source=decision.decider, stratum=stratum)


class Buckets:
    """Integer sums by arm, source, stratum and day; what was given is taken back exactly."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int, Source, str], RewardRow] = {}

    @property
    def rows(self) -> Collection[RewardRow]:
        return self._rows.values()

    def apply(self, arm: str, day: int, credit: Credit | None) -> None:
        self._move(arm, day, credit, 1)

    def reverse(self, arm: str, day: int, credit: Credit | None) -> None:
        self._move(arm, day, credit, -1)

    def _move(self, arm: str, day: int, credit: Credit | None, sign: int) -> None:
        if credit is None:
            return
        source, stratum, micro = credit.source, credit.stratum, round(credit.value * MICRO)
        held = self._rows.get((arm, day, source, stratum))
        n, s, q = (held.n, held.s, held.q) if held else (0, 0, 0)
        self._rows[arm, day, source, stratum] = RewardRow(
            arm=arm,
            source=source,
            stratum=stratum,
            day=on(day),
            n=n + sign,
            s=s + sign * micro,
            q=q + sign * micro**2,
        )


def on(day: int) -> date:
    return START + timedelta(days=day)
