"""Recomputes the score of stored verdicts from their dimensions, without calling the judge."""

from grading.judging import results
from grading.judging.core.verdict import Graded, Reached
from grading.judging.core.verdict_score import SCORING, VerdictScore
from grading.models import Grade, Rubric, Session


def recompute(session: Session) -> Grade | None:
    """Add a row for the session's verdict with its recomputed score, then one for each of its further readings.

    Returns the verdict's new row; None if the verdict has that score already, or it cannot be computed because the
    dimensions or the rubric are missing. The new row's version names the scoring rules; model, route and rubric stay
    those of the call.
    """
    verdict = session.grades.chain().verdicts().first_readings().order_by("-pk").first()
    if verdict is None or _rescore(verdict) is None:
        return None
    first = _copy(verdict, None)
    for reading in verdict.read_again.order_by("pk"):
        _copy(reading, first)
    return first


def _copy(verdict: Grade, first: Grade | None) -> Grade:
    """A new row for a reading, with its recomputed score if it needs one.

    `first` is the new row of the first reading, None if this is that row.
    """
    value = verdict.value
    detail = verdict.detail
    version = verdict.version
    score_evidence = {}
    rescored = _rescore(verdict)
    if rescored is not None:
        graded, score = rescored
        value = score.value
        detail = f"{detail}. Computed anew from its dimensions"
        version = f"{version} {SCORING}".strip()
        score_evidence = results.score_evidence(graded.score, score)
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
        evidence={**verdict.evidence, **score_evidence, "recomputed_from": verdict.pk},
        replicate=verdict.session.grades.verdicts().filter(**identity).count(),
        sample_of=first,
        **identity,
    )


def _rescore(verdict: Grade) -> tuple[Graded, VerdictScore] | None:
    """A verdict as the judge gave it, and its recomputed score.

    None if the verdict has that score already, or the score cannot be computed.
    """
    if SCORING in verdict.version.split():
        return None
    rubric = Rubric.objects.filter(sha256=verdict.rubric).first()
    dimensions = verdict.evidence.get("dimensions")
    reached = verdict.evidence.get("reached")
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
    score = results.compute_score(graded, rubric)
    return None if score is None else (graded, score)
