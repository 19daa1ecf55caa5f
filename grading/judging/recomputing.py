"""Computing anew what a stored verdict is worth, from the dimensions that the judge gave. No judge is asked."""

from grading.core.verdict import Graded, Reached
from grading.core.verdict_score import SCORING
from grading.judging import results
from grading.models import Grade, Rubric, Session


def recompute(session: Session) -> Grade | None:
    """A new row of the session's verdict, with the score that its dimensions come to; the old row stays.

    None where that is how it was computed, or it cannot be: it has no dimensions, or its rubric is not on record. The
    row's version says by which rules; model, route and rubric are still those that the judge was asked by.
    """
    held = session.grades.chain().verdicts().order_by("-pk").first()
    if held is None or SCORING in held.version.split():
        return None
    rubric = Rubric.objects.filter(sha256=held.rubric).first()
    graded = _graded(held)
    scored = None if rubric is None or graded is None else results.computed(graded, rubric)
    if graded is None or scored is None:
        return None
    identity = {
        "version": f"{held.version} {SCORING}".strip(),
        "model": held.model,
        "route": held.route,
        "rubric": held.rubric,
        "inputs_sha256": held.inputs_sha256,
    }
    return Grade.objects.create(
        session=session,
        source=held.source,
        status=held.status,
        value=scored.value,
        detail=f"{held.detail}. Computed anew from its dimensions".lstrip(". "),
        evidence={**held.evidence, **results.terms(graded.score, scored), "recomputed_from": held.pk},
        replicate=session.grades.verdicts().filter(**identity).count(),
        **identity,
    )


def _graded(held: Grade) -> Graded | None:
    """The verdict as the judge gave it; None where its dimensions are not on record."""
    dimensions, reached = held.evidence.get("dimensions"), held.evidence.get("reached")
    if not isinstance(dimensions, dict) or held.value is None:
        return None
    if not all(isinstance(value, int | float) and 0 <= value <= 1 for value in dimensions.values()):
        return None
    return Graded(
        score=held.value,
        dimensions=dimensions,
        rationale=str(held.evidence.get("rationale", "")),
        citations=(),
        reached=Reached(reached) if reached in set(Reached) else None,
    )
