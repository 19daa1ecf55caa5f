"""What happened when: new versions, models and instruction files, rubrics, judges, policies and outages."""

from grading.insight.core.results import Span, TimeMark


def load_marks(span: Span) -> tuple[TimeMark, ...]:
    """The marks in the span, the oldest first."""
    raise NotImplementedError
