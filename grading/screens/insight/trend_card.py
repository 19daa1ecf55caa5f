"""The card of trends: a chart of all sessions, a small one for each group, and a table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from grading.insight.core.measures import Measure, MeasureUnit
from grading.insight.core.results import MarkKind, Mean, Span, TimeMark, Trend, TrendLine, TrendPoint
from grading.insight.sentences import write_signed, write_value
from grading.screens.charts import trends
from grading.screens.charts.trends import PHONE, WIDE, ChartSize, TrendDot, TrendMarker, ValueScale
from grading.screens.insight.wording import CAUTIONS, DEFINITIONS, level_writer, scale_around

GROUPS = 8
# A site that is younger than the span has its empty beginning cut off, down to so many points.
FEWEST = 3
# Measures of the reward, which may be provisional.
PROVISIONAL = ("reward", "final")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COLUMNS = (
    "measure", "split", "group", "first_day", "last_day", "value", "low", "high", "sessions", "known", "provisional",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCell:
    """The small trend of a group. `url` shows this group alone, empty for sessions without a value of the split."""

    name: str
    url: str
    sessions: int
    value: str
    half: str
    change: str
    picture: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """A point as a row of the table. `url` opens its sessions."""

    days: str
    value: str
    interval: str
    mean: Mean
    url: str


def context(
    trend: Trend, marks: Sequence[TimeMark], narrowing: dict[str, str], query: Callable[..., str]
) -> dict[str, Any]:
    """The context of `_trend.html`. `query` returns the page's query string with some fields changed."""
    trend = without_empty_beginning(trend)
    measure, dots, markers = trend.measure, make_dots(trend.whole, trend.measure, narrowing), mark_lines(marks)
    if all(point.mean.value is None for point in trend.whole.points):
        return {"is_empty": True, "sessions": trend.whole.total.sessions, "longer": query(weeks="26")}
    return {
        "picture": draw(trend, dots, markers, WIDE),
        "narrow": draw(trend, dots, markers, PHONE),
        "marks": markers,
        "has_outage": any(each.is_outage for each in markers),
        "has_change": any(not each.is_outage for each in markers),
        "is_reward": measure.name in PROVISIONAL,
        "definition": DEFINITIONS.get(measure.name, ""),
        "caution": CAUTIONS.get(measure.name, ""),
        "rows": [_row(point, dot, measure) for point, dot in zip(trend.whole.points, dots, strict=True)][::-1],
        "cells": _cells(trend, query),
        "rest": trend.groups - len(trend.lines),
    }


def without_empty_beginning(trend: Trend) -> Trend:
    """The trend without the points before its first session, but with at least its last FEWEST points."""
    points = trend.whole.points
    first = next((place for place, point in enumerate(points) if point.mean.sessions), 0)
    first = max(min(first, len(points) - FEWEST), 0)

    def cut(line: TrendLine) -> TrendLine:
        return replace(line, points=line.points[first:])

    return replace(trend, whole=cut(trend.whole), lines=tuple(map(cut, trend.lines)))


def draw(trend: Trend, dots: Sequence[TrendDot], markers: Sequence[TrendMarker], size: ChartSize) -> SafeString:
    """The curve of all sessions."""
    measure = trend.measure
    scale = scale_for(measure, [trend.whole])
    return trends.trend(
        dots,
        markers,
        scale,
        f"{measure.title} by {trend.step.value}, with a 90 % interval",
        size=size,
        write_level=level_writer(measure, scale),
        write_value=partial(write_value, measure),
        strip=measure.name in PROVISIONAL,
    )


def mark_lines(marks: Sequence[TimeMark]) -> list[TrendMarker]:
    """The marks as the chart draws them; the newest keep their letters if there are more than letters."""
    lettered = marks[-len(LETTERS) :]
    return [
        TrendMarker(
            at=timezone.localtime(mark.at),
            label=mark.label,
            letter=letter,
            is_outage=mark.kind is MarkKind.OUTAGE,
        )
        for mark, letter in zip(lettered, LETTERS, strict=False)
    ]


def sessions_url(span: Span, narrowing: dict[str, str]) -> str:
    """The list of the sessions of these days."""
    query = {**narrowing, "since": span.first.isoformat(), "until": span.last.isoformat()}
    return f"{reverse('admin:sessions')}?{urlencode(query)}"


