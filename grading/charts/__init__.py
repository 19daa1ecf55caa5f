"""Pictures drawn on the server: pure functions from numbers to SVG that prints, tests and needs no script.

Sizes are attributes and colours are classes, so that a strict content policy holds. Text is escaped here.
"""

from grading.charts.days import STACK, Bar, Cost, by_day, costs
from grading.charts.outages import Outage
from grading.charts.posteriors import Beta, before_after, proof, ridges, thousandths
from grading.charts.quota import BACKLOG, SMALL_BACKLOG, Curve, Note, Span, backlog, gauge, share_bar, timeline

__all__ = [
    "BACKLOG",
    "SMALL_BACKLOG",
    "STACK",
    "Bar",
    "Beta",
    "Cost",
    "Curve",
    "Note",
    "Outage",
    "Span",
    "backlog",
    "before_after",
    "by_day",
    "costs",
    "gauge",
    "proof",
    "ridges",
    "share_bar",
    "thousandths",
    "timeline",
]
