"""SVG as text: every mark a function of numbers, sizes as attributes, colours as classes, text escaped here."""

from collections.abc import Iterable, Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe


def svg(width: float, height: float, marks: str, label: str, *, stretch: bool = False) -> SafeString:
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    return mark_safe(
        f'<svg class="fit" viewBox="0 0 {width} {height}" width="{width}" height="{height}"{ratio} role="img" '
        f'aria-label="{escape(label)}">{marks}</svg>'
    )


def line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        'vector-effect="non-scaling-stroke"/>'
    )


Box = tuple[float, float, float, float]


def rect(css: str, at: Box, title: str) -> str:
    x, y, width, height = at
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css}" {box}><title>{escape(title)}</title></rect>'


def hatch(at: Box) -> str:
    x, y, width, height = at
    return f'<rect fill="url(#hatch)" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def points(path: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in path)


def area(css: str, path: Sequence[tuple[float, float]], base: float) -> str:
    return (
        f'<path class="{css}" vector-effect="non-scaling-stroke" d="M{path[0][0]:.1f},{base:.1f} {points(path)} '
        f'{path[-1][0]:.1f},{base:.1f}"/>'
    )


def open_path(css: str, path: Sequence[tuple[float, float]]) -> str:
    return f'<path class="{css}" vector-effect="non-scaling-stroke" d="M{points(path)}"/>'


def wide(height: float, marks: str, label: str) -> SafeString:
    """A picture as wide as its place: its marks have x in percent and y in pixels, so that text keeps its size."""
    return mark_safe(
        f'<svg class="bar" width="100%" height="{height:g}" role="img" aria-label="{escape(label)}">{marks}</svg>'
    )


def wide_rect(css: str, at: Box, title: str) -> str:
    """`at`: x and width in percent. Hatched where there is no class.

    The hatching is an attribute: in a style sheet its address would be looked up there.
    """
    x, y, width, height = at
    fill = f'class="{css}"' if css else 'class="hatched" fill="url(#hatch-line)"'
    box = f'x="{x:.2f}%" y="{y:.1f}" width="{width:.2f}%" height="{height:.1f}"'
    return f"<rect {fill} {box}><title>{escape(title)}</title></rect>"


def wide_line(css: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{css}" x1="{x:.2f}%" y1="{top:.1f}" x2="{x:.2f}%" y2="{bottom:.1f}"/>'


def wide_text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    shift = ' dx="3"' if anchor == "start" else ""
    return f'<text class="{css}" x="{x:.2f}%"{shift} y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def level(words: str, y: float, left: float, right: float, *, axis: bool = False) -> str:
    """A horizontal rule with its value at the left."""
    return line("axis" if axis else "grid", left, y + 0.5, right, y + 0.5) + text(left - 8, y + 4, words, "end")


def round_up(most: float, *, least: float = 2) -> float:
    """The least round number that holds `most` and is at least `least`; half of it is round too."""
    steps = (step * 10.0**power for power in range(-3, 13) for step in (2, 4, 6, 8, 10))
    return next(step for step in steps if step >= max(most, least) * (1 - 1e-9))
