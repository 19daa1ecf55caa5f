"""What a rule about single sessions is: it flags each that it finds implausible."""

import datetime as dt
from abc import abstractmethod
from typing import ClassVar

from grading.core.decide import Holds
from grading.models import Flag, Session
from grading.models.monitoring import FlagQuerySet
from grading.monitoring.rule import Rule

WINDOW = dt.timedelta(days=7)


class FlagRule(Rule):
    """A rule about single sessions: it flags each that it finds implausible, and alarms where there are too many.

    `settled`: why a flag cleared itself. One that a person cleared stays so.
    """

    settled: ClassVar[str]

    @abstractmethod
    def finding(self, session: Session, holds: Holds) -> str:
        """What is implausible about the session as it stands, with the grades that hold, in words; empty where nothing
        is.
        """


def recent_flags(rule: str, now: dt.datetime) -> FlagQuerySet:
    """The rule's flags on sessions that ended in its window (event time), cleared or not."""
    return Flag.objects.filter(rule=rule, session__ended_at__gt=now - WINDOW)
