"""What a rule about single sessions is: it flags each that it finds implausible, and alarms at too many."""

import datetime as dt
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.db.models import Count, Max, Q

from grading.models import Alarm, Flag, Session
from grading.models.sessions import yours
from grading.monitoring.rule import Finding, Rule
from grading.reward.decide import CurrentGrades

DAYS = 7
ALLOWED = 2


def is_too_often(count: int) -> bool:
    """Whether so many sessions that a rule flagged among those of DAYS days are more than would be usual."""
    return count > ALLOWED


WINDOW = dt.timedelta(days=DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagged:
    """How many sessions of an agent and a harness a rule has flagged in its window: `n`, of which `open` still wait;
    the `latest` when.
    """

    rule: str
    agent: str
    harness: str
    n: int
    open: int
    latest: dt.datetime


class FlagRule(Rule):
    """A rule about single sessions. `settled`: why a flag cleared itself. One that a person cleared stays so.

    `is_rate`: whether its alarm says that the week had too many, whatever became of them since. Such an alarm closes
    when a person acknowledges it, and opens again at the next flag.
    """

    settled: ClassVar[str]
    is_rate: ClassVar[bool] = False

    def has_known_cause(self, flags: Sequence[Flagged]) -> bool:
        """Whether a person has acknowledged the rule's alarm since the latest of these flags went up."""
        latest = max(each.latest for each in flags)
        return Alarm.objects.filter(rule=self.id, acknowledged_at__gt=latest).exists()

    @abstractmethod
    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:
        """What is implausible about the session as it stands at `now`, with the grades that hold, in words; empty where
        nothing is.
        """

    @abstractmethod
    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        """What the rule's own flags of the window come to."""

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        return self.told(flagged(now).get(self.id, ()))

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        """Those that are flagged: of the agent or harness that it is about."""
        flags = Flag.objects.filter(yours(), rule=self.id, session__ended_at__gt=now - WINDOW)
        flags = flags.order_by("session__ended_at")
        if about:
            flags = flags.filter(Q(session__agent__name=about) | Q(session__harness__name=about))
        return list(flags.values_list("session", flat=True))


def flagged(now: dt.datetime) -> dict[str, list[Flagged]]:
    """By rule, the flags on sessions that ended in the window, one query for all."""
    recent = Flag.objects.filter(yours(), session__ended_at__gt=now - WINDOW).order_by()
    rows = recent.values_list("rule", "session__agent__name", "session__harness__name")
    found: dict[str, list[Flagged]] = {}
    for rule, agent, harness, n, still, latest in rows.annotate(
        n=Count("pk"), still=Count("pk", filter=Q(cleared_at=None)), latest=Max("raised_at")
    ):
        row = Flagged(rule=rule, agent=agent, harness=harness or "", n=n, open=still, latest=latest)
        found.setdefault(rule, []).append(row)
    return found


def total(flags: Iterable[Flagged]) -> int:
    """All sessions that were flagged, cleared or not."""
    return sum(each.n for each in flags)


def too_often_by_agent(flags: Iterable[Flagged], *, only_open: bool = False) -> list[tuple[str, int]]:
    """The agents that had more of their sessions flagged than would be usual, by name, and how many."""
    counts: Counter[str] = Counter()
    for each in flags:
        counts[each.agent] += each.open if only_open else each.n
    return sorted((agent, count) for agent, count in counts.items() if is_too_often(count))
