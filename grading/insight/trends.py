"""Means of a measure by day or week, from the sums of `loading`."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Final

import numpy as np

from grading.insight.core.cells import CellTable, group_sums
from grading.insight.core.means import Z90, mean_of
from grading.insight.core.measures import MEASURES, Measure, MeasureUnit
from grading.insight.core.results import Mean, Span, Trend, TrendLine, TrendPoint, TrendSplit, TrendStep
from grading.insight.loading import CellFilter, load_cells

# Measures that are 0 or 1 for each session, so that their mean is a share of sessions.
YES_OR_NO: Final = frozenset({"final", "suites", "claimed_without_green"})


def load_trend(
    measure: str,
    span: Span,
    *,
    step: TrendStep = TrendStep.WEEK,
    split: TrendSplit | None = None,
    filters: CellFilter | None = None,
    most_lines: int | None = None,
) -> Trend:
    """A measure over the span, by its name in `MEASURES`. Raises KeyError for another name. Two queries.

    The last week may be shorter than seven days. With `most_lines`, only the largest groups have a line;
    `Trend.groups` counts them all.
    """
    chosen = MEASURES[measure]
    spans = split_span(span, step)
    is_count = chosen.unit is MeasureUnit.SESSIONS
    columns = () if split is None else (split.value,)
    table = load_cells(span, columns=columns, measures=() if is_count else (measure,), filters=filters)
    groups = [] if split is None else split_by_size(table, split.value)
    return Trend(
        measure=chosen,
        step=step,
        split=split,
        whole=make_line("", table, chosen, spans),
        lines=tuple(make_line(name, group, chosen, spans) for name, group in groups[:most_lines]),
        groups=len(groups),
    )


def split_span(span: Span, step: TrendStep) -> list[Span]:
    """The days of the span, or its weeks from Monday to Sunday."""
    days = [span.first + dt.timedelta(days=number) for number in range(span.days)]
    if step is TrendStep.DAY:
        return [Span(first=day, last=day) for day in days]
    starts = [day for day in days if day == span.first or day.weekday() == 0]
    ends = [*(day - dt.timedelta(days=1) for day in starts[1:]), span.last]
    return [Span(first=first, last=last) for first, last in zip(starts, ends, strict=True)]


def split_by_size(table: CellTable, name: str) -> list[tuple[str, CellTable]]:
    """The values of a column with their cells, the value with the most sessions first. Sessions without a value have
    "".
    """
    column = table.columns[name]
    counts = group_sums(column.codes, table.sessions, len(column.labels))
    order = sorted(range(len(column.labels)), key=lambda code: (-counts[code], str(column.labels[code])))
    return [(str(column.labels[code]), table.where(column.codes == code)) for code in order]


def make_line(name: str, table: CellTable, measure: Measure, spans: Sequence[Span]) -> TrendLine:
    """The means of these cells in each of the spans, which are in order and have no gaps."""
    # Sorted by day, the cells of a span are one slice.
    table = table.where(np.argsort(table.days, kind="stable"))
    edges = np.searchsorted(table.days, [*(span.first.toordinal() for span in spans), spans[-1].last.toordinal() + 1])
    points = tuple(
        TrendPoint(span=span, mean=measure_mean(table.where(slice(edges[place], edges[place + 1])), measure))
        for place, span in enumerate(spans)
    )
    return TrendLine(name=name, points=points, total=measure_mean(table, measure))


def measure_mean(table: CellTable, measure: Measure) -> Mean:
    """The mean of the measure. For the measure "sessions" it is the number of sessions, which has no interval."""
    if measure.unit is MeasureUnit.SESSIONS:
        count = round(float(table.sessions.sum()))
        return Mean(value=float(count), low=None, high=None, sessions=count, known=count, provisional=0)
    mean = mean_of(table, measure.name)
    return widen_share(mean) if measure.name in YES_OR_NO and mean.value in (0.0, 1.0) else mean


def widen_share(mean: Mean) -> Mean:
    """A share of 0 or 1 with Wilson's interval, because sessions that are all alike show no variance."""
    n = mean.known
    square = Z90 * Z90
    middle = ((mean.value or 0.0) + square / (2 * n)) / (1 + square / n)
    half = Z90 / (1 + square / n) * sqrt(square / (4 * n * n))
    return replace(mean, low=max(middle - half, 0.0), high=min(middle + half, 1.0))
