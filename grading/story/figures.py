"""What the ledger says of the incident's sessions, and what a site would believe that learned the floor for them.

Nothing is computed here that the bandit does not compute itself: both beliefs are its own posterior, the other one of
the same ledger with other rewards.
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
    """One line of what a step has come to: of what or whom, and what is so."""

    of: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the ledger: a reward, what it counts, and whether a verdict may still replace it."""

    at: dt.datetime
    value: float
    source: str
    weight: float
    is_provisional: bool
    is_reverse: bool

    @classmethod
    def of(cls, row: LedgerEntry, before: "Entry | None") -> "Entry":
        """`before` is the row before it: what is taken back was as provisional as when it was given."""
        is_reverse = row.op == LedgerEntry.Op.REVERSE
        return cls(
            at=row.recorded_at,
            value=row.value_micro / 1_000_000,
            source=row.grader.source,
            weight=settings.EVIDENCE_WEIGHTS.get(row.grader.source, 0.0),
            is_provisional=before.is_provisional if is_reverse and before else row.provisional,
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
    """What a site believes of the arm: its posterior, and how many of the next hundred sessions it is to get."""

    arm: ArmPosterior
    share: float

    @classmethod
    def of(cls, outlook: Outlook) -> "ArmBelief":
        return cls(arm=outlook.arms[ARM], share=outlook.share_of_next_100(ARM))

    @property
    def half_width(self) -> float:
        """Half of the central 90 % interval."""
        return (self.arm.high - self.arm.low) / 2

    def __str__(self) -> str:
        return f"{thousandths(self.arm.mean)} ± {thousandths(self.half_width)}, {self.of_100} of the next 100 sessions"

    @property
    def of_100(self) -> str:
        return f"{self.share:.0f}" if self.share >= 0.5 else "less than 1"  # noqa: PLR2004 - what would be shown as 0


class Ledger:
    """The ledger about these sessions, by the names that people know them by, read on the day of `now`.

    Its rows, `entries`, are read at once and what is believed later: whatever a row says has been learned by then.
    """

    def __init__(self, sessions: Mapping[str, Session], now: dt.datetime) -> None:
        self.sessions, self.now = sessions, now
        self.entries = self._entries()
        self._beliefs: dict[dt.datetime | None, ArmBelief] = {}

    def _entries(self) -> Mapping[str, Sequence[Entry]]:
        """Every row about each session, in the order they were written."""
        names = {session.observation: name for name, session in self.sessions.items()}
        rows = LedgerEntry.objects.filter(observation__in=names, bandit__name=BANDIT).select_related("grader")
        entries: dict[str, list[Entry]] = {name: [] for name in self.sessions}
        for row in rows.order_by("pk"):
            own = entries[names[row.observation]]
            own.append(Entry.of(row, own[-1] if own else None))
        return entries

    def reward(self, name: str, until: dt.datetime | None = None) -> Entry | None:
        """What was live for a session at a moment, or is now; None for nothing."""
        rows = [row for row in self.entries.get(name, ()) if until is None or row.at <= until]
        return rows[-1] if rows and not rows[-1].is_reverse else None

    def counted(self, name: str, until: dt.datetime | None = None) -> set[tuple[object, ...]]:
        """What counts for a session in the arms at a moment, or now: to the millionth, as the posterior adds it up."""
        if name not in self.sessions:
            return set()
        rows = LedgerEntry.objects.filter(observation=self.sessions[name].observation, bandit__name=BANDIT)
        if until is not None:
            rows = rows.filter(recorded_at__lte=until)
        net: Counter[tuple[object, ...]] = Counter()
        for *what, op in rows.values_list("arm", "grader__source", "effective_day", "value_micro", "cost_micro", "op"):
            net[tuple(what)] += 1 if op == LedgerEntry.Op.APPLY else -1
        return {what for what, live in net.items() if live}

    def belief(self, until: dt.datetime | None = None) -> ArmBelief:
        """What this site believes today, or would had it known nothing after `until`."""
        if until not in self._beliefs:
            self._beliefs[until] = ArmBelief.of(posterior_of(BANDIT, self.now, known_by=until))
        return self._beliefs[until]

    @cached_property
    def without(self) -> ArmBelief:
        """As if these sessions had never been."""
        return self._instead(None)

    @cached_property
    def with_floors(self) -> ArmBelief:
        """As if each of these sessions had earned the floor, and a judge had said so."""
        return self._instead(settings.FLOOR)

    def _instead(self, value: float | None) -> ArmBelief:
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
        return ArmBelief.of(what_if_changed(BANDIT, {BANDIT: changes}, self.now)[1])


def thousandths(value: float) -> str:
    """A mean as people read it: three digits, no leading zero."""
    return f"{value:.3f}".removeprefix("0")
