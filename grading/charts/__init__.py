"""Pictures drawn on the server: pure functions from numbers to SVG that prints, tests and needs no script.

Sizes are attributes and colours are classes, so that a strict content policy holds. Text is escaped here.
"""

from grading.charts.days import STACK, Bar, Cost, by_day, costs
from grading.charts.posteriors import Beta, before_after, proof, ridges, thousandths
from grading.charts.quota import Curve, Note, Span, backlog, gauge, share_bar, timeline
from grading.charts.scale import band_of, scale

__all__ = [
    "STACK",
    "Bar",
    "Beta",
    "Cost",
    "Curve",
    "Note",
    "Span",
    "backlog",
    "band_of",
    "before_after",
    "by_day",
    "costs",
    "gauge",
    "proof",
    "ridges",
    "scale",
    "share_bar",
    "thousandths",
    "timeline",
]
