"""The scale of a grade: the rubric's bands from 0 to 1, with the reward as it stands and the grade being given."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString

from grading.reward.explain import number
from grading.screens.charts.svg import wide

HEIGHT, TOP, THICK, WORDS = 44.0, 16.0, 8.0, 40.0
# Shorter bands get no name: it would run into its neighbours'.
NAMED_FROM = 0.12


def scale(bands: Sequence[Mapping[str, Any]], *, value: float | None, held: float | None, source: str) -> SafeString:
    """`bands` ascend from 0, each with "name" and "low"; `held` is the reward of `source`, or None where none shows.

    All values are in [0, 1].
    """
    lows = [float(band["low"]) for band in bands]
    on = None if value is None else max(i for i, low in enumerate(lows) if low <= value)
    boxes, names, said = [], [], []
    for i, (band, (low, high)) in enumerate(zip(bands, pairwise([*lows, 1.0]), strict=True)):
        boxes.append(
            f'<rect class="band{" on" * (i == on)}" x="{100 * low:.2f}%" y="{TOP:g}" '
            f'width="{100 * (high - low) - 0.5:.2f}%" height="{THICK:g}" rx="1"/>'
        )
        names.append(_tick(low))
        if high - low >= NAMED_FROM:
            at, css = f"{100 * (low + high) / 2:.2f}%", "on" * (i == on)
            name = escape(band["name"])
            names.append(f'<text class="{css}" x="{at}" y="{WORDS:g}" text-anchor="middle">{name}</text>')
    marks = [*boxes, *names, _tick(1.0)]
    if value is not None:
        said.append(f"your grade {number(value)}")
    if held is not None:
        marks.append(_mark(held, source))
        said.append(f"the reward now {number(held)}")
    if value is not None:
        marks.append(_mark(value, "human"))
    return wide(HEIGHT, "".join(marks), f"Scale from 0 to 1: {', '.join(said) or 'no grade yet'}")


def band_of(bands: Sequence[Mapping[str, Any]], value: float) -> Mapping[str, Any]:
    """The band that `value` in [0, 1] is in."""
    return max((band for band in bands if float(band["low"]) <= value), key=lambda band: float(band["low"]))


def _tick(at: float) -> str:
    anchor = "start" if at == 0 else "end" if at == 1 else "middle"
    words = "0" if at == 0 else "1" if at == 1 else number(at).rstrip("0")
    return f'<text class="tick" x="{100 * at:.2f}%" y="{WORDS:g}" text-anchor="{anchor}">{words}</text>'


def _mark(at: float, source: str) -> str:
    """A shape above the scale with a line down to it. The outer svg has the place, the inner one the 12 px shape."""
    inside = min(max(at, 0.016), 0.984)
    return (
        f'<svg class="c-{escape(source)}" x="{100 * inside:.2f}%" overflow="visible">'
        f'<line class="mark" x1="0" x2="0" y1="13" y2="{TOP + THICK + 2:g}"/>'
        f'<use href="#i-{escape(source)}" x="-6" y="0" width="12" height="12" fill="currentColor"/></svg>'
    )
