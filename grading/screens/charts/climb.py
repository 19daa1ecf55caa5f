"""How an arm's number of the next 100 climbed, session by session."""

from collections.abc import Sequence

from django.utils.safestring import SafeString

from grading.screens.charts.svg import area, line, svg, text

SIZE = (348, 132)
LEFT, RIGHT, TOP, BOTTOM = 28.0, 8.0, 16.0, 20.0


def climb(points: Sequence[tuple[int, float]]) -> SafeString:
    """`points`: how many sessions count, ascending from 0, and the expected number of the next 100 then."""
    width, height = SIZE
    base, room = height - BOTTOM, height - BOTTOM - TOP
    last = max(points[-1][0], 1)
    top = max(10.0, *(share for _, share in points))

    def at(count: int, share: float) -> tuple[float, float]:
        return LEFT + (width - LEFT - RIGHT) * count / last, base - room * share / top

    path: list[tuple[float, float]] = []
    for count, share in points:
        x, y = at(count, share)
        path += [(x, path[-1][1]), (x, y)] if path else [(x, y)]
    grid = [
        line("grid", LEFT, at(0, share)[1], width - RIGHT, at(0, share)[1])
        + text(LEFT - 6, at(0, share)[1] + 4, f"{share:.0f}", "end")
        for share in (0.0, top)
    ]
    first, end = points[0][1], points[-1][1]
    said = [
        text(LEFT, base + 15, "0"),
        text(width - RIGHT, base + 15, f"{points[-1][0]} session{'s' * (points[-1][0] != 1)}", "end"),
    ]
    label = f"From {first:.0f} of the next 100 without these sessions to {end:.0f} with all {points[-1][0]}"
    return svg(width, height, "".join([*grid, area("climb", path, base), *said]), label)
