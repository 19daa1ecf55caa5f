"""SVG as text: axes, and marks as functions of numbers. Text is escaped here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

Box = tuple[float, float, float, float]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis: the values `low` and `high` are at the positions `start` and `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def svg(width: float, height: float, marks: Iterable[str], label: str, *, stretch: bool = False) -> SafeString:
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    return mark_safe(
        f'<svg class="fit" viewBox="0 0 {width} {height}" width="{width}" height="{height}"{ratio} role="img" '
        f'aria-label="{escape(label)}">{"".join(marks)}</svg>'
    )


def line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        'vector-effect="non-scaling-stroke"/>'
    )


def rect(css: str, box: Box, title: str) -> str:
    x, y, width, height = box
    position = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css}" {position}><title>{escape(title)}</title></rect>'


def hatch(box: Box, pattern: str = "hatch") -> str:
    x, y, width, height = box
    return f'<rect fill="url(#{pattern})" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def circle(css: str, point: Point) -> str:
    return f'<circle class="{css}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="3"/>'


def text(x: float, y: float, content: str, anchor: str = "start", css: str = "") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def area(css: str, path: Sequence[Point], base: float) -> str:
    return (
        f'<path class="{css}" vector-effect="non-scaling-stroke" d="M{path[0][0]:.1f},{base:.1f} {_points(path)} '
        f'{path[-1][0]:.1f},{base:.1f}"/>'
    )


def open_path(css: str, path: Sequence[Point]) -> str:
    return f'<path class="{css}" vector-effect="non-scaling-stroke" d="M{_points(path)}"/>'


def _points(path: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in path)


def wide(height: float, marks: Iterable[str], label: str) -> SafeString:
    """A picture as wide as its place: its marks have x in percent and y in pixels, so that text keeps its size."""
    return mark_safe(
        f'<svg class="bar" width="100%" height="{height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(marks)}</svg>"
    )


def wide_rect(css: str, box: Box, title: str) -> str:
    """`box` has x and width in percent. Hatched without a class.

    The hatching is an attribute, because an address in a style sheet is relative to the style sheet.
    """
    x, y, width, height = box
    fill = f'class="{css}"' if css else 'class="hatched" fill="url(#hatch-line)"'
    position = f'x="{x:.2f}%" y="{y:.1f}" width="{width:.2f}%" height="{height:.1f}"'
    return f"<rect {fill} {position}><title>{escape(title)}</title></rect>"


def wide_line(css: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{css}" x1="{x:.2f}%" y1="{top:.1f}" x2="{x:.2f}%" y2="{bottom:.1f}"/>'


def wide_text(x: float, y: float, content: str, anchor: str = "start", css: str = "") -> str:
    shift = ' dx="3"' if anchor == "start" else ""
    return f'<text class="{css}" x="{x:.2f}%"{shift} y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def level(label: str, y: float, x1: float, x2: float, *, is_axis: bool = False) -> str:
    """A horizontal rule with its value before it."""
    return line("axis" if is_axis else "grid", x1, y + 0.5, x2, y + 0.5) + text(x1 - 8, y + 4, label, "end")


def round_up(most: float, *, least: float = 2) -> float:
    """The smallest round number that is at least `most` and `least`. Half of it is also round."""
    steps = (step * 10.0**power for power in range(-3, 13) for step in (2, 4, 6, 8, 10))
    return next(step for step in steps if step >= max(most, least) * (1 - 1e-9))
