"""Pictures of a run of judging again: how far it is, and how far its verdicts moved."""

from collections import Counter
from collections.abc import Sequence

from django.utils.safestring import SafeString

from grading.screens.charts.svg import hatch, line, rect, svg, text

BAR, MOVES = (1000, 12), (640, 160)
# A move of a verdict, in [−1, 1], falls into one of these many bins a unit; the middle one holds those within .05.
BINS = 10


def bar(parts: Sequence[tuple[str, str, int]], total: int, label: str) -> SafeString:
    """A bar of `total`, filled from the left by parts: class ("" for hatched), words, count."""
    width, height = BAR
    marks, x = [f'<rect class="f-track" width="{width}" height="{height}" rx="2"/>'], 0.0
    for css, words, count in parts:
        if not count:
            continue
        box = (x, 0, max(width * count / max(total, 1), 1.0), height)
        marks.append(rect(css or "f-track", box, f"{count} {words}"))
        if not css:
            marks.append(hatch(box).replace("#hatch", "#hatch-line"))
        x += box[2]
    return svg(width, height, "".join(marks), label, stretch=True)


def moves(values: Sequence[float]) -> SafeString:
    """How many verdicts moved how far: new − old, each in [−1, 1], in bins of a tenth."""
    width, height = MOVES
    base, top = height - 24.0, 20.0
    counts = Counter(max(-BINS, min(BINS, round(value * BINS))) for value in values)
    most, step = max(counts.values(), default=1), width / (2 * BINS + 1)
    marks = [line("axis", 0, base + 0.5, width, base + 0.5)]
    for at in range(-BINS, BINS + 1):
        x, count = (at + BINS) * step, counts[at]
        if count:
            tall = max((base - top) * count / most, 1.5)
            marks.append(rect("f-judge", (x + 2, base - tall, step - 4, tall), f"{count} moved {_signed(at)}"))
            marks.append(text(x + step / 2, base - tall - 4, str(count), "middle", "ink"))
        if at % 5 == 0:
            marks.append(text(x + step / 2, base + 16, _signed(at), "middle"))
    return svg(width, height, "".join(marks), f"New verdict less old one, {len(values)} sessions")


def _signed(at: int) -> str:
    if at == 0:
        return "0"
    return f"{'−' if at < 0 else '+'}{abs(at) / BINS:g}".replace("0.", ".")
