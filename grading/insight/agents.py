"""Which harness and model does best on the work of this site?"""

from grading.insight.core.results import AgentCard, Span
from grading.insight.loading import CellFilter


def compare_agents(span: Span, *, filters: CellFilter | None = None) -> tuple[AgentCard, ...]:
    """A card for each harness and model with sessions in the span, the one with the most sessions first."""
    raise NotImplementedError
