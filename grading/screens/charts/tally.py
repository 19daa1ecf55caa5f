"""Counts beside what was expected of them: one bar and one tick a name."""

from django.utils.safestring import SafeString

from grading.screens.charts.svg import wide, wide_line, wide_rect

HEIGHT, THICK = 16.0, 8.0


def tally(name: str, count: float, expected: float, most: float) -> SafeString:
    """A bar of `count` and a tick at `expected`, on a scale from 0 to `most`, all in the same unit."""
    top = (HEIGHT - THICK) / 2
    unit = 99 / max(most, count, expected, 1e-9)
    marks = [
        f'<rect class="f-track" x="0%" y="{top:g}" width="100%" height="{THICK:g}" rx="2"/>',
        wide_rect("f-ink", (0, top, count * unit, THICK), f"{name}: {count:.0f}"),
        wide_line("expected", expected * unit, 0, HEIGHT),
    ]
    return wide(HEIGHT, "".join(marks), f"{name}: {count:.0f}, expected {expected:.1f}")
