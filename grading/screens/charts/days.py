"""Bars by day: grades by what decided them, and what the judge cost."""

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from grading.screens.charts.outages import Column, OutageSpan, draw
from grading.screens.charts.svg import hatch, level, rect, round_up, svg, text, wide, wide_rect, wide_text

STACK = ("judge", "human", "consumption", "trajectory", "journal", "floor")
DAYS = (880, 240)
# On a phone, so that its words keep their size.
NARROW = 340
# What the name of a day takes.
LABEL = 40
COSTS = 176


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`count` sessions of one day that `source` decided, finally or not."""

    day: dt.date
    source: str
    final: bool
    count: int


def by_day(
    bars: Iterable[Bar], days: Sequence[dt.date], outages: Sequence[OutageSpan] = (), width: int = DAYS[0]
) -> SafeString:
    """Sessions by day, stacked by deciding source; provisional ones hatched. The last day is "today"."""
    height = DAYS[1]
    left, base = 34.0, height - 24.0
    top = 40.0 if outages else 12.0
    cells = {(bar.day, bar.source, bar.final): bar.count for bar in bars}
    totals = [sum(n for (on, _, _), n in cells.items() if on == day) for day in days]
    ceiling = round(round_up(max(totals, default=0)))
    unit, step = (base - top) / ceiling, (width - left) / max(len(days), 1)
    marks = [level(str(n), base - n * unit, left, width, axis=not n) for n in (0, ceiling // 2, ceiling)]
    columns, every = [], math.ceil(LABEL / step)
    for index, day in enumerate(days):
        x, last = left + (index + 0.25) * step, index == len(days) - 1
        y = base
        # Its sources on each other, final ones first.
        for source, final in ((s, f) for f in (True, False) for s in STACK):
            if sessions := cells.get((day, source, final), 0):
                y -= sessions * unit
                box = (x, y, step / 2, max(sessions * unit - 1, 0.5))
                title = f"{day:%-d %b}: {sessions} {source}, {'final' if final else 'provisional'}"
                marks += [rect(f"f-{source}", box, title), *([] if final else [hatch(box)])]
        columns.append(Column(day=day, left=x, width=step / 2, top=y))
        if (len(days) - 1 - index) % every == 0:
            label = _day_label(day, first=index < every, last=last)
            marks.append(text(min(x + step / 4, width - LABEL / 2), height - 8, label, "middle", "ink" * last))
    marks.append(draw(outages, columns, width - 14))
    return svg(width, height, "".join(marks), f"Grades by deciding source, {len(days)} days: {sum(totals)} sessions")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCost:
    """What one day cost in dollars: `known`, and `expected` for calls whose price was never told."""

    day: dt.date
    known: float
    expected: float
    words: str


def costs(bars: Sequence[DayCost]) -> SafeString:
    """Money by day, oldest first; what is only estimated is hatched."""
    base, top, left = COSTS - 24.0, 12.0, 4.0
    ceiling = round_up(max((bar.known + bar.expected for bar in bars), default=0), least=0.02)
    unit, step = (base - top) / ceiling, (100 - left) / max(len(bars), 1)
    marks = []
    for amount in (0, ceiling / 2, ceiling):
        css, y = "grid" if amount else "axis", base - amount * unit
        marks.append(f'<line class="{css}" x1="4%" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/>')
        marks.append(wide_text(0, y - 4, f"${amount:g}", "start"))
    every = max(1, round(len(bars) / 30))
    for index, bar in enumerate(bars):
        x, known, expected = left + index * step, bar.known * unit, bar.expected * unit
        for css, bottom, height in (("f-ink", base, known), ("", base - known, expected)):
            marks += [wide_rect(css, (x, bottom - height, step * 0.6, height), bar.words)] if height else []
        last = index == len(bars) - 1
        if (len(bars) - 1 - index) % every == 0:
            label = _day_label(bar.day, first=index == 0, last=last)
            rare = "" if (len(bars) - 1 - index) % (5 * every) == 0 else "opt"  # a phone has room for a few
            marks.append(wide_text(x + step * 0.3, COSTS - 8, label, "middle", "ink" if last else rare))
    total = sum(bar.known for bar in bars)
    return wide(COSTS, "".join(marks), f"Cost by day, {len(bars)} days: ${total:.2f} known")


def _day_label(day: dt.date, *, first: bool, last: bool) -> str:
    if last:
        return "today"
    return f"{day:%-d %b}" if first or day.day == 1 else f"{day:%-d}"
