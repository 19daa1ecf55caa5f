"""Pictures drawn on the server: pure functions from numbers to SVG that prints, tests and needs no script.

Sizes are attributes and colours are classes, so that a strict content policy holds. Text is escaped here.
"""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from grading.core.explain import number

STACK = ("judge", "human", "consumption", "trajectory", "journal", "floor")
RIDGE = (520, 58)
CURVES = (408, 152)
DAYS = (880, 240)
PROOF = (348, 12)
POINTS = 160
# A ridge ends where its density is less than this share of its peak.
VISIBLE = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Beta:
    """A posterior Beta(`alpha`, `beta`), both positive."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    def density(self, x: float) -> float:
        """The density at x in (0, 1)."""
        norm = math.lgamma(self.alpha + self.beta) - math.lgamma(self.alpha) - math.lgamma(self.beta)
        return math.exp(norm + (self.alpha - 1) * math.log(x) + (self.beta - 1) * math.log1p(-x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`count` sessions of one day that `source` decided, finally or not."""

    day: dt.date
    source: str
    final: bool
    count: int


def ridges(posteriors: Mapping[str, Beta]) -> dict[str, SafeString]:
    """One density a name on a shared 0–1 axis; height ∝ √peak, so that a weak arm stays visible."""
    curves = {name: _curve(posterior, 0, 1) for name, posterior in posteriors.items()}
    peaks = {name: max(y for _, y in curve) for name, curve in curves.items()}
    top = math.sqrt(max(peaks.values(), default=1))
    return {
        name: _ridge(name, posteriors[name].mean, curve, math.sqrt(peaks[name]) / (top * peaks[name]))
        for name, curve in curves.items()
    }


def _ridge(name: str, mean: float, curve: list[tuple[float, float]], scale: float) -> SafeString:
    width, height = RIDGE
    base, room = height - 0.5, height - 12
    least = VISIBLE * max(y for _, y in curve)
    path = [(x * width, base - y * scale * room) for x, y in curve if y > least]
    grid = "".join(_line("grid", x * width, 0, x * width, height) for x in (0, 0.25, 0.5, 0.75, 1))
    tick = _line("is-mean", mean * width, _height_at(path, mean * width) - 2, mean * width, base)
    label = f"{name}: mean {thousandths(mean)}"
    return _svg(width, height, grid + _area("is", path, base) + tick, label, stretch=True)


