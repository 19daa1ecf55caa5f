"""The judge's allowance: gauges and bars, the backlog with its forecast, and the outages of two weeks."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from grading.screens.charts.svg import (
    area,
    level,
    open_path,
    round_up,
    svg,
    text,
    wide,
    wide_line,
    wide_rect,
    wide_text,
)

BACKLOG, SMALL_BACKLOG = (640, 176), (420, 190)
# Heights, of pictures that are as wide as their place.
TIMELINE, STRIP, BAR = 40, 16, 12
# Hours between the labels of a time axis; the first that needs no more than this many of them is taken.
HOURS = (1, 2, 3, 4, 6, 12, 24, 48, 96, 168)
TICKS = 7
DAY_HOURS = 24

Curve = Sequence[tuple[dt.datetime, float]]


def share_bar(css: str, part: float, whole: float, label: str) -> SafeString:
    """A plain horizontal bar, `part` of `whole`; hatched without a class."""
    return wide(BAR, _bar(css, _percent(part, whole), label) if part else "", label)


def gauge(used: float, limit: float, reserved: float, label: str) -> SafeString:
    """`used` of `limit` on a track, with the share of it that is kept free outlined at the far end."""
    kept = wide_rect("kept", (100 - 100 * reserved, 0, 100 * reserved, BAR), "kept free") if reserved else ""
    return wide(BAR, _bar("f-track", 100, label) + _bar("f-ink", _percent(used, limit), label) + kept, label)


def _percent(part: float, whole: float) -> float:
    return 100 * min(max(part, 0) / whole, 1.0) if whole else 0.0


def _bar(css: str, width: float, title: str) -> str:
    """At least visible."""
    return wide_rect(css, (0, 0, max(width, 0.5), BAR), title) if width else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A point of the backlog's curve with its words."""

    at: dt.datetime
    waiting: float
    words: str
    css: str = ""


def backlog(past: Curve, future: Curve, notes: Sequence[Note] = (), *, size: tuple[int, int] = BACKLOG) -> SafeString:
    """How many wait: what was as an area, what is forecast dashed. Both oldest first, in one time zone, ≥ 1 point."""
    width, height = size
    left, right, base, top = 34.0, width - 8.0, height - 20.0, 20.0
    start, end = past[0][0], max(past[-1][0], future[-1][0] if future else past[-1][0])
    ceiling = round_up(max(waiting for _, waiting in (*past, *future)))
    whole = max((end - start).total_seconds(), 60)

    def place(at: dt.datetime, waiting: float) -> tuple[float, float]:
        return left + (right - left) * (at - start).total_seconds() / whole, base - (base - top) * waiting / ceiling

    marks = [
        level(f"{n:g}", base - (base - top) * n / ceiling, left, right, axis=not n) for n in (0, ceiling / 2, ceiling)
    ]
    for at, words in hours(start, end):
        x, near = place(at, 0)[0], 4 * len(words)
        anchor = "start" if x - left < near else "end" if right - x < near else "middle"
        marks.append(text(x, height - 5, words, anchor))
    was, will = [place(*point) for point in past], [place(*point) for point in future]
    marks += [area("queue", was, base), open_path("queue-line", was), open_path("queue-forecast", will) if will else ""]
    x, y = was[-1]
    marks.append(f'<circle class="f-dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    for note in notes:
        # Left of its point where there is room for it, else right of it.
        x, y = place(note.at, note.waiting)
        fits = x - left > 6 * len(note.words)
        shift, anchor = (-6, "end") if fits else (6, "start")
        marks.append(text(x + shift, max(y - 8, 11), note.words, anchor, note.css))
    label = "; ".join(note.words for note in notes) or "no job waits"
    return svg(width, height, "".join(marks), f"Backlog: {label}")


def hours(start: dt.datetime, end: dt.datetime) -> list[tuple[dt.datetime, str]]:
    """Round moments between two times of one zone, at most seven or so, with their labels."""
    whole = (end - start) / dt.timedelta(hours=1)
    step = next((hours for hours in HOURS if whole / hours <= TICKS), HOURS[-1])
    moment = start.replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    while moment <= end:
        if moment >= start:
            found.append((moment, f"{moment:%-d %b}" if step >= DAY_HOURS else f"{moment:%H:%M}"))
        moment += dt.timedelta(hours=step)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time during which something held; hatched, as what is not yet so, without a class."""

    since: dt.datetime
    until: dt.datetime
    css: str
    words: str


def timeline(spans: Sequence[Span], start: dt.datetime, end: dt.datetime) -> SafeString:
    """Spans on a strip of whole days, each drawn over those before it. A short one keeps a width that can be seen."""
    whole = (end - start).total_seconds()

    def x(moment: dt.datetime) -> float:
        return 100 * min(max((moment - start).total_seconds() / whole, 0), 1)

    marks = [wide_rect("f-track", (0, 0, 100, STRIP), "")]
    for span in spans:
        width = x(span.until) - x(span.since)
        if width > 0:
            marks.append(wide_rect(span.css, (x(span.since), 0, max(width, 0.2), STRIP), span.words))
    days = [start + dt.timedelta(days=index) for index in range((end - start).days)]
    for at in days:
        label = f"{at:%-d %b}" if at == start or at.day == 1 else f"{at:%-d}"
        marks += [wide_line("grid", x(at), STRIP, STRIP + 10), wide_text(x(at), STRIP + 20, label)]
    return wide(TIMELINE, "".join(marks), f"Quota state, {len(days)} days")
