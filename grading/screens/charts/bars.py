"""Bars and marks on one horizontal scale: shares, counts, differences, grades, and the evidence of a posterior."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString

from grading.reward.explain import number
from grading.screens.charts.svg import (
    Axis,
    hatch,
    line,
    rect,
    round_up,
    svg,
    text,
    wide,
    wide_line,
    wide_rect,
    wide_text,
)

STACK = ("judge", "human", "consumption", "trajectory", "journal", "floor")


# --- shares and counts

BAR = 12
RUN, MOVES = (1000, 12), (640, 160)
# Bins of a unit of verdict differences, which are in [−1, 1]; the middle bin has those within .05.
BINS = 10


def share_bar(css: str, part: float, whole: float, label: str) -> SafeString:
    """A horizontal bar, `part` of `whole`; hatched without a class."""
    return wide(BAR, [_bar(css, part, whole, label)], label)


def gauge(used: float, limit: float, reserved: float, label: str) -> SafeString:
    """`used` of `limit` on a track, with the `reserved` share of it outlined at the far end."""
    outline = wide_rect("kept", (100 - 100 * reserved, 0, 100 * reserved, BAR), "kept free") if reserved else ""
    return wide(BAR, [wide_rect("f-track", (0, 0, 100, BAR), label), _bar("f-ink", used, limit, label), outline], label)


def _bar(css: str, part: float, whole: float, title: str) -> str:
    """A bar with a visible width; empty if there is nothing to show."""
    width = 100 * min(max(part, 0) / whole, 1.0) if whole else 0.0
    return wide_rect(css, (0, 0, max(width, 0.5), BAR), title) if width else ""


def tally(name: str, count: float, expected: float, most: float) -> SafeString:
    """A bar of `count` and a tick at `expected`, on a scale from 0 to `most`, all in the same unit."""
    height, thickness, top = 16, 8, 4
    x = Axis(0, max(most, count, expected, 1e-9), 0, 99)
    marks = [
        f'<rect class="f-track" x="0%" y="{top}" width="100%" height="{thickness}" rx="2"/>',
        wide_rect("f-ink", (0, top, x.at(count), thickness), f"{name}: {count:.0f}"),
        wide_line("expected", x.at(expected), 0, height),
    ]
    return wide(height, marks, f"{name}: {count:.0f}, expected {expected:.1f}")


def run_bar(parts: Sequence[tuple[str, str, int]], total: int, label: str) -> SafeString:
    """The progress of a run: a bar of `total`, filled by parts: class ("" for hatched), name, count."""
    width, height = RUN
    marks, x = [_track(width, height)], 0.0
    for css, name, count in parts:
        if count:
            box = (x, 0, max(width * count / max(total, 1), 1.0), height)
            marks.append(rect(css or "f-track", box, f"{count} {name}"))
            marks.append("" if css else hatch(box, "hatch-line"))
            x += box[2]
    return svg(width, height, marks, label, stretch=True)


def verdict_moves(differences: Sequence[float]) -> SafeString:
    """A histogram of new verdict − old one, each in [−1, 1], in bins of a tenth."""
    width, height = MOVES
    base, step = height - 24.0, width / (2 * BINS + 1)
    counts = Counter(max(-BINS, min(BINS, round(value * BINS))) for value in differences)
    y = Axis(0, max(counts.values(), default=1), 0, base - 20)
    marks = [line("axis", 0, base + 0.5, width, base + 0.5)]
    for n in range(-BINS, BINS + 1):
        x, count = (n + BINS) * step, counts[n]
        if count:
            tall = max(y.at(count), 1.5)
            marks.append(rect("f-judge", (x + 2, base - tall, step - 4, tall), f"{count} moved {_signed(n)}"))
            marks.append(text(x + step / 2, base - tall - 4, str(count), "middle", "ink"))
        if n % 5 == 0:
            marks.append(text(x + step / 2, base + 16, _signed(n), "middle"))
    return svg(width, height, marks, f"New verdict less old one, {len(differences)} sessions")


def _signed(tenths: int) -> str:
    if tenths == 0:
        return "0"
    return f"{'−' if tenths < 0 else '+'}{abs(tenths) / BINS:g}".replace("0.", ".")


def _track(width: float, height: float) -> str:
    return f'<rect class="f-track" width="{width}" height="{height}" rx="2"/>'


# --- the evidence of a posterior

PROOF = (348, 12)


def proof(evidence: Mapping[str, float], pending: float, full: float) -> SafeString:
    """A posterior's pseudo-observations by source, with pending ones hatched, of `full` in all."""
    width, height = PROOF
    marks, x = [_track(width, height)], 0.0
    for source in (*STACK, *sorted(evidence.keys() - set(STACK))):
        share = evidence.get(source, 0.0) / full * width if full else 0.0
        if share > 0:
            visible = max(share, 2.0)
            marks.append(rect(f"f-{source}", (x, 0, visible, height), f"{source} {evidence[source]:.1f}"))
            x += visible + 1
    if pending and full:
        share = min(max(pending / full * width, 3.0), width - x - 1)
        box = f'x="{x + 0.5:.1f}" y="0.5" width="{max(share - 1, 1):.1f}" height="{height - 1}"'
        marks.append(f'<rect fill="url(#hatch-line)" {box}/><rect class="outline" {box}/>')
    label = ", ".join(f"{source} {amount:.1f}" for source, amount in evidence.items()) or "no evidence yet"
    return svg(width, height, marks, f"{label}, {pending:g} pending")


