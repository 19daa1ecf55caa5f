"""Writes people's answers, each with what was on the person's screen. No other module writes answers."""

from typing import Any

from django.contrib.auth.models import User

from grading.models import ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import Answer
from grading.review.seen import BlindGrade, blind_grade, evidence_version, judges_answer
from grading.reward import rewards


def stratum(session: Session) -> str:
    """The part of a session's stratum besides arm and source: "flagged" or ""."""
    return rewards.FLAGGED if rewards.is_flagged(session) else ""


def seen_now(session: Session, settlement: Settlement | None, reviewer: User) -> dict[str, Any]:
    """The columns of an answer that say what is on this person's screen. Call it before the answer changes anything."""
    item = ReviewItem.objects.filter(session=session).first()
    return {
        "settlement": settlement,
        "judge": judges_answer(session),
        "evidence_sha256": evidence_version(session),
        "slice_probability": None if item is None else item.slice_probability,
        "stratum": stratum(session),
        "place": item.place if item is not None and item.claimed_by_id == reviewer.pk else "",
    }


def append(
    session: Session,
    reviewer: User,
    answer: Answer,
    *,
    value: float | None = None,
    context: dict[str, Any] | None = None,
    sighted: bool = False,
    **details: Any,
) -> ReviewAnswer:
    """Append an answer. `context` is the result of `seen_now` from before the answer changed anything.

    Without it, `seen_now` is called here. `sighted`: the person answered outside of the queue and saw the judge's
    answer, so the answer has no blind grade and no place.
    """
    if context is None:
        context = seen_now(session, rewards.live(session), reviewer)
    blind = blind_grade(session, reviewer, answer, value, context["settlement"])
    if sighted:
        blind = BlindGrade(value=None, revealed=True)
        context = {**context, "place": ""}
    columns = {"value": value, "blind_value": blind.value, "revealed": blind.revealed, **context, **details}
    return ReviewAnswer.objects.create(session=session, reviewer=reviewer, answer=answer, **columns)
