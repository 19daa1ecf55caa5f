"""Outages above the bars of their days: a rule as wide as the bar, the hours of the outage red on it, and words."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from grading.screens.charts.svg import rect, text

LABELLED = 3
# Pixels: of a character, and between a bar, its rule and the words above.
LETTER, GAP, LINE = 5.4, 9.0, 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageSpan:
    """From `since` to `until`, both in the picture's zone."""

    since: dt.datetime
    until: dt.datetime
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One day's bar: its left edge, width and top."""

    day: dt.date
    left: float
    width: float
    top: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label:
    left: float
    right: float
    y: float


def draw(outages: Iterable[OutageSpan], columns: Sequence[Column], right: float) -> str:
    """Marks over `columns`; the last few outages with their words, none over a bar, a rule or other words."""
    shown = [outage for outage in outages if _days(outage, columns)]
    marked = {column.day for outage in shown for column in _days(outage, columns)}
    tops = [replace(each, top=each.top - GAP) if each.day in marked else each for each in columns]
    marks = [_rule(column) for column in columns if column.day in marked]
    marks += [_hours(outage, column) for outage in shown for column in _days(outage, columns)]
    labels: list[_Label] = []
    for outage in shown[-LABELLED:]:
        marks.append(_words(outage, _days(outage, columns)[-1], tops, labels, right))
    return "".join(marks)


def _days(outage: OutageSpan, columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if outage.since.date() <= column.day <= outage.until.date()]


def _rule(column: Column) -> str:
    return rect("f-rule", (column.left, column.top - GAP, column.width, 1), "")


def _hours(outage: OutageSpan, column: Column) -> str:
    start, end = (_share(moment, column.day) for moment in (outage.since, outage.until))
    width = max((end - start) * column.width, 2.0)
    left = min(column.left + start * column.width, column.left + column.width - width)
    return rect("f-alarm", (left, column.top - GAP - 1.5, width, 4), outage.words)


def _share(moment: dt.datetime, day: dt.date) -> float:
    """How much of the day is over at a moment, in [0, 1]."""
    if moment.date() != day:
        return 0.0 if moment.date() < day else 1.0
    return (60 * moment.hour + moment.minute) / (24 * 60)


def _words(outage: OutageSpan, column: Column, tops: Sequence[Column], labels: list[_Label], right: float) -> str:
    width, middle = LETTER * len(outage.words), column.left + column.width / 2
    left = min(max(middle - width / 2, tops[0].left), right - width)
    y = min(
        [each.top for each in tops if each.left < left + width and each.left + each.width > left] or [column.top]
    ) - 4  # fmt: skip
    clash: Callable[[_Label], bool] = lambda each: each.left < left + width and each.right > left  # noqa: E731
    for each in sorted(filter(clash, labels), key=lambda label: -label.y):
        y = each.y - LINE if abs(each.y - y) < LINE else y
    labels.append(_Label(left=left, right=left + width, y=y))
    return text(left, y, outage.words, "start", "red")
