"""Sessions of the site summed by cell: the day, the work, who did it and who graded it."""

import datetime as dt
from dataclasses import dataclass

from grading.insight.core.results import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFilter:
    """Which sessions count. Each is a name as pages show it, "" for any. Sample sessions never count."""

    category: str = ""
    harness: str = ""
    version: str = ""
    model: str = ""
    agent: str = ""
    project: str = ""


def last_weeks(now: dt.datetime, weeks: int = 10) -> Span:
    """The last so many whole weeks up to today: from a Monday to the day of `now`."""
    raise NotImplementedError


def list_choices(span: Span) -> dict[str, list[str]]:
    """The names that sessions of the span have, by field of `CellFilter`, the most frequent first."""
    raise NotImplementedError
