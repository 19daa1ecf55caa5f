"""What a validity rule is: a small class that looks at the rows and says what it found, in words."""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

# How often a rule looks that nobody waits for.
SOMETIMES = dt.timedelta(minutes=10)


class Severity(StrEnum):
    """An alarm stands on every page until somebody acknowledges it; an advisory only on the page of alarms."""

    ALARM = "alarm"
    ADVISORY = "advisory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that holds now: what came, and what was usual. Each thing it is `about` has an alarm of its own.

    `sessions`: the keys of those it was found in, where a rule can name them, in order of time.
    """

    detail: str
    about: str = ""
    sessions: tuple[int, ...] = ()


class Rule(ABC):
    """One rule. `title` is its headline, `means` says when it raises (window and threshold), `todo` what a person does
    and `page` where. `notify_externally`: whether an advisory, too, is told outside the site.

    `every`: how often it looks; None means whenever an answer of a judge was recorded, a session that moved a flag, or,
    every few seconds, any other, so such a rule may ask only a few indexed queries. A `nightly` one takes long: it
    looks once a day, from a task of its own. One that `is_attended` the heartbeats' threads look by, for it is about
    the programs that call the others.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    means: ClassVar[str]
    todo: ClassVar[str] = "Read what it found, fix that, then acknowledge the alarm."
    page: ClassVar[str] = "admin:alarms"
    severity: ClassVar[Severity] = Severity.ALARM
    every: ClassVar[dt.timedelta | None] = None
    nightly: ClassVar[bool] = False
    is_attended: ClassVar[bool] = False
    notify_externally: ClassVar[bool] = False

    @abstractmethod
    def look(self, now: dt.datetime) -> Iterable[Finding]:
        """What holds at `now`; nothing where all is well."""

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:  # noqa: ARG002 - a rule may not know any
        """The keys of the sessions that an alarm about that was found in, in order of time; none where it can't say."""
        return ()


class RuleOfSessions(Rule):
    """A rule whose findings name their sessions."""

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        return next((found.sessions for found in self.look(now) if found.about == about), ())


def stamp(moment: dt.datetime) -> str:
    """A moment as alarms write it: 31 Mar 09:47 UTC."""
    return f"{moment.astimezone(dt.UTC):%-d %b %H:%M} UTC"
