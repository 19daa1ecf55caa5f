"""Differences with their intervals on one axis around 0: filled where a draw decided, hollow where nothing did."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.safestring import SafeString

from grading.screens.charts.svg import round_up, wide, wide_line, wide_text

HEIGHT, MIDDLE, SCALE_HEIGHT = 24.0, 12.0, 16.0
# The axis is never finer than this, so that a trifle looks like one.
LEAST_REACH = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardDifference:
    """A difference in reward, its interval from `low` to `high`, and whether a draw is behind it."""

    mean: float
    low: float
    high: float
    is_causal: bool


def reach(differences: Iterable[RewardDifference]) -> float:
    """How far an axis from −reach to +reach goes that holds them all; at most 1."""
    most = max((max(-each.low, each.high) for each in differences), default=0.0)
    return min(round_up(most, least=LEAST_REACH), 1.0)


def difference(shown: RewardDifference | None, far: float) -> SafeString:
    """One row on the axis from −`far` to `far`; None is an empty one."""
    marks = [wide_line("axis", 50, 0, HEIGHT)]
    if shown is None:
        return wide(HEIGHT, "".join(marks), "cannot tell")
    kind = "causal" if shown.is_causal else "observational"
    # Where on the axis, in percent, cut at its ends.
    low, at, high = (50 * (1 + min(max(each / far, -1), 1)) for each in (shown.low, shown.mean, shown.high))
    marks += [
        f'<line class="interval" x1="{low:.2f}%" x2="{high:.2f}%" y1="{MIDDLE:g}" y2="{MIDDLE:g}"/>',
        wide_line("interval", low, MIDDLE - 4, MIDDLE + 4),
        wide_line("interval", high, MIDDLE - 4, MIDDLE + 4),
        f'<circle class="{kind}" cx="{at:.2f}%" cy="{MIDDLE:g}" r="4.5"/>',
    ]
    label = f"{kind}: {shown.mean:+.3f}, 90 % interval {shown.low:+.3f} to {shown.high:+.3f}"
    return wide(HEIGHT, "".join(marks), label)


def effects_scale(far: float) -> SafeString:
    """The axis' ends and middle, for the head of a column of these."""
    words = f"{far:g}".removeprefix("0")
    marks = (
        wide_text(0, 12, f"−{words}", "start"),
        wide_text(50, 12, "0", "middle"),
        wide_text(100, 12, f"+{words}", "end"),
    )
    return wide(SCALE_HEIGHT, "".join(marks), f"Axis from −{words} to +{words}")