def before_after(before: Beta, after: Beta) -> SafeString:
    """The posterior as it is (dashed) and as it would be (filled, in the colour of people), means labelled."""
    width, height = CURVES
    low, high = _window(before, after)
    curves = [_curve(posterior, low, high) for posterior in (before, after)]
    peak = max(y for curve in curves for _, y in curve)
    base, room = height - 18.0, height - 36.0

    def place(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [((x - low) / (high - low) * width, base - y / peak * room) for x, y in curve]

    paths = [place(curve) for curve in curves]
    at = [(posterior.mean - low) / (high - low) * width for posterior in (before, after)]
    marks = [
        _axis(low, high, width, base),
        _area("will", paths[1], base),
        _open("was", paths[0]),
        _line("was-mean", at[0], _height_at(paths[0], at[0]), at[0], base),
        _line("will-mean", at[1], _height_at(paths[1], at[1]), at[1], base),
        *_labels(before, after, at),
    ]
    label = f"Mean now {thousandths(before.mean)}, after {thousandths(after.mean)}"
    return _svg(width, height, "".join(marks), label)


def _labels(before: Beta, after: Beta, at: Sequence[float]) -> tuple[str, str]:
    """Both means above the curves, the lower one to the left, so that they never overlap."""
    forward = at[1] >= at[0]
    now = _text(at[0] + (-4 if forward else 4), 12, f"now {thousandths(before.mean)}", "end" if forward else "start")
    then = _text(
        at[1] + (4 if forward else -4), 12, f"after {thousandths(after.mean)}", "start" if forward else "end", "human"
    )
    return now, then


def by_day(bars: Iterable[Bar], days: Sequence[dt.date]) -> SafeString:
    """Sessions by day, stacked by deciding source; provisional ones hatched. The last day is "today"."""
    width, height = DAYS
    left, base, top = 34.0, height - 24.0, 12.0
    cells = {(bar.day, bar.source, bar.final): bar.count for bar in bars}
    totals = [sum(n for (on, _, _), n in cells.items() if on == day) for day in days]
    ceiling = _ceiling(max(totals, default=0))
    unit, step = (base - top) / ceiling, (width - left) / max(len(days), 1)
    marks = [_rule(value, base - value * unit, left, width) for value in (0, ceiling // 2, ceiling)]
    for index, day in enumerate(days):
        x, y = left + (index + 0.25) * step, base
        for source, final in ((s, f) for f in (True, False) for s in STACK):
            sessions = cells.get((day, source, final), 0)
            if not sessions:
                continue
            y -= sessions * unit
            box = (x, y, step / 2, max(sessions * unit - 1, 0.5))
            title = f"{day:%-d %b}: {sessions} {source}, {'final' if final else 'provisional'}"
            marks.append(_rect(f"f-{source}", box, title))
            marks += [] if final else [_hatch(box)]
        last = index == len(days) - 1
        marks.append(
            _text(x + step / 4, height - 8, _day_label(day, first=index == 0, last=last), "middle", "ink" * last)
        )
    return _svg(width, height, "".join(marks), f"Grades by deciding source, {len(days)} days: {sum(totals)} sessions")


def proof(evidence: Mapping[str, float], pending: float, full: float) -> SafeString:
    """How much of a posterior rests on what: pseudo-observations by source, pending ones hatched, of `full` in all."""
    width, height = PROOF
    marks, x = [f'<rect class="f-track" width="{width}" height="{height}" rx="2"/>'], 0.0
    for source in STACK:
        share = evidence.get(source, 0.0) / full * width if full else 0.0
        if share > 0:
            shown = max(share, 2.0)
            marks.append(_rect(f"f-{source}", (x, 0, shown, height), f"{source} {evidence[source]:.1f}"))
            x += shown + 1
    if pending and full:
        share = min(max(pending / full * width, 3.0), width - x - 1)
        box = f'x="{x + 0.5:.1f}" y="0.5" width="{max(share - 1, 1):.1f}" height="{height - 1}"'
        marks.append(f'<rect fill="url(#hatch-line)" {box}/><rect class="outline" {box}/>')
    label = ", ".join(f"{source} {amount:.1f}" for source, amount in evidence.items()) or "no evidence yet"
    return _svg(width, height, "".join(marks), f"{label}, {pending:g} pending")


def share_bar(css: str, part: float, whole: float, label: str) -> SafeString:
    """A plain horizontal bar, `part` of `whole`."""
    width = 0.0 if not whole else 300 * min(part / whole, 1.0)
    mark = f'<rect class="{css}" width="{max(width, 2.0 if part else 0.0):.1f}" height="12" rx="2"/>'
    return _svg(300, 12, mark, label, stretch=True)


def timeline(spans: Sequence[tuple[dt.datetime, str]], start: dt.datetime, end: dt.datetime) -> SafeString:
    """Quota states over time: each (since, state) holds until the next one."""
    width, height = 1360, 48
    whole = (end - start).total_seconds()

    def x(moment: dt.datetime) -> float:
        return width * min(max((moment - start).total_seconds() / whole, 0), 1)

    marks = []
    for (since, state), (until, _) in pairwise([*spans, (end, "")]):
        wide = x(until) - x(since)
        if wide > 0:
            marks.append(_rect(f"f-{state}", (x(since), 8, max(wide, 1.5), 16), f"{state} since {since:%-d %b %H:%M}"))
    days = (end - start).days
    for index in range(days + 1):
        moment = start + dt.timedelta(days=index)
        marks += [_line("grid", x(moment), 24, x(moment), 30)]
        if index < days:
            marks += [_text(x(moment) + 2, 44, f"{moment:%-d %b}" if index == 0 else f"{moment:%-d}")]
    return _svg(width, height, "".join(marks), f"Quota state, {days} days")


def thousandths(value: float) -> str:
    """A posterior's mean as people read it: three digits, no leading zero."""
    return f"{value:.3f}".removeprefix("0")


# --- geometry --------------------------------------------------------------------------------------------------------


def _curve(posterior: Beta, low: float, high: float) -> list[tuple[float, float]]:
    xs = [low + (high - low) * (i + 0.5) / POINTS for i in range(POINTS)]
    return [(x, posterior.density(min(max(x, 1e-6), 1 - 1e-6))) for x in xs]


def _window(*posteriors: Beta) -> tuple[float, float]:
    """The tenths that hold four standard deviations of each curve."""
    spreads = [math.sqrt(p.mean * (1 - p.mean) / (p.alpha + p.beta + 1)) for p in posteriors]
    low = min(p.mean - 4 * spread for p, spread in zip(posteriors, spreads, strict=True))
    high = max(p.mean + 4 * spread for p, spread in zip(posteriors, spreads, strict=True))
    return max(0.0, math.floor(low * 10) / 10), min(1.0, math.ceil(high * 10) / 10)


def _height_at(path: Sequence[tuple[float, float]], x: float) -> float:
    return min(path, key=lambda point: abs(point[0] - x))[1]


def _ceiling(most: int) -> int:
    """The least even round number that holds `most`, so that half of it is whole."""
    steps = (int(step * 10**power) for power in range(10) for step in (2, 4, 6, 8, 10))
    return next(step for step in steps if step >= most)


def _day_label(day: dt.date, *, first: bool, last: bool) -> str:
    if last:
        return "today"
    return f"{day:%-d %b}" if first or day.day == 1 else f"{day:%-d}"


def _axis(low: float, high: float, width: float, base: float) -> str:
    marks = [_line("axis", 0, base + 0.5, width, base + 0.5)]
    for tenth in range(round(low * 10) + 1, round(high * 10)):
        x = (tenth / 10 - low) / (high - low) * width
        marks += [_line("grid", x, 18, x, base), _text(x, base + 14, number(tenth / 10).rstrip("0"), "middle")]
    return "".join(marks)


def _rule(value: int, y: float, left: float, right: float) -> str:
    return _line("grid" if value else "axis", left, y + 0.5, right, y + 0.5) + _text(left - 8, y + 4, str(value), "end")


# --- SVG -------------------------------------------------------------------------------------------------------------


def _svg(width: float, height: float, marks: str, label: str, *, stretch: bool = False) -> SafeString:
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    return mark_safe(
        f'<svg class="fit" viewBox="0 0 {width} {height}" width="{width}" height="{height}"{ratio} role="img" '
        f'aria-label="{escape(label)}">{marks}</svg>'
    )


def _line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        'vector-effect="non-scaling-stroke"/>'
    )


Box = tuple[float, float, float, float]


def _rect(css: str, at: Box, title: str) -> str:
    x, y, width, height = at
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css}" {box}><title>{escape(title)}</title></rect>'


def _hatch(at: Box) -> str:
    x, y, width, height = at
    return f'<rect fill="url(#hatch)" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _points(path: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in path)


def _area(css: str, path: Sequence[tuple[float, float]], base: float) -> str:
    return (
        f'<path class="{css}" vector-effect="non-scaling-stroke" d="M{path[0][0]:.1f},{base:.1f} {_points(path)} '
        f'{path[-1][0]:.1f},{base:.1f}"/>'
    )


def _open(css: str, path: Sequence[tuple[float, float]]) -> str:
    return f'<path class="{css}" vector-effect="non-scaling-stroke" d="M{_points(path)}"/>'
