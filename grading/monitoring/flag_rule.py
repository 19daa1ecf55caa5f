"""Flag rules: they flag each session that is implausible, and open an alarm if there are too many."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q

from grading.models import Alarm, Flag, Session
from grading.models.sessions import yours
from grading.monitoring.rule import RULES, Finding, Rule
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
    """The number of sessions of an agent and a harness that a rule has flagged in its window (`n`).

    `open` of these flags are still open. `latest` is when the last flag was raised.
    """

    agent: str
    harness: str
    n: int
    open: int
    latest: dt.datetime


def recent_flags(now: dt.datetime) -> Mapping[str, Sequence[Flagged]]:
    """The flags on sessions that ended in the window, by rule. One query."""
    recent = Flag.objects.filter(yours(), session__ended_at__gt=now - WINDOW).order_by()
    rows = recent.values_list("rule", "session__agent__name", "session__harness__name")
    flags: dict[str, list[Flagged]] = defaultdict(list)
    for rule, agent, harness, n, waiting, latest in rows.annotate(
        n=Count("pk"), waiting=Count("pk", filter=Q(cleared_at=None)), latest=Max("raised_at")
    ):
        flags[rule].append(Flagged(agent=agent, harness=harness or "", n=n, open=waiting, latest=latest))
    return flags


Examine = Callable[[Session, CurrentGrades, dt.datetime], str]
Summarize = Callable[[Sequence[Flagged]], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRule(Rule):
    """A rule about single sessions.

    `examine` returns a text that says what is implausible about a session, given its current grades; empty if nothing
    is. `summarize` turns the flags of the window into findings.

    `settled` is the reason that is stored when a flag clears itself. A flag that a person cleared is not raised again.
    `is_rate`: whether the rule's alarm is about the week's number of flags, cleared or not. Such an alarm closes when a
    person acknowledges it, and opens again at the next flag.
    """

    examine: Examine
    summarize: Summarize
    settled: str
    is_rate: bool = False

    def summarize_flags(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        """The findings from this rule's `recent_flags`.

        If the rule is about a rate, there are none once somebody has acknowledged its alarm after the latest flag.
        """
        findings = list(self.summarize(flags))
        if findings and self.is_rate:
            latest = max(flagged.latest for flagged in flags)
            if Alarm.objects.filter(rule=self.id, acknowledged_at__gt=latest).exists():
                return ()
        return findings

    def list_flagged(self, about: str, now: dt.datetime) -> Sequence[int]:
        """The keys of the flagged sessions in order of time. `about` limits them to an agent or a harness."""
        flags = Flag.objects.filter(yours(), rule=self.id, session__ended_at__gt=now - WINDOW)
        if about == UNKNOWN_HARNESS:
            flags = flags.filter(session__harness=None)
        elif about:
            flags = flags.filter(Q(session__agent__name=about) | Q(session__harness__name=about))
        return list(flags.order_by("session__ended_at").values_list("session", flat=True))


def flag_rule(**fields: Any) -> Callable[[Examine], FlagRule]:
    """Register a flag rule with these fields. The decorated function is its `examine`.

    If `find` or `list_sessions` is not among the fields, it reads the rule's flags.
    """

    def register(examine: Examine) -> FlagRule:
        # `find` and `list_sessions` use `rule` only when they are called; it is created below.
        def find(now: dt.datetime) -> Iterable[Finding]:
            return rule.summarize_flags(recent_flags(now).get(rule.id, ()))

        def list_sessions(about: str, now: dt.datetime) -> Sequence[int]:
            return rule.list_flagged(about, now)

        rule = FlagRule(examine=examine, **{"find": find, "list_sessions": list_sessions, **fields})
        RULES[rule.id] = rule
        return rule

    return register


def too_many(text: str) -> Summarize:
    """A `summarize` that yields a finding if too many sessions were flagged: `text` with {count}."""

    def summarize(flags: Sequence[Flagged]) -> Iterable[Finding]:
        count = sum(flagged.n for flagged in flags)
        if is_too_often(count):
            yield Finding(detail=text.format(count=count))

    return summarize


def too_many_of_an_agent(text: str, *, only_open: bool = False) -> Summarize:
    """A `summarize` that yields a finding for each agent with too many flagged sessions: `text` with {count}, {agent}.

    `only_open`: count only open flags.
    """

    def summarize(flags: Sequence[Flagged]) -> Iterable[Finding]:
        counts: Counter[str] = Counter()
        for flagged in flags:
            counts[flagged.agent] += flagged.open if only_open else flagged.n
        for agent, count in sorted(counts.items()):
            if is_too_often(count):
                yield Finding(about=agent, detail=text.format(count=count, agent=agent))

    return summarize
