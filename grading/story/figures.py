"""The ledger's rows about the incident's sessions, and two posteriors of the arm.

One is the bandit's own; the other is what it would be on a site that learns the floor for a missing grade.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.conf import settings

from bandit.core.posterior import ArmPosterior, Outlook
from bandit.core.table import ABSTAINED
from bandit.ledger import Credit, GraderKey
from bandit.models import LedgerEntry
from bandit.reading import posterior_of
from bandit.whatif import HypotheticalReward, what_if_changed
from grading.models import Session
from grading.reward import rewards
from grading.reward.explain import number, weight
from grading.vocabulary import Source

BANDIT, ARM = "category", "cross-repo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One result of a step: what it is about, and the result as text."""

    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the ledger: a reward, its weight, and whether a verdict may still replace it."""

    at: dt.datetime
    value: float
    source: str
    weight: float
    is_provisional: bool
    is_reverse: bool

    @classmethod
    def from_row(cls, row: LedgerEntry, previous: "Entry | None") -> "Entry":
        """The entry of a row. `previous` is the entry before it: a reversal is as provisional as what it reverses."""
        is_reverse = row.op == LedgerEntry.Op.REVERSE
        return cls(
            at=row.recorded_at,
            value=row.value_micro / 1_000_000,
            source=row.grader.source,
            weight=settings.EVIDENCE_WEIGHTS.get(row.grader.source, 0.0),
            is_provisional=previous.is_provisional if is_reverse and previous else row.provisional,
            is_reverse=is_reverse,
        )

    @property
    def is_final(self) -> bool:
        return not self.is_provisional

    @property
    def weighs(self) -> str:
        return weight(self.weight)

    def __str__(self) -> str:
        if self.source == ABSTAINED:
            return "not graded yet"
        state = "provisional" if self.is_provisional else "final"
        return f"{number(self.value)} by {self.source}, {state}, weight {self.weighs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBelief:
    """The arm's posterior, and its share of the next 100 sessions."""

    arm: ArmPosterior
    share: float

    @classmethod
    def from_outlook(cls, outlook: Outlook) -> "ArmBelief":
        return cls(arm=outlook.arms[ARM], share=outlook.next_100(ARM))

    @property
    def half_width(self) -> float:
        """Half of the central 90 % interval."""
        return (self.arm.high - self.arm.low) / 2

    def __str__(self) -> str:
        return f"{thousandths(self.arm.mean)} ± {thousandths(self.half_width)}, {self.of_100} of the next 100 sessions"

    @property
    def of_100(self) -> str:
        return f"{self.share:.0f}" if self.share >= 1 else "less than 1"


class Ledger:
    """The ledger's rows about these sessions, by session name, and what the bandit believes at `now`.

    `entries` are read first and beliefs later, so that a belief includes every row in `entries`.
    """

    def __init__(self, sessions: Mapping[str, Session], now: dt.datetime) -> None:
        self.sessions, self.now = sessions, now
        self.entries = self._entries()
        self._beliefs: dict[dt.datetime | None, ArmBelief] = {}

    def _entries(self) -> Mapping[str, Sequence[Entry]]:
        """Every row about each session, by session name, in the order in which the rows were written."""
        names = {session.observation: name for name, session in self.sessions.items()}
        rows = LedgerEntry.objects.filter(observation__in=names, bandit__name=BANDIT).select_related("grader")
        entries: dict[str, list[Entry]] = {name: [] for name in self.sessions}
        for row in rows.order_by("pk"):
            session_entries = entries[names[row.observation]]
            session_entries.append(Entry.from_row(row, session_entries[-1] if session_entries else None))
        return entries

    def reward(self, name: str, until: dt.datetime | None = None) -> Entry | None:
        """The reward that was in force for a session at `until` (by default now); None if there was none."""
        rows = [row for row in self.entries.get(name, ()) if until is None or row.at <= until]
        return rows[-1] if rows and not rows[-1].is_reverse else None

    def counted(self, name: str, until: dt.datetime | None = None) -> set[tuple[object, ...]]:
        """The rewards of a session that counted at `until` (by default now), exactly as the posterior adds them up."""
        if name not in self.sessions:
            return set()
        rows = LedgerEntry.objects.filter(observation=self.sessions[name].observation, bandit__name=BANDIT)
        if until is not None:
            rows = rows.filter(recorded_at__lte=until)
        net: Counter[tuple[object, ...]] = Counter()
        columns = ("arm", "grader__source", "effective_day", "value_micro", "cost_micro")
        for *reward, op in rows.values_list(*columns, "op"):
            net[tuple(reward)] += 1 if op == LedgerEntry.Op.APPLY else -1
        return {reward for reward, count in net.items() if count}

    def belief(self, until: dt.datetime | None = None) -> ArmBelief:
        """The arm's posterior today by the rows recorded until `until`, or by all rows."""
        if until not in self._beliefs:
            self._beliefs[until] = ArmBelief.from_outlook(posterior_of(BANDIT, self.now, known_by=until))
        return self._beliefs[until]

    @cached_property
    def without(self) -> ArmBelief:
        """The arm's posterior without these sessions."""
        return self._with_rewards(None)

    @cached_property
    def with_floors(self) -> ArmBelief:
        """The arm's posterior if the judge had graded each of these sessions at the floor."""
        return self._with_rewards(settings.FLOOR)

    def _with_rewards(self, value: float | None) -> ArmBelief:
        """The arm's posterior if each session had this reward from the judge, or none."""
        credit = None if value is None else Credit(value=value, grader=GraderKey(source=Source.JUDGE))
        changes = [
            HypotheticalReward(
                observation=session.observation,
                arm=ARM,
                day=rewards.credited_day(session),
                credit=credit,
            )
            for session in self.sessions.values()
        ]
        return ArmBelief.from_outlook(what_if_changed(BANDIT, {BANDIT: changes}, self.now)[1])


def thousandths(value: float) -> str:
    """A mean with three digits and no leading zero, such as ".583"."""
    return f"{value:.3f}".removeprefix("0")
