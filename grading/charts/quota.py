"""The judge's allowance: gauges and bars, the backlog with its forecast, and the outages of two weeks."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from grading.charts.svg import area, level, line, open_path, rect, round_up, svg, text

BACKLOG = (640, 176)
TIMELINE = (1360, 48)
BAR_HEIGHT = 12
# Hours between the labels of a time axis; the first that needs no more than this many of them is taken.
HOURS = (1, 2, 3, 4, 6, 12, 24, 48, 96, 168)
TICKS = 7
DAY_HOURS = 24

Curve = Sequence[tuple[dt.datetime, float]]


def share_bar(css: str, part: float, whole: float, label: str) -> SafeString:
    """A plain horizontal bar, `part` of `whole`, as wide as its place; hatched without a colour."""
    return _bar(_stretch(css, 0, _percent(part, whole)) if part else "", label)


def gauge(used: float, limit: float, reserved: float, label: str) -> SafeString:
    """`used` of `limit` on a track, with the share of it that is kept free outlined at the far end."""
    kept = f'<rect class="kept" x="{100 - 100 * reserved:.1f}%" width="{100 * reserved:.1f}%" height="12" rx="2"/>'
    track = _stretch("f-track", 0, 100)
    return _bar(track + _stretch("f-ink", 0, _percent(used, limit)) + (kept if reserved else ""), label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A point of the backlog's curve with its words."""

    at: dt.datetime
    waiting: float
    words: str
    css: str = ""


def backlog(past: Curve, future: Curve, notes: Sequence[Note] = ()) -> SafeString:
    """How many wait: what was as an area, what is forecast dashed. Both oldest first, in one time zone, ≥ 1 point."""
    width, height = BACKLOG
    left, right, base, top = 34.0, width - 8.0, height - 20.0, 20.0
    start, end = past[0][0], max(past[-1][0], future[-1][0] if future else past[-1][0])
    ceiling = round_up(max(waiting for _, waiting in (*past, *future)))
    whole = max((end - start).total_seconds(), 60)

    def place(at: dt.datetime, waiting: float) -> tuple[float, float]:
        return left + (right - left) * (at - start).total_seconds() / whole, base - (base - top) * waiting / ceiling

    marks = [
        level(f"{n:g}", base - (base - top) * n / ceiling, left, right, axis=not n) for n in (0, ceiling / 2, ceiling)
    ]
    marks += [text(place(at, 0)[0], height - 5, words, "middle") for at, words in hours(start, end)]
    was, will = [place(*point) for point in past], [place(*point) for point in future]
    marks += [area("queue", was, base), open_path("queue-line", was), open_path("queue-forecast", will) if will else ""]
    x, y = was[-1]
    marks.append(f'<circle class="f-dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    marks += [_note(note, *place(note.at, note.waiting), (left, right)) for note in notes]
    label = "; ".join(note.words for note in notes) or "no job waits"
    return svg(width, height, "".join(marks), f"Backlog: {label}")


def _note(note: Note, x: float, y: float, room: tuple[float, float]) -> str:
    """Left of its point where there is room for it, else right of it."""
    at_end = x - room[0] > 6 * len(note.words)
    return text(x - 6 if at_end else x + 6, max(y - 8, 11), note.words, "end" if at_end else "start", note.css)


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
    """A time during which something held; `css` names its colour, and what is not yet so is hatched."""

    since: dt.datetime
    until: dt.datetime
    css: str
    words: str
    hatched: bool = False


def timeline(spans: Sequence[Span], start: dt.datetime, end: dt.datetime) -> SafeString:
    """Spans on a strip of whole days, each drawn over those before it. A short one keeps a width that can be seen."""
    width, height = TIMELINE
    whole = (end - start).total_seconds()

    def x(moment: dt.datetime) -> float:
        return width * min(max((moment - start).total_seconds() / whole, 0), 1)

    marks = [f'<rect class="f-track" y="8" width="{width}" height="16"/>']
    for span in spans:
        wide = x(span.until) - x(span.since)
        if wide > 0:
            marks.append(_span(span, x(span.since), max(wide, 2.5)))
    days = [start + dt.timedelta(days=index) for index in range((end - start).days + 1)]
    for at, after in pairwise([*days, end]):
        marks.append(line("grid", x(at), 24, x(at), 34))
        if after > at:
            marks.append(text(x(at) + 2, 44, f"{at:%-d %b}" if at == start or at.day == 1 else f"{at:%-d}"))
    return svg(width, height, "".join(marks), f"Quota state, {len(days)} days")


def _span(span: Span, x: float, width: float) -> str:
    if not span.hatched:
        return rect(f"f-{span.css}", (x, 8, width, 16), span.words)
    box = f'x="{x:.1f}" y="8" width="{width:.1f}" height="16"'
    return f'<rect fill="url(#hatch-line)" {box}><title>{escape(span.words)}</title></rect>'


def _percent(part: float, whole: float) -> float:
    return 100 * min(part / whole, 1.0) if whole else 0.0


def _stretch(css: str, x: float, width: float) -> str:
    """A rectangle in percent of its place, so that hatching is never distorted. At least visible; hatched where plain.

    The hatching is an attribute: in a style sheet its address would be looked up there.
    """
    fill = f'class="{css}"' if css else 'class="hatched" fill="url(#hatch-line)"'
    return f'<rect {fill} x="{x:.1f}%" width="{max(width, 0.5 if width else 0):.1f}%" height="12" rx="2"/>'


def _bar(marks: str, label: str) -> SafeString:
    return mark_safe(
        f'<svg class="bar" width="100%" height="{BAR_HEIGHT}" role="img" aria-label="{escape(label)}">{marks}</svg>'
    )
