"""Outages above the bars of their days: a rule as wide as the bar, the hours of the outage red on it, and words."""

import datetime as dt
from collections.abc import Iterable, Sequence
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
    marks = [rect("f-rule", (each.left, each.top - GAP, each.width, 1), "") for each in columns if each.day in marked]
    for outage in shown:
        for column in _days(outage, columns):
            # How much of the day was over when it began, and when it ended.
            start = _hours(outage.since) if outage.since.date() == column.day else 0.0
            end = _hours(outage.until) if outage.until.date() == column.day else 24.0
            width = max((end - start) / 24 * column.width, 2.0)
            left = min(column.left + start / 24 * column.width, column.left + column.width - width)
            marks.append(rect("f-alarm", (left, column.top - GAP - 1.5, width, 4), outage.words))
    labels: list[_Label] = []
    for outage in shown[-LABELLED:]:
        column = _days(outage, columns)[-1]
        width, middle = LETTER * len(outage.words), column.left + column.width / 2
        left = min(max(middle - width / 2, tops[0].left), right - width)
        below = [each.top for each in tops if each.left < left + width and each.left + each.width > left]
        y = min(below or [column.top]) - 4
        for each in sorted(labels, key=lambda label: -label.y):
            if each.left < left + width and each.right > left and abs(each.y - y) < LINE:
                y = each.y - LINE
        labels.append(_Label(left=left, right=left + width, y=y))
        marks.append(text(left, y, outage.words, "start", "red"))
    return "".join(marks)


def _hours(moment: dt.datetime) -> float:
    return moment.hour + moment.minute / 60


def _days(outage: OutageSpan, columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if outage.since.date() <= column.day <= outage.until.date()]
