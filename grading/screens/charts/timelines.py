"""Pictures with time on their horizontal axis: sessions and costs by day, outages, and the backlog of jobs."""

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from grading.screens.charts.bars import STACK
from grading.screens.charts.svg import (
    Axis,
    Point,
    area,
    circle,
    hatch,
    level,
    open_path,
    rect,
    round_up,
    svg,
    text,
    wide,
    wide_line,
    wide_rect,
    wide_text,
)

DAYS = (880, 240)
# On a phone, so that labels keep their size.
NARROW = 324
# The width of a day's label.
LABEL = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageSpan:
    """An outage from `since` to `until`, both in the picture's time zone. `short` is the visible label, if given."""

    since: dt.datetime
    until: dt.datetime
    label: str
    short: str = ""


# --- sessions by day, with outages above them


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`count` sessions of one day that `source` decided, finally or not."""

    day: dt.date
    source: str
    final: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One day's bar."""

    day: dt.date
    x: float
    width: float
    top: float


def by_day(
    bars: Iterable[Bar], days: Sequence[dt.date], outages: Sequence[OutageSpan] = (), width: int = DAYS[0]
) -> SafeString:
    """Sessions by day, stacked by deciding source; provisional ones hatched. The last day is "today"."""
    height, margin = DAYS[1], 34.0
    bars_by_day: dict[dt.date, list[Bar]] = {day: [] for day in days}
    for bar in bars:
        if bar.day in bars_by_day:
            bars_by_day[bar.day].append(bar)
    totals = [sum(bar.count for bar in bars_by_day[day]) for day in days]
    ceiling = round(round_up(max(totals, default=0)))
    y = Axis(0, ceiling, height - 24.0, 40.0 if outages else 12.0)
    slot = (width - margin) / max(len(days), 1)
    days_per_label = math.ceil(LABEL / slot)
    marks = [level(str(n), y.at(n), margin, width, is_axis=not n) for n in (0, ceiling // 2, ceiling)]
    columns = []
    for index, (day, total) in enumerate(zip(days, totals, strict=True)):
        column = Column(day=day, x=margin + (index + 0.25) * slot, width=slot / 2, top=y.at(total))
        columns.append(column)
        marks += _stacked(bars_by_day[day], column, y)
        days_to_last = len(days) - 1 - index
        if days_to_last % days_per_label == 0:
            label = _day_label(day, is_first=index < days_per_label, is_last=days_to_last == 0)
            middle = min(column.x + column.width / 2, width - LABEL / 2)
            marks.append(text(middle, height - 8, label, "middle", "" if days_to_last else "ink"))
    marks += _outages_above(outages, columns, width - 14)
    return svg(width, height, marks, f"Grades by deciding source, {len(days)} days: {sum(totals)} sessions")


def _stacked(bars: Iterable[Bar], column: Column, y: Axis) -> list[str]:
    """The bars of one day above each other, in the order of STACK: the final ones, then the provisional ones."""
    marks, below = [], 0
    for bar in sorted(bars, key=lambda bar: (not bar.final, STACK.index(bar.source))):
        height = y.at(below) - y.at(below + bar.count)
        box = (column.x, y.at(below + bar.count), column.width, max(height - 1, 0.5))
        title = f"{bar.day:%-d %b}: {bar.count} {bar.source}, {'final' if bar.final else 'provisional'}"
        marks += [rect(f"f-{bar.source}", box, title), "" if bar.final else hatch(box)]
        below += bar.count
    return marks


def _day_label(day: dt.date, *, is_first: bool, is_last: bool) -> str:
    if is_last:
        return "today"
    return f"{day:%-d %b}" if is_first or day.day == 1 else f"{day:%-d}"


LABELLED = 3
# Pixels: the width of a character, the gap between a bar, its rule and the labels above, and the height of a label.
LETTER, GAP, LINE = 5.4, 9.0, 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label:
    x1: float
    x2: float
    y: float


def _outages_above(outages: Iterable[OutageSpan], columns: Sequence[Column], right_end: float) -> list[str]:
    """Marks above the columns: a line as wide as the bar, with the hours of the outage in red. The last few outages
    have labels.
    """
    visible = [(outage, own_columns) for outage in outages if (own_columns := _days(outage, columns))]
    outage_days = {column.day for _outage, own_columns in visible for column in own_columns}
    marks = [rect("f-rule", (each.x, each.top - GAP, each.width, 1), "") for each in columns if each.day in outage_days]
    for outage, own_columns in visible:
        marks += [_outage_hours(outage, column) for column in own_columns]
    raised = [replace(each, top=each.top - GAP) if each.day in outage_days else each for each in columns]
    labels: list[_Label] = []
    for outage, own_columns in visible[-LABELLED:]:
        label = _place_label(outage, own_columns[-1], raised, labels, right_end)
        labels.append(label)
        marks.append(text(label.x1, label.y, outage.short or outage.label, "start", "red"))
    return marks


def _outage_hours(outage: OutageSpan, column: Column) -> str:
    """The hours of an outage on one day, in red above its column."""
    hours = Axis(0, 24, column.x, column.x + column.width)
    start = hours.at(_hour(outage.since) if outage.since.date() == column.day else 0.0)
    end = hours.at(_hour(outage.until) if outage.until.date() == column.day else 24.0)
    width = max(end - start, 2.0)
    box = (min(start, column.x + column.width - width), column.top - GAP - 1.5, width, 4)
    return rect("f-alarm", box, outage.label)


def _place_label(
    outage: OutageSpan, column: Column, columns: Sequence[Column], labels: Sequence[_Label], right_end: float
) -> _Label:
    """The place of an outage's label above its last `column`, where it covers no other column and no other label."""
    width, middle = LETTER * len(outage.short or outage.label), column.x + column.width / 2
    x1 = min(max(middle - width / 2, columns[0].x), right_end - width)
    x2 = x1 + width
    tops_below = [each.top for each in columns if each.x < x2 and each.x + each.width > x1]
    y = min(tops_below or [column.top]) - 4
    for each in sorted(labels, key=lambda label: -label.y):  # the lowest first
        if each.x1 < x2 and each.x2 > x1 and abs(each.y - y) < LINE:
            y = each.y - LINE
    return _Label(x1=x1, x2=x2, y=y)


def _hour(time: dt.datetime) -> float:
    return time.hour + time.minute / 60


def _days(outage: OutageSpan, columns: Sequence[Column]) -> list[Column]:
    """The columns of the days on which the outage lasted."""
    return [column for column in columns if outage.since.date() <= column.day <= outage.until.date()]


# --- costs by day

COSTS = 176


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCost:
    """What one day cost in dollars: `reported`, and `expected` for calls without a reported price."""

    day: dt.date
    reported: float
    expected: float
    label: str


def costs(bars: Sequence[DayCost], *, expected_css: str = "") -> SafeString:
    """Costs by day, oldest first. Expected costs have the class `expected_css`, and are hatched by default."""
    x0, base = 4.0, COSTS - 24.0
    ceiling = round_up(max((bar.reported + bar.expected for bar in bars), default=0), least=0.02)
    y = Axis(0, ceiling, base, 12)
    step = (100 - x0) / max(len(bars), 1)
    marks = []
    for amount in (0, ceiling / 2, ceiling):
        css, at = "grid" if amount else "axis", y.at(amount)
        marks.append(f'<line class="{css}" x1="4%" y1="{at:.1f}" x2="100%" y2="{at:.1f}"/>')
        marks.append(wide_text(0, at - 4, _dollars(amount)))
    days_per_label = max(1, round(len(bars) / 30))
    for index, bar in enumerate(bars):
        x, top, width = x0 + index * step, y.at(bar.reported), step * 0.6
        reported_height, expected_height = base - top, base - y.at(bar.expected)
        if reported_height:
            marks.append(wide_rect("f-ink", (x, top, width, reported_height), bar.label))
        if expected_height:
            marks.append(wide_rect(expected_css, (x, top - expected_height, width, expected_height), bar.label))
        days_to_last = len(bars) - 1 - index
        if days_to_last % days_per_label == 0:
            label = _day_label(bar.day, is_first=index == 0, is_last=days_to_last == 0)
            css = "" if days_to_last % (5 * days_per_label) == 0 else "opt"  # a phone has room for every fifth label
            marks.append(wide_text(x + width / 2, COSTS - 8, label, "middle", "ink" if days_to_last == 0 else css))
    total = sum(bar.reported for bar in bars)
    return wide(COSTS, marks, f"Cost by day, {len(bars)} days: ${total:.2f} known")


def _dollars(amount: float) -> str:
    """A round sum for an axis: $0, $0.30, $0.025, $1,200."""
    if amount == round(amount):
        return f"${amount:,.0f}"
    return f"${amount:,.2f}" if abs(amount - round(amount, 2)) < 1e-9 else f"${amount:,.3f}"  # noqa: PLR2004 - a rounding error


# --- the backlog with its forecast

BACKLOG, SMALL_BACKLOG, PHONE_BACKLOG = (640, 176), (420, 190), (324, 176)
# The highest place of a note, and its height with the gap to the next.
FIRST_NOTE, NOTE = 11, 14
# Hours between the labels of a time axis: the first step with TICKS labels at most is taken.
HOURS = (1, 2, 3, 4, 6, 12, 24, 48, 96, 168)
TICKS = 7
DAY_HOURS = 24

Curve = Sequence[tuple[dt.datetime, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A labelled point of the backlog's curve."""

    at: dt.datetime
    waiting: float
    label: str
    css: str = ""


def backlog(past: Curve, future: Curve, notes: Sequence[Note] = (), *, size: tuple[int, int] = BACKLOG) -> SafeString:
    """The number of queued jobs: the past as an area, the forecast dashed. Both are oldest first and in one time zone;
    the past has at least one point.
    """
    width, height = size
    start = past[0][0]
    end = max(past[-1][0], future[-1][0]) if future else past[-1][0]
    ceiling = round_up(max(waiting for _, waiting in (*past, *future)))
    x = Axis(0, max((end - start).total_seconds(), 60), 34, width - 8)
    y = Axis(0, ceiling, height - 20, 20)

    def place(at: dt.datetime, waiting: float) -> Point:
        return x.at((at - start).total_seconds()), y.at(waiting)

    marks = [level(f"{n:g}", y.at(n), x.start, x.end, is_axis=not n) for n in (0, ceiling / 2, ceiling)]
    for time, label in hours(start, end):
        at, half = place(time, 0)[0], 4 * len(label)
        anchor = "middle"
        if at - x.start < half:
            anchor = "start"
        elif x.end - at < half:
            anchor = "end"
        marks.append(text(at, height - 5, label, anchor))
    past_path, future_path = [place(*point) for point in past], [place(*point) for point in future]
    marks += [area("queue", past_path, y.start), open_path("queue-line", past_path)]
    if future_path:
        marks.append(open_path("queue-forecast", future_path))
    marks.append(circle("f-dot", past_path[-1]))
    labels: list[tuple[float, float, float]] = []  # (left, right, y) of the notes drawn so far
    for note in notes:
        at, point_y = place(note.at, note.waiting)
        room = 6 + 6 * len(note.label)
        has_room_before = at - x.start > room
        shift, anchor = (-6, "end") if has_room_before else (6, "start")
        left = at - room if has_room_before else at
        top = min([point_y, *(each_y for each_x, each_y in past_path if left <= each_x <= left + room)])
        label_y = _free_y(labels, left, left + room, max(top - 8, FIRST_NOTE))
        labels.append((left, left + room, label_y))
        marks.append(text(at + shift, label_y, note.label, anchor, note.css))
    label = "; ".join(note.label for note in notes) or "no job waits"
    return svg(width, height, marks, f"Backlog: {label}")


def _free_y(labels: Sequence[tuple[float, float, float]], left: float, right: float, y: float) -> float:
    """The y nearest above `y`, else below it, at which a label from `left` to `right` covers none of `labels`."""
    beside = [at for other_left, other_right, at in labels if left < other_right and other_left < right]
    # A label may cover two rows, so that of 2 n + 1 rows one is free.
    rows = [y, y - NOTE, y - 2 * NOTE, *(y + NOTE * row for row in range(1, 2 * len(beside) + 1))]
    return next(row for row in rows if row >= FIRST_NOTE and all(abs(row - other) >= NOTE for other in beside))


def hours(start: dt.datetime, end: dt.datetime) -> list[tuple[dt.datetime, str]]:
    """Round times between two times of one zone, about TICKS at most, with their labels."""
    total_hours = (end - start) / dt.timedelta(hours=1)
    step = next((hours for hours in HOURS if total_hours / hours <= TICKS), HOURS[-1])
    time = start.replace(hour=0, minute=0, second=0, microsecond=0)
    times = []
    while time <= end:
        if time >= start:
            times.append((time, f"{time:%-d %b}" if step >= DAY_HOURS else f"{time:%H:%M}"))
        time += dt.timedelta(hours=step)
    return times


# --- strips of time

STRIP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSpan:
    """A state from `since` to `until`; hatched if `css` is empty, for a state in the future."""

    since: dt.datetime
    until: dt.datetime
    css: str
    label: str


def timeline(spans: Sequence[TimelineSpan], start: dt.datetime, end: dt.datetime) -> SafeString:
    """Spans on a strip of whole days, later ones above earlier ones. A short one has a visible width."""
    axis = Axis(0, (end - start).total_seconds(), 0, 100)

    def x(time: dt.datetime) -> float:
        """The position in percent, within the strip."""
        return min(max(axis.at((time - start).total_seconds()), 0), 100)

    marks = [wide_rect("f-track", (0, 0, 100, STRIP), "")]
    for span in spans:
        width = x(span.until) - x(span.since)
        if width > 0:
            marks.append(wide_rect(span.css, (x(span.since), 0, max(width, 0.2), STRIP), span.label))
    days = [start + dt.timedelta(days=index) for index in range((end - start).days)]
    for number, at in enumerate(days):
        label = f"{at:%-d %b}" if at == start or at.day == 1 else f"{at:%-d}"
        css = "opt" if number % 2 else ""  # a phone has room for every second label
        marks += [wide_line("grid", x(at), STRIP, STRIP + 10), wide_text(x(at), STRIP + 20, label, "start", css)]
    return wide(40, marks, f"Quota state, {len(days)} days")


# In percent, so that a short outage is visible.
LEAST_WIDTH = 0.6


def track(outages: Iterable[OutageSpan], since: dt.datetime, until: dt.datetime) -> SafeString:
    """The line under a slider of time, from `since` to `until`, with its outages in red."""
    visible = [each for each in outages if each.until > since and each.since < until]
    marks = ['<rect class="f-rail" x="0%" y="7" width="100%" height="2"/>']
    for each in visible:
        x1 = 100 * max((each.since - since) / (until - since), 0.0)
        x2 = 100 * min((each.until - since) / (until - since), 1.0)
        width = max(x2 - x1, LEAST_WIDTH)
        marks.append(wide_rect("f-alarm", (min(x1, 100 - width), 6, width, 4), each.label))
    labels = "; ".join(each.label for each in visible) or "no outage"
    return wide(STRIP, marks, f"From {since:%-d %b} to {until:%-d %b}: {labels}")
