"""Alarm rules: functions that read rows and return findings, with the texts that people see, and their registry."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grading.models import Flag

# The interval of rules that are not urgent.
SOMETIMES = dt.timedelta(minutes=10)
# Former rules, each with the rule that it is part of now. NOTIFY_RULES may still name them.
MERGED_INTO = {"A28": "A2", "A45": "A44", "A49": "A33"}


class Severity(StrEnum):
    """An alarm is shown on every page until somebody acknowledges it. An advisory is shown on the alarms page only."""

    ALARM = "alarm"
    ADVISORY = "advisory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong now. `about` is its subject: each subject of a rule has an alarm of its own.

    `sessions`: the keys of the sessions concerned, in order of time; empty if the rule can't name them.
    """

    detail: str
    about: str = ""
    sessions: tuple[int, ...] = ()


Find = Callable[[dt.datetime], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An alarm rule: `find` returns what is wrong at a moment.

    Texts: `title` is the headline, `means` says when the rule opens an alarm (window and threshold), `todo` says what a
    person should do, and `page` is where.

    `every`: how often the rule runs. None means after each judge's answer, after each change of a flag, and every few
    seconds, so such a rule may only make a few indexed queries.
    `nightly`: the rule runs once a day, outside a transaction, and may take long.
    `is_attended`: the rule is run by the threads that send heartbeats, because it is about the programs that run the
    other rules.
    `notify_externally`: the rule's alarms are sent by e-mail and webhook although they are advisories.
    `quotes_verdict`: the rule's flags say something about a session's verdict. People who are to grade the session
    blind see only the rule's title.
    `list_sessions`: returns the keys of the sessions behind an alarm, in order of time, given what the alarm is about.
    Without it, the finding's `sessions` are used.
    """

    id: str
    title: str
    means: str
    find: Find
    todo: str = "Fix the problem that the alarm describes. The alarm then closes automatically."
    page: str = "admin:alarms"
    severity: Severity = Severity.ALARM
    every: dt.timedelta | None = None
    nightly: bool = False
    is_attended: bool = False
    notify_externally: bool = False
    quotes_verdict: bool = False
    list_sessions: Callable[[str, dt.datetime], Sequence[int]] | None = None

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        """The keys of the sessions behind an alarm, in order of time; empty if the rule can't name them."""
        if self.list_sessions is not None:
            return self.list_sessions(about, now)
        if self.nightly:  # too slow for a page
            return ()
        return next((finding.sessions for finding in self.find(now) if finding.about == about), ())


# Every rule by its id, in the order in which the modules are imported. The decorators add to it.
RULES: dict[str, Rule] = {}


def alarm_rule(**fields: Any) -> Callable[[Find], Rule]:
    """Register a rule with these fields. The decorated function is its `find`."""

    def register(find: Find) -> Rule:
        rule = Rule(find=find, **fields)
        RULES[rule.id] = rule
        return rule

    return register


def title_of(rule: str) -> str:
    """The title of the rule with this id. Flags by people, whose rule is Flag.BY_A_PERSON, have one too."""
    if rule == Flag.BY_A_PERSON:
        return "Flagged by a person"
    return RULES[rule].title if rule in RULES else "A rule that no longer exists"


def is_advisory(rule: str) -> bool:
    """Whether alarms of the rule with this id are shown on the alarms page only."""
    return rule in RULES and RULES[rule].severity is Severity.ADVISORY


def quotes_verdict(rule: str) -> bool:
    """Whether the text of the rule's flags says something about the judge's verdict."""
    return rule in RULES and RULES[rule].quotes_verdict


def stamp(moment: dt.datetime) -> str:
    """A moment as alarms write it: 31 Mar 09:47 UTC."""
    return f"{moment.astimezone(dt.UTC):%-d %b %H:%M} UTC"
