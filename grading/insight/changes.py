"""What changed between two periods, in four parts."""

import datetime as dt

from grading.insight.core.results import PeriodChange, Span, TimeMark
from grading.insight.loading import CellFilter


def compare(before: Span, after: Span, *, measure: str = "reward", filters: CellFilter | None = None) -> PeriodChange:
    """The difference of the means of two spans, which must not overlap, in parts. Raises ValueError if they overlap."""
    raise NotImplementedError


def spans_around(mark: TimeMark, now: dt.datetime, *, most_days: int = 28) -> tuple[Span, Span]:
    """The days before and after a mark, up to `most_days` each, without its own day."""
    raise NotImplementedError


def last_two_weeks(now: dt.datetime) -> tuple[Span, Span]:
    """The last two whole weeks, Monday to Sunday: what the headline and the letter compare."""
    raise NotImplementedError
