"""Recomputes the score of stored verdicts from their dimensions, without calling the judge."""

from grading.judging import results
from grading.judging.core.verdict import Graded, Reached
from grading.judging.core.verdict_score import SCORING, VerdictScore
from grading.models import Grade, Rubric, Session


def recompute(session: Session) -> Grade | None:
    """Add a row for the session's verdict with its recomputed score, and rows for its further readings after it.

    None if the verdict has that score already, or it cannot be computed: it has no dimensions, or its rubric is not on
    record. The new row's version names the scoring rules; model, route and rubric stay those of the call.
    """
    verdict = session.grades.chain().verdicts().first_readings().order_by("-pk").first()
    if verdict is None or _scored(verdict) is None:
        return None
    first = _copy(verdict, None)
    for reading in verdict.read_again.order_by("pk"):
        _copy(reading, first)
    return first


def _copy(verdict: Grade, first: Grade | None) -> Grade:
    """A new row of a reading, with its recomputed score if it needs one."""
    scored = _scored(verdict)
    value, terms, detail, version = verdict.value, {}, verdict.detail, verdict.version
    if scored is not None:
        graded, score = scored
        value, terms = score.value, results.terms(graded.score, score)
        detail, version = f"{detail}. Computed anew from its dimensions", f"{version} {SCORING}".strip()
    identity = {
        "version": version,
        "model": verdict.model,
        "route": verdict.route,
        "rubric": verdict.rubric,
        "inputs_sha256": verdict.inputs_sha256,
        "sample": verdict.sample,
    }
    return Grade.objects.create(
        session=verdict.session,
        source=verdict.source,
        status=verdict.status,
        value=value,
        detail=detail.lstrip(". "),
        evidence={**verdict.evidence, **terms, "recomputed_from": verdict.pk},
        replicate=verdict.session.grades.verdicts().filter(**identity).count(),
        sample_of=first,
        **identity,
    )


def _scored(verdict: Grade) -> tuple[Graded, VerdictScore] | None:
    """A verdict as the judge gave it and its score; None if it has that score already, or it cannot be computed."""
    rubric = None if SCORING in verdict.version.split() else Rubric.objects.filter(sha256=verdict.rubric).first()
    dimensions, reached = verdict.evidence.get("dimensions"), verdict.evidence.get("reached")
    if rubric is None or verdict.value is None or not isinstance(dimensions, dict):
        return None
    if not all(isinstance(value, int | float) and 0 <= value <= 1 for value in dimensions.values()):
        return None
    graded = Graded(
        score=verdict.value,
        dimensions=dimensions,
        rationale=str(verdict.evidence.get("rationale", "")),
        citations=(),
        reached=Reached(reached) if reached in set(Reached) else None,
    )
    score = results.computed(graded, rubric)
    return None if score is None else (graded, score)
