"""Which harness and model does best on the work of this site?"""

from grading.insight.bridges import load_pairs
from grading.insight.changes import rank_graders
from grading.insight.core.bridge import fit_scale
from grading.insight.core.like_work import compare_on_like_work
from grading.insight.core.results import AgentCard, Span
from grading.insight.loading import CellFilter, load_cells

MEASURES = ("reward", "cost", "minutes")


def compare_agents(span: Span, *, filters: CellFilter | None = None) -> tuple[AgentCard, ...]:
    """A card for each harness and model with sessions in the span, the one with the most sessions first. Three
    queries.
    """
    columns = ("category", "project", "harness", "model", "grader")
    table = load_cells(span, columns=columns, measures=MEASURES, filters=filters)
    graders = rank_graders(table, "reward")
    return compare_on_like_work(table, MEASURES, fit_scale(graders, load_pairs(span, graders)))
