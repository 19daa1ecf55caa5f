"""Pictures drawn on the server: pure functions from numbers to SVG that prints, tests and needs no script.

Sizes are attributes and colours are classes, so that a strict content policy holds. Text is escaped here.
"""

from grading.screens.charts.climb import climb
from grading.screens.charts.days import NARROW, STACK, Bar, DayCost, by_day, costs
from grading.screens.charts.effects import RewardDifference, difference, effects_scale, reach
from grading.screens.charts.outages import OutageSpan
from grading.screens.charts.posteriors import (
    Beta,
    before_after,
    beliefs,
    by_step,
    compared,
    move,
    proof,
    ridges,
    thousandths,
)
from grading.screens.charts.quota import BACKLOG, SMALL_BACKLOG, Curve, Note, Span, backlog, gauge, share_bar, timeline
from grading.screens.charts.scale import band_of, bands, held_mark
from grading.screens.charts.tally import tally
from grading.screens.charts.track import track

__all__ = [
    "BACKLOG",
    "NARROW",
    "SMALL_BACKLOG",
    "STACK",
    "Bar",
    "Beta",
    "Curve",
    "DayCost",
    "Note",
    "OutageSpan",
    "RewardDifference",
    "Span",
    "backlog",
    "band_of",
    "bands",
    "before_after",
    "beliefs",
    "by_day",
    "by_step",
    "climb",
    "compared",
    "costs",
    "difference",
    "effects_scale",
    "gauge",
    "held_mark",
    "move",
    "proof",
    "reach",
    "ridges",
    "share_bar",
    "tally",
    "thousandths",
    "timeline",
    "track",
]
