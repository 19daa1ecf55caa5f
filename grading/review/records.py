"""The one writer of answers: what a person did, with everything they had before them."""

from typing import Any

from django.contrib.auth.models import User

from grading.models import ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import Answer
from grading.review.seen import BlindGrade, blind, evidence_version, judges_answer
from grading.reward import rewards


def stratum(session: Session) -> str:
    """What sets a session's expected correction apart from others of its arm and source: "flagged", or nothing."""
    return rewards.FLAGGED if rewards.is_flagged(session) else ""


def seen_now(session: Session, settlement: Settlement | None, reviewer: User) -> dict[str, Any]:
    """What is on this person's screen now, as columns of an answer: take it before anything changes."""
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
    """Append an answer; `context` as it was before the answer changed anything, by default as it is.

    `sighted`: given with everything in view, and not at the desk, so that nothing of it is blind or the queue's.
    """
    context = seen_now(session, rewards.live(session), reviewer) if context is None else context
    first = blind(session, reviewer, answer, value, context["settlement"])
    if sighted:
        first, context = BlindGrade(value=None, revealed=True), {**context, "place": ""}
    columns = {"value": value, "blind_value": first.value, "revealed": first.revealed, **context, **details}
    return ReviewAnswer.objects.create(session=session, reviewer=reviewer, answer=answer, **columns)
