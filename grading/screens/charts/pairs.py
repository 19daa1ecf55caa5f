"""Fallback grades against verdicts: a dot for each arm, and the line by which the one is read as the other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString

from grading.reward.explain import number
from grading.screens.charts.svg import line, open_path, svg, text

SIZE = (320, 216)
LEFT, RIGHT, TOP, BOTTOM = 34.0, 310.0, 10.0, 176.0
STEPS = 50
# A name's height and width, about: one that would cover another is left out. The table beside has them all.
NAME = (96.0, 13.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One arm's mean fallback x and mean verdict y, both in [0, 1], over n pairs."""

    name: str
    x: float
    y: float
    n: int


def against(dots: Sequence[Dot], read_as: Callable[[float], float] | None, source: str) -> SafeString:
    """The dots in the source's colour, the line solid, and dashed what reading every grade as it stands would be.

    `read_as` maps a fallback's grade in [0, 1] to the verdict's scale; what is outside [0, 1] is cut. None: no line.
    """
    marks = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, y), words = _at(value, value), f"{value:g}".removeprefix("0") or "0"
        css = "grid" if value else "axis"
        marks += [line(css, x, TOP, x, BOTTOM), line(css, LEFT, y, RIGHT, y)]
        marks += [text(x, BOTTOM + 16, words, "middle"), text(LEFT - 8, y + 4, words, "end")]
    marks.append(text((LEFT + RIGHT) / 2, BOTTOM + 34, "fallback’s mean →, verdict’s mean ↑", "middle", "ink"))
    marks.append(open_path("was", [_at(0, 0), _at(1, 1)]))
    if read_as is not None:
        xs = [step / STEPS for step in range(STEPS + 1)]
        marks.append(open_path("fit-line", [_at(x, min(max(read_as(x), 0.0), 1.0)) for x in xs]))
    for dot in dots:
        x, y = _at(dot.x, dot.y)
        said = f"{dot.name}: {dot.n} pairs, fallback {number(dot.x)}, verdict {number(dot.y)}"
        marks.append(
            f'<circle class="pair-dot f-{escape(source)}" cx="{x:.1f}" cy="{y:.1f}" r="{_radius(dot):.1f}">'
            f"<title>{escape(said)}</title></circle>"
        )
    # The arms' names beside their dots, those of most pairs first, as far as there is room.
    taken: list[tuple[float, float]] = []
    for dot in sorted(dots, key=lambda each: (-each.n, each.name)):
        x, y = _at(dot.x, dot.y)
        is_right = dot.x > 0.6  # noqa: PLR2004 - past this a name would leave the picture
        at = x - NAME[0] if is_right else x
        if any(abs(at - other[0]) < NAME[0] and abs(y - other[1]) < NAME[1] for other in taken):
            continue
        taken.append((at, y))
        name = dot.name if len(dot.name) <= 14 else f"{dot.name[:13]}…"  # noqa: PLR2004 - what fits
        gap = _radius(dot) + 4
        marks.append(text(x - gap if is_right else x + gap, y + 4, name, "end" if is_right else "start", "ink"))
    arms = f"{len(dots)} arm{'s' * (len(dots) != 1)}"
    return svg(*SIZE, "".join(marks), f"{source} against the verdict, {arms}; the table has the numbers")


def _at(x: float, y: float) -> tuple[float, float]:
    return LEFT + x * (RIGHT - LEFT), BOTTOM - y * (BOTTOM - TOP)


def _radius(dot: Dot) -> float:
    return min(2 + math.sqrt(dot.n) / 2, 9.0)
