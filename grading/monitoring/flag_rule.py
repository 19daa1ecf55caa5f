"""What a rule about single sessions is: it flags each that is implausible, and opens an alarm at too many."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q

from grading.models import Alarm, Flag, Session
from grading.models.sessions import yours
from grading.monitoring.rule import Finding, Rule
from grading.reward.decide import CurrentGrades

WINDOW = dt.timedelta(days=7)
# The most flagged sessions of a window that open no alarm.
ALLOWED = 2
UNKNOWN_HARNESS = "an unknown harness"


def is_too_often(count: int) -> bool:
    """Whether a rule flagged unusually many sessions in its window."""
    return count > ALLOWED


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


Examine = Callable[[Session, CurrentGrades, dt.datetime], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRule(Rule):
    """A rule about single sessions. `examine` returns what is implausible about one at a moment, given its current
    grades, as text; empty if nothing is. `summarize` returns what the flags of the window come to.

    `settled`: why a flag cleared itself. One that a person cleared stays so. `is_rate`: whether its alarm says that the
    week had too many, whatever became of them since. Such an alarm closes when a person acknowledges it, and opens
    again at the next flag.
    """

    examine: Examine
    summarize: Callable[[Sequence[Flagged]], Iterable[Finding]]
    settled: str
    is_rate: bool = False

    def find_in(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        """What the rule's own flags of the window come to. A rate says nothing if a person has named the cause since
        the latest flag.
        """
        findings = list(self.summarize(flags))
        if findings and self.is_rate:
            latest = max(each.latest for each in flags)
            if Alarm.objects.filter(rule=self.id, acknowledged_at__gt=latest).exists():
                return ()
        return findings

    def list_flagged(self, about: str, now: dt.datetime) -> Sequence[int]:
        """The keys of the flagged sessions in order of time: all of them, or of the agent or harness `about`."""
        flags = Flag.objects.filter(yours(), rule=self.id, session__ended_at__gt=now - WINDOW)
        if about == UNKNOWN_HARNESS:
            flags = flags.filter(session__harness=None)
        elif about:
            flags = flags.filter(Q(session__agent__name=about) | Q(session__harness__name=about))
        return list(flags.order_by("session__ended_at").values_list("session", flat=True))


def flag_rule(**fields: Any) -> Callable[[Examine], FlagRule]:
    """Make a flag rule with these fields of the function that examines a session. Unless given, `find` and
    `list_sessions` go by its flags.
    """

    def make(examine: Examine) -> FlagRule:
        defaults = {
            "find": lambda now: made.find_in(flagged(now).get(made.id, ())),
            "list_sessions": lambda about, now: made.list_flagged(about, now),  # noqa: PLW0108 - made is not there yet
        }
        made: FlagRule = FlagRule(examine=examine, **{**defaults, **fields})
        return made

    return make


def too_many_of_an_agent(text: str, *, only_open: bool = False) -> Callable[[Sequence[Flagged]], Iterable[Finding]]:
    """A summary with a finding for each agent that had too many sessions flagged: `text` with {count} and {agent}.
    `only_open`: of those that still wait.
    """

    def summarize(flags: Sequence[Flagged]) -> Iterable[Finding]:
        counts: Counter[str] = Counter()
        for each in flags:
            counts[each.agent] += each.open if only_open else each.n
        for agent, count in sorted(counts.items()):
            if is_too_often(count):
                yield Finding(about=agent, detail=text.format(count=count, agent=agent))

    return summarize


def flagged(now: dt.datetime) -> dict[str, list[Flagged]]:
    """By rule, the flags on sessions that ended in the window, one query for all."""
    recent = Flag.objects.filter(yours(), session__ended_at__gt=now - WINDOW).order_by()
    rows = recent.values_list("rule", "session__agent__name", "session__harness__name")
    by_rule: dict[str, list[Flagged]] = {}
    for rule, agent, harness, n, still, latest in rows.annotate(
        n=Count("pk"), still=Count("pk", filter=Q(cleared_at=None)), latest=Max("raised_at")
    ):
        row = Flagged(rule=rule, agent=agent, harness=harness or "", n=n, open=still, latest=latest)
        by_rule.setdefault(rule, []).append(row)
    return by_rule


def total(flags: Iterable[Flagged]) -> int:
    """All sessions that were flagged, cleared or not."""
    return sum(each.n for each in flags)
