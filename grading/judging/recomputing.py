"""Computing anew what a stored verdict is worth, from the dimensions that the judge gave. No judge is asked."""

from grading.judging import results
from grading.judging.core.verdict import Graded, Reached
from grading.judging.core.verdict_score import SCORING, VerdictScore
from grading.models import Grade, Rubric, Session


def recompute(session: Session) -> Grade | None:
    """A new row of the session's verdict, with the score that its dimensions come to; the old row stays. What the judge
    said when it read the session again follows it, as new rows too.

    None where that is how it was computed, or it cannot be: it has no dimensions, or its rubric is not on record. The
    row's version says by which rules; model, route and rubric are still those that the judge was asked by.
    """
    held = session.grades.chain().verdicts().first_readings().order_by("-pk").first()
    if held is None or _scored(held) is None:
        return None
    first = _anew(held, None)
    for reading in held.read_again.order_by("pk"):
        _anew(reading, first)
    return first


def _anew(held: Grade, first: Grade | None) -> Grade:
    """The row of a reading with its score computed anew; with the one that it has, where that is how it was."""
    score = _scored(held)
    terms, said = {}, held.detail
    if score is not None:
        graded, scored = score
        terms, said = results.terms(graded.score, scored), f"{held.detail}. Computed anew from its dimensions"
    identity = {
        "version": held.version if score is None else f"{held.version} {SCORING}".strip(),
        "model": held.model,
        "route": held.route,
        "rubric": held.rubric,
        "inputs_sha256": held.inputs_sha256,
        "sample": held.sample,
    }
    return Grade.objects.create(
        session=held.session,
        source=held.source,
        status=held.status,
        value=held.value if score is None else score[1].value,
        detail=said.lstrip(". "),
        evidence={**held.evidence, **terms, "recomputed_from": held.pk},
        replicate=held.session.grades.verdicts().filter(**identity).count(),
        sample_of=first,
        **identity,
    )


def _scored(held: Grade) -> tuple[Graded, VerdictScore] | None:
    """A verdict as the judge gave it and what its dimensions come to; None where that is how it was computed, or it
    cannot be.
    """
    rubric = None if SCORING in held.version.split() else Rubric.objects.filter(sha256=held.rubric).first()
    dimensions, reached = held.evidence.get("dimensions"), held.evidence.get("reached")
    if rubric is None or held.value is None or not isinstance(dimensions, dict):
        return None
    if not all(isinstance(value, int | float) and 0 <= value <= 1 for value in dimensions.values()):
        return None
    graded = Graded(
        score=held.value,
        dimensions=dimensions,
        rationale=str(held.evidence.get("rationale", "")),
        citations=(),
        reached=Reached(reached) if reached in set(Reached) else None,
    )
    scored = results.computed(graded, rubric)
    return None if scored is None else (graded, scored)
