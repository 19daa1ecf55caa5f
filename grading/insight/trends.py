"""Means of a measure by day or week."""

from grading.insight.core.results import Span, Trend, TrendSplit, TrendStep
from grading.insight.loading import CellFilter


def load_trend(
    measure: str,
    span: Span,
    *,
    step: TrendStep = TrendStep.WEEK,
    split: TrendSplit | None = None,
    filters: CellFilter | None = None,
) -> Trend:
    """A measure over the span, by its name in `MEASURES`. Raises KeyError for another name. Constant queries."""
    raise NotImplementedError