# --- differences around 0: filled if a draw decided, hollow otherwise

DIFFERENCE, MIDDLE = 24.0, 12.0
# The smallest reach of an axis, so that a small difference looks small.
LEAST_REACH = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardDifference:
    """A difference in reward, its interval from `low` to `high`, and whether a draw is behind it."""

    mean: float
    low: float
    high: float
    is_causal: bool


def reach(differences: Iterable[RewardDifference]) -> float:
    """The smallest round number n, at most 1, such that an axis from −n to n covers all intervals."""
    most = max((max(-each.low, each.high) for each in differences), default=0.0)
    return min(round_up(most, least=LEAST_REACH), 1.0)


def difference(effect: RewardDifference | None, limit: float) -> SafeString:
    """A difference with its interval on an axis from −`limit` to `limit`; empty for None."""
    marks = [wide_line("axis", 50, 0, DIFFERENCE)]
    if effect is None:
        return wide(DIFFERENCE, marks, "cannot tell")
    kind, x = "causal" if effect.is_causal else "observational", Axis(-limit, limit, 0, 100)
    low, at, high = (x.at(min(max(each, -limit), limit)) for each in (effect.low, effect.mean, effect.high))
    marks += [
        f'<line class="interval" x1="{low:.2f}%" x2="{high:.2f}%" y1="{MIDDLE:g}" y2="{MIDDLE:g}"/>',
        wide_line("interval", low, MIDDLE - 4, MIDDLE + 4),
        wide_line("interval", high, MIDDLE - 4, MIDDLE + 4),
        f'<circle class="{kind}" cx="{at:.2f}%" cy="{MIDDLE:g}" r="4.5"/>',
    ]
    label = f"{kind}: {effect.mean:+.3f}, 90 % interval {effect.low:+.3f} to {effect.high:+.3f}"
    return wide(DIFFERENCE, marks, label)


def effects_scale(limit: float) -> SafeString:
    """The ends and the middle of the axis, for the head of a column of differences."""
    end = f"{limit:g}".removeprefix("0")
    marks = (wide_text(0, 12, f"−{end}"), wide_text(50, 12, "0", "middle"), wide_text(100, 12, f"+{end}", "end"))
    return wide(16, marks, f"Axis from −{end} to +{end}")


# --- the eleven stops of a grade, with marks above and below

STOPS = 11
# A label beside a mark beyond this is on the mark's other side.
NEAR = 0.65


def reward_mark(reward: float, source: str) -> SafeString:
    """The current reward in [0, 1] above the stops: the shape of its `source` and its number."""
    at = 100 * (reward * (STOPS - 1) + 0.5) / STOPS
    anchor, x = ("end", -10) if reward > NEAR else ("start", 10)
    label = f'<text x="{x}" y="11" text-anchor="{anchor}">now {number(reward)}</text>'
    shape = f'<use class="c-{escape(source)}" href="#i-{escape(source)}" x="-5" y="2" width="10" height="10"/>'
    mark = f'<svg x="{at:.2f}%" overflow="visible">{shape}{label}</svg>'
    return wide(16, [mark], f"The reward now: {number(reward)}")


def bands(rows: Sequence[Mapping[str, Any]], value: float | None) -> SafeString:
    """A line below the stops of each band, and the band's name; that of the band of `value` in [0, 1] is highlighted.

    `rows` are the bands in ascending order from 0, each with "name" and "low".
    """
    lows = [float(row["low"]) for row in rows]
    current = None if value is None else band_of(rows, value)
    marks = []
    first_stops = [ceil(round(low * (STOPS - 1), 6)) for low in lows]
    for row, (first, after) in zip(rows, pairwise([*first_stops, STOPS]), strict=True):
        css = " on" if row is current else ""
        x, width = 100 * first / STOPS, 100 * (after - first) / STOPS
        marks.append(f'<rect class="band{css}" x="{x:.2f}%" y="0" width="{width - 0.5:.2f}%" height="2"/>')
        has_room_for_name = after - first > 1
        if has_room_for_name:
            marks.append(
                f'<text class="tick{css}" x="{x + width / 2:.2f}%" y="15" text-anchor="middle">'
                f"{escape(row['name'])}</text>"
            )
    names = ", ".join(f"{row['name']} from {number(low)}" for row, low in zip(rows, lows, strict=True))
    return wide(20, marks, f"Bands: {names}")


def band_of(rows: Sequence[Mapping[str, Any]], value: float) -> Mapping[str, Any]:
    """The band of `value` in [0, 1]."""
    return max((row for row in rows if float(row["low"]) <= value), key=lambda row: float(row["low"]))
