"""A difference of two means, in the steps that lead from one to the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from grading.screens.charts.svg import Axis, hatch, level, line, rect, svg, text
from grading.screens.charts.trends import ChartSize, ValueScale, Write

STEPS_WIDE = ChartSize(width=1352, height=136, is_narrow=False)
STEPS_LETTER = ChartSize(width=582, height=164, is_narrow=True)
STEPS_PHONE = ChartSize(width=324, height=190, is_narrow=True)
LEFT, TOP, NAMES = 40.0, 24.0, 42.0
# Without names.
PLAIN_LEFT, PLAIN_BOTTOM = 34.0, 20.0
BAR_SHARE, NARROW_SHARE = 0.36, 0.55


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStep:
    """A part of a difference. `value` is None if it is unknown; `is_sure` if it can be told apart from other parts."""

    name: str
    value: float | None
    label: str
    is_sure: bool


def waterfall(
    before: float,
    after: float,
    steps: Sequence[ChangeStep],
    scale: ValueScale,
    *,
    size: ChartSize,
    write_level: Write,
    write_value: Write,
) -> SafeString:
    """From the mean before to the mean after: rises are filled, falls outlined, parts that can't be told apart hatched.

    Each step has its number. Names are in a narrow picture only: the page prints them below the columns of a wide one.
    """
    plot = _Plot(size, scale, len(steps) + 2)
    ends = (write_value(before), write_value(after))
    marks = [
        level(write_level(each), plot.y.at(each), LEFT if size.is_narrow else PLAIN_LEFT, size.width)
        for each in scale.levels
    ]
    marks += plot.end(0, before, ends[0], "before")
    value = before
    for place, step in enumerate(steps, start=1):
        marks.append(plot.join(place - 1, value))
        marks += plot.step(place, value, step)
        value += step.value or 0.0
    marks.append(plot.join(len(steps), value))
    marks += plot.end(len(steps) + 1, after, ends[1], "after")
    names = ", ".join(f"{step.name} {step.label}" for step in steps)
    return svg(size.width, size.height, marks, f"From {ends[0]} to {ends[1]}: {names}")


class _Plot:
    """The axes of a waterfall, and its marks in pixels. Columns are counted from 0."""

    def __init__(self, size: ChartSize, scale: ValueScale, columns: int) -> None:
        self.size = size
        self.x = Axis(0, columns, LEFT if size.is_narrow else 0.0, size.width)
        self.y = scale.axis(size.height - (NAMES if size.is_narrow else PLAIN_BOTTOM), TOP)
        self.half = (NARROW_SHARE if size.is_narrow else BAR_SHARE) * (self.x.at(1) - self.x.at(0)) / 2

    def end(self, column: int, value: float, label: str, name: str) -> list[str]:
        """The mean of a period, as a line."""
        x, y = self.x.at(column + 0.5), self.y.at(value)
        return [
            line("end", x - self.half, y, x + self.half, y),
            *self._labels(column, y - 7, label, name, "ink strong"),
        ]

    def step(self, column: int, value: float, step: ChangeStep) -> list[str]:
        """A step up or down from `value`, as a bar."""
        x, start = self.x.at(column + 0.5), self.y.at(value)
        if step.value is None:
            return self._labels(column, start - 7, "?", step.name)
        end = self.y.at(value + step.value)
        top, bottom = min(start, end), max(start, end)
        box = (x - self.half, top, 2 * self.half, max(bottom - top, 1.5))
        css = "f-rise" if step.is_sure and step.value > 0 else "f-fall"
        marks = [rect(css, box, step.label), "" if step.is_sure else hatch(box, "hatch-line")]
        label_y = bottom + 14 if step.value < 0 else top - 6
        return marks + self._labels(column, label_y, step.label, step.name)

    def join(self, column: int, value: float) -> str:
        """The line from a column to the next."""
        y = self.y.at(value)
        return line("join-line", self.x.at(column + 0.5) + self.half, y, self.x.at(column + 1.5) - self.half, y)

    def _labels(self, column: int, y: float, label: str, name: str, css: str = "ink") -> list[str]:
        x = self.x.at(column + 0.5)
        names = [text(x, self.size.height - 6, name, "middle")] if self.size.is_narrow else []
        return [text(x, y, label, "middle", css), *names]
