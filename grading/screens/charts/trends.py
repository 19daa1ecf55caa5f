"""Trends over days or weeks with marks on the time axis, and small ones of each group."""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from grading.screens.charts.svg import Axis, Point, circle, hatch, level, line, open_path, rect, svg, text, wide

LEFT, RIGHT, BOTTOM, TOP = 44.0, 12.0, 20.0, 14.0
# The strip of provisional sessions under the curve, and the tallest bar in it.
STRIP, TALLEST, BAR = 42.0, 14.0, 22.0
# Without a strip, between the curve and the axis of time.
GAP = 12.0
# The widths of a character, of a day's and of a week's label, the height of a row of labels, and the most rows.
LETTER, DAY, WEEK, ROW, ROWS = 5.8, 46.0, 88.0, 16.0, 3
# Bars have numbers up to so many points.
NUMBERED = 40
Write = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSize:
    """The size of a picture in pixels. In a narrow one, letters stand for the labels of marks."""

    width: float
    height: float
    is_narrow: bool


WIDE = ChartSize(width=1352, height=288, is_narrow=False)
LETTER_WIDE = ChartSize(width=582, height=200, is_narrow=True)
PHONE = ChartSize(width=324, height=232, is_narrow=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendMarker:
    """A mark on the time axis, at a moment in the site's zone."""

    at: dt.datetime
    label: str
    letter: str
    is_outage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendDot:
    """A value of the days from `first` to `last`. `url` opens its sessions, `label` describes it."""

    first: dt.date
    last: dt.date
    value: float | None
    low: float | None
    high: float | None
    provisional: int
    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScale:
    """The values that a vertical axis has levels at, in ascending order."""

    levels: tuple[float, ...]

    @property
    def step(self) -> float:
        return self.levels[1] - self.levels[0]

    def axis(self, bottom: float, top: float) -> Axis:
        """The axis from the lowest level at `bottom` to the highest at `top`."""
        return Axis(self.levels[0], self.levels[-1], bottom, top)


def scale_of(values: Iterable[float], *, least: float, most: float = math.inf) -> ValueScale:
    """About four round levels, within 0 and `most`, that cover all of the values.

    `least` is the smallest spread, so that a small difference looks small.
    """
    points = list(values) or [0.0]
    low, high = min(points), max(points)
    missing_spread = max(least - (high - low), 0.0)
    low, high = max(low - missing_spread / 2, 0.0), min(high + missing_spread / 2, most)
    sizes = (digit * 10.0**power for power in range(-4, 14) for digit in (1, 2, 5))
    step = next(size for size in sizes if size * 3 >= high - low)
    first = math.floor(round(low / step, 6))
    last = max(math.ceil(round(high / step, 6)), first + 1)
    return ValueScale(levels=tuple(round(number * step, 10) for number in range(first, last + 1)))


def trend(
    dots: Sequence[TrendDot],
    markers: Sequence[TrendMarker],
    scale: ValueScale,
    label: str,
    *,
    size: ChartSize,
    write_level: Write,
    write_value: Write,
    strip: bool,
) -> SafeString:
    """The curve of at least one dot with its interval as a band; each dot is a link.

    `strip`: bars of the provisional sessions under it. `write_level` writes a round value of the axis.
    """
    base = size.height - BOTTOM
    bottom = base - (STRIP if strip else GAP)
    x = Axis(0, len(dots), LEFT, size.width - RIGHT)
    marks, rows = _markers(dots, markers, x, bottom, letters=size.is_narrow)
    y = scale.axis(bottom, TOP + ROW * rows)
    parts = [
        line("axis", x.start, base + 0.5, x.end, base + 0.5),
        *(level(write_level(each), y.at(each), x.start, x.end) for each in scale.levels),
        *_curve(dots, x, y),
        *marks,
        *_day_labels(dots, x, size.height - 4),
        *(_strip(dots, x, base) if strip else ()),
        *(_link(dot, (x.at(place + 0.5), y.at(dot.value))) for place, dot in enumerate(dots) if dot.value is not None),
        *_last_values(dots, x, y, write_value),
    ]
    # A group, because an image has no links.
    return mark_safe(svg(size.width, size.height, parts, label).replace('role="img"', 'role="group"', 1))


def _curve(dots: Sequence[TrendDot], x: Axis, y: Axis) -> Iterator[str]:
    """Bands and lines, with a gap where a value is unknown."""
    places = list(enumerate(dots))
    for is_known, run in groupby(places, key=lambda pair: pair[1].low is not None):
        if is_known:
            yield _band([(x.at(place + 0.5), y.at(dot.low or 0.0), y.at(dot.high or 0.0)) for place, dot in run])
    for is_known, run in groupby(places, key=lambda pair: pair[1].value is not None):
        points = [(x.at(place + 0.5), y.at(dot.value or 0.0)) for place, dot in run]
        if is_known and len(points) > 1:
            yield open_path("queue-line", points)


def _band(points: Sequence[tuple[float, float, float]]) -> str:
    """The area between the ends of intervals, (x, low, high) each. One alone is as wide as a bar."""
    if len(points) == 1:
        ((x, low, high),) = points
        points = [(x - 4, low, high), (x + 4, low, high)]
    outline = [*((x, high) for x, _low, high in points), *((x, low) for x, low, _high in reversed(points))]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
    return f'<polygon class="queue" points="{corners}"/>'


def _link(dot: TrendDot, at: Point) -> str:
    label = escape(dot.label)
    reach = f'<circle class="reach" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="11"/>'
    inner = f"<title>{label}</title>{reach}{circle('f-dot', at)}"
    return f'<a href="{escape(dot.url)}" aria-label="{label}">{inner}</a>' if dot.url else f"<g>{inner}</g>"


def _last_values(dots: Sequence[TrendDot], x: Axis, y: Axis, write: Write) -> Iterator[str]:
    """The last two values as numbers; only the last if they are close together."""
    last_points = [(place, dot.value) for place, dot in enumerate(dots) if dot.value is not None][-2:]
    if len(last_points) > 1 and x.at(last_points[1][0]) - x.at(last_points[0][0]) < DAY:
        last_points = last_points[1:]
    for place, value in last_points:
        label, is_last = write(value), place == last_points[-1][0]
        middle = min(x.at(place + 0.5), x.end - LETTER * len(label) / 2)
        yield text(middle, min(y.at(value) + 20, y.start + 12), label, "middle", "ink strong" if is_last else "ink")


def _strip(dots: Sequence[TrendDot], x: Axis, base: float) -> Iterator[str]:
    """Hatched bars with the number of provisional sessions."""
    most = max((dot.provisional for dot in dots), default=0)
    width = min((x.at(1) - x.at(0)) / 2, BAR)
    for place, dot in enumerate(dots):
        if not dot.provisional:
            continue
        tall, middle = max(TALLEST * dot.provisional / most, 2.0), x.at(place + 0.5)
        box = (middle - width / 2, base - tall, width, tall)
        yield rect("f-surface", box, f"{dot.provisional} provisional") + hatch(box, "hatch-line")
        if len(dots) <= NUMBERED:
            yield text(middle, base - tall - 4, str(dot.provisional), "middle")


def _day_labels(dots: Sequence[TrendDot], x: Axis, y: float) -> Iterator[str]:
    """The day or the first and last day of each point, or of every nth one if there is not enough room; always of the
    last point. The month of single days is written where it changes.
    """
    are_days = all(dot.first == dot.last for dot in dots)
    points_per_label = math.ceil((DAY if are_days else WEEK) / (x.at(1) - x.at(0)))
    month = 0
    for place in range((len(dots) - 1) % points_per_label, len(dots), points_per_label):
        dot, is_last = dots[place], place == len(dots) - 1
        label = f"{dot.last:%-d}" if are_days and dot.last.month == month else f"{dot.last:%-d %b}"
        if dot.first < dot.last:
            start = f"{dot.first:%-d}" if dot.first.month == dot.last.month else f"{dot.first:%-d %b}"
            label = f"{start}–{label}"
        month = dot.last.month
        middle = min(x.at(place + 0.5), x.end - LETTER * len(label) / 2)
        yield text(middle, y, label, "middle", "ink" if is_last else "")


def _markers(
    dots: Sequence[TrendDot], markers: Sequence[TrendMarker], x: Axis, bottom: float, *, letters: bool
) -> tuple[list[str], int]:
    """The marks, and how many rows their labels take. A label that fits in no row is left out; its line stays."""
    rows: list[list[tuple[float, float]]] = [[] for _row in range(ROWS)]  # the (left, right) of the labels in each
    marks = []
    for marker in reversed(markers):
        at = _place(marker.at, dots, x)
        if at is None:
            continue
        caption = marker.letter if letters else marker.label
        width = LETTER * len(caption) + 10
        left = at - width if at - width > x.start else at
        right = left + width
        row = _free_row(rows, left, right)
        label = ""
        if row is not None:
            rows[row].append((left, right))
            shift, anchor = (-6, "end") if left < at else (6, "start")
            label = text(at + shift, TOP + ROW * row, caption, anchor, "name")
        marks.append(_marker(marker, at, TOP + ROW * (row or 0) - 4, bottom, label))
    return marks, sum(bool(row) for row in rows)


def _free_row(rows: Sequence[Sequence[tuple[float, float]]], left: float, right: float) -> int | None:
    """The index of the first row with no label between `left` and `right`."""
    for index, row in enumerate(rows):
        if all(left >= other_right or right <= other_left for other_left, other_right in row):
            return index
    return None


def _marker(marker: TrendMarker, x: float, top: float, bottom: float, label: str) -> str:
    """A line from its head to the bottom of the curve: a bar for an outage, a diamond for anything else."""
    head = f'<path class="head" d="M{x:.1f},{top - 3.5:.1f} l3.5,3.5 l-3.5,3.5 l-3.5,-3.5Z"/>'
    if marker.is_outage:
        head = f'<rect class="head" x="{x - 3:.1f}" y="{top - 2:.1f}" width="6" height="4"/>'
    css = "marker out" if marker.is_outage else "marker"
    return f'<g class="{css}"><title>{escape(marker.label)}</title>{line("rule", x, top, x, bottom)}{head}{label}</g>'


def _place(time: dt.datetime, dots: Sequence[TrendDot], x: Axis) -> float | None:
    """The position of a time on the axis, on which days and weeks are equally wide; None if it is outside."""
    for place, dot in enumerate(dots):
        if dot.first <= time.date() <= dot.last:
            days = (dot.last - dot.first).days + 1
            hours = 24 * (time.date() - dot.first).days + time.hour
            return x.at(place + hours / (24 * days))
    return None


# --- the trend of one group

SPARK = 44


def spark(dots: Sequence[TrendDot], scale: ValueScale, overall: float | None, label: str) -> SafeString:
    """A small trend as wide as its place, on a scale that it shares with others; dotted: the mean of all."""
    x, y = Axis(0, max(len(dots) - 1, 1), 2, 98), scale.axis(SPARK - 4, 4)
    points = [(x.at(place), dot) for place, dot in enumerate(dots) if dot.value is not None]
    band = [(at, y.at(dot.low), y.at(dot.high)) for at, dot in points if dot.low is not None and dot.high is not None]
    curve = _band(band) if len(band) > 1 else ""
    if len(points) > 1:
        curve += open_path("queue-line", [(at, y.at(dot.value or 0.0)) for at, dot in points])
    box = f'viewBox="0 0 100 {SPARK}" width="100%" height="{SPARK}" preserveAspectRatio="none"'
    parts = [f"<svg {box}>{curve}</svg>"]
    if overall is not None:
        parts.append(f'<line class="overall" x1="0%" x2="100%" y1="{y.at(overall):.1f}" y2="{y.at(overall):.1f}"/>')
    if points:
        at, dot = points[-1]
        parts.append(f'<circle class="f-dot" cx="{at:.2f}%" cy="{y.at(dot.value or 0.0):.1f}" r="3"/>')
    return wide(SPARK, parts, label)
