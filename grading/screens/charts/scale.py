"""The scale of a grade, above and below its eleven stops: the reward as it stands, and the rubric's bands."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString

from grading.reward.explain import number
from grading.screens.charts.svg import wide

STOPS = 11
MARK, BANDS = 16.0, 20.0
# Words beside a mark this near to an end are set on its other side.
NEAR = 0.65


def held_mark(held: float, source: str) -> SafeString:
    """Where the reward of `source` stands now, `held` in [0, 1]: its shape and its number, over the stops."""
    at = 100 * (held * (STOPS - 1) + 0.5) / STOPS
    anchor, x = ("end", -10) if held > NEAR else ("start", 10)
    words = f'<text x="{x}" y="11" text-anchor="{anchor}">now {number(held)}</text>'
    shape = f'<use class="c-{escape(source)}" href="#i-{escape(source)}" x="-5" y="2" width="10" height="10"/>'
    mark = f'<svg x="{at:.2f}%" overflow="visible">{shape}{words}</svg>'
    return wide(MARK, mark, f"The reward now: {number(held)}")


def bands(rows: Sequence[Mapping[str, Any]], value: float | None) -> SafeString:
    """A line below the stops of each band, the one that `value` in [0, 1] is in drawn strong. `rows` ascend from 0,
    each with "name" and "low".
    """
    lows = [float(row["low"]) for row in rows]
    on = None if value is None else max(i for i, low in enumerate(lows) if low <= value)
    marks = []
    ends = [ceil(round(low * (STOPS - 1), 6)) for low in lows] + [STOPS]
    for i, (row, (first, after)) in enumerate(zip(rows, pairwise(ends), strict=True)):
        css, x, width = " on" * (i == on), 100 * first / STOPS, 100 * (after - first) / STOPS
        marks.append(f'<rect class="band{css}" x="{x:.2f}%" y="0" width="{width - 0.5:.2f}%" height="2"/>')
        # One stop has no room for a name.
        if after - first > 1:
            marks.append(
                f'<text class="tick{css}" x="{x + width / 2:.2f}%" y="15" text-anchor="middle">'
                f"{escape(row['name'])}</text>"
            )
    names = ", ".join(f"{row['name']} from {number(low)}" for row, low in zip(rows, lows, strict=True))
    return wide(BANDS, "".join(marks), f"Bands: {names}")


def band_of(rows: Sequence[Mapping[str, Any]], value: float) -> Mapping[str, Any]:
    """The band that `value` in [0, 1] is in."""
    return max((row for row in rows if float(row["low"]) <= value), key=lambda row: float(row["low"]))