def write_days(span: Span) -> str:
    """23–29 Mar; 30 Mar – 5 Apr; 30 Dec 2025 – 2 Jan 2026."""
    if span.first == span.last:
        return f"{span.first:%-d %b}"
    if span.first.year != span.last.year:
        return f"{span.first:%-d %b %Y} – {span.last:%-d %b %Y}"
    if span.first.month == span.last.month:
        return f"{span.first:%-d}–{span.last:%-d %b}"
    return f"{span.first:%-d %b} – {span.last:%-d %b}"


def export(trend: Trend) -> Iterator[dict[str, Any]]:
    """Every point of the trend and of its groups, as rows of the CSV."""
    for line in (trend.whole, *trend.lines):
        for point in line.points:
            mean = point.mean
            yield {
                "measure": trend.measure.name,
                "split": "" if line is trend.whole else trend.split,
                "group": line.name,
                "first_day": point.span.first,
                "last_day": point.span.last,
                **{name: getattr(mean, name) for name in ("value", "low", "high", "sessions", "known", "provisional")},
            }


def make_dots(line: TrendLine, measure: Measure, narrowing: dict[str, str] | None) -> list[TrendDot]:
    """The points of a line for a picture; without links if `narrowing` is None."""
    return [
        TrendDot(
            first=point.span.first,
            last=point.span.last,
            value=point.mean.value,
            low=point.mean.low,
            high=point.mean.high,
            provisional=point.mean.provisional,
            label="" if narrowing is None else _describe(point, measure),
            url=sessions_url(point.span, narrowing) if narrowing is not None and point.mean.sessions else "",
        )
        for point in line.points
    ]


def _describe(point: TrendPoint, measure: Measure) -> str:
    mean = point.mean
    description = f"{write_days(point.span)}: {write_value(measure, mean.value)}"
    if mean.low is not None and mean.high is not None:
        description += f", 90 % interval {write_value(measure, mean.low)} to {write_value(measure, mean.high)}"
    if measure.unit is not MeasureUnit.SESSIONS:
        description += f", {mean.known:,} of {mean.sessions:,} sessions"
    return description


def _row(point: TrendPoint, dot: TrendDot, measure: Measure) -> TrendRow:
    mean, interval = point.mean, ""
    if mean.low is not None and mean.high is not None:
        interval = f"{write_value(measure, mean.low)} to {write_value(measure, mean.high)}"
    return TrendRow(
        days=write_days(point.span), value=write_value(measure, mean.value), interval=interval, mean=mean, url=dot.url
    )


def scale_for(measure: Measure, lines: Sequence[TrendLine]) -> ValueScale:
    """A scale for the means and their intervals; counts begin at 0."""
    means = [point.mean for line in lines for point in line.points]
    values = [each for mean in means for each in (mean.value, mean.low, mean.high) if each is not None]
    if measure.unit is MeasureUnit.SESSIONS:
        values.append(0.0)
    return scale_around(measure, values)


def _cells(trend: Trend, query: Callable[..., str]) -> list[GroupCell]:
    """The largest groups on one scale, with the mean of all sessions."""
    if trend.split is None:
        return []
    measure, lines = trend.measure, trend.lines
    scale = scale_for(measure, lines)
    overall = None if measure.unit is MeasureUnit.SESSIONS else trend.whole.total.value
    cells = []
    for line in lines:
        name = line.name or f"no {trend.split.value}"
        url = "?" + query(split="none", **{trend.split.value: line.name}) if line.name else ""
        picture = trends.spark(make_dots(line, measure, None), scale, overall, f"{name}: {measure.title}")
        cells.append(_cell(line, measure, name, url, picture))
    return cells


def _cell(line: TrendLine, measure: Measure, name: str, url: str, picture: SafeString) -> GroupCell:
    """The cell of a group, with its latest mean and the change from the mean before that."""
    means = [point.mean for point in line.points if point.mean.value is not None]
    last = means[-1] if means else line.total
    half = None if last.low is None or last.high is None else (last.high - last.low) / 2
    before = means[-2].value if len(means) > 1 else None
    return GroupCell(
        name=name,
        url=url,
        sessions=last.sessions,
        value=write_value(measure, last.value),
        half="" if half is None else f"± {write_value(measure, half)}",
        change="" if before is None or last.value is None else write_signed(measure, last.value - before),
        picture=picture,
    )
