"""Adds sessions to the review queue whose verdict and outcome contradict each other, and removes them again."""

import datetime as dt

from django.db import transaction
from django.utils import timezone

from grading.days import midnight
from grading.models import OutcomeRecord, ReviewItem, Session
from grading.models.outcomes import OutcomeKind, OutcomeResult
from grading.models.review import ItemState, QueueEntry
from grading.review import queue
from grading.vocabulary import Source

# A verdict and an outcome contradict each other if they are at least GAP apart and on different sides of MIDDLE.
# Without the second condition, a verdict of .5 would contradict success as well as failure.
GAP, MIDDLE = 0.4, 0.5
# Work that has not landed counts as an outcome only after this time.
PATIENCE = dt.timedelta(days=14)
# This many sessions of one arm on one day are combined into one item.
TOGETHER = 5
# How the reason of a combined item begins.
COMBINED = "Verdicts and outcomes"
# The reason of an item whose contradiction is over.
OVER = "The verdict and the outcome agree again."
RESULTS: dict[str, float] = {OutcomeResult.PASS: 1.0, OutcomeResult.FAIL: 0.0}


def check(session: Session, now: dt.datetime) -> bool:
    """Open a review item for a session whose verdict and outcome contradict each other. Returns whether it was opened.

    No item is opened if a person has graded the session or removed it from the queue, or if it is in the queue already.
    An unanswered item closes when its contradiction is over, and opens again at the next contradiction.
    """
    with transaction.atomic():
        rows = Session.objects.select_for_update(of=("self",))
        locked = rows.select_related("verdict", "category", "review_item").get(pk=session.pk)
        item: ReviewItem | None = getattr(locked, "review_item", None)
        reason = describe_contradiction(locked, now)
        if not reason:
            if item is not None:
                _close(item)
            return False
        if locked.reward_source == Source.HUMAN:
            return False
        may_open = item is None or (item.state == ItemState.DONE and item.why == OVER)
        if may_open:
            queue.enter(locked, QueueEntry.OUTCOME, reason)
            _combine(locked, now)
    return may_open


def _close(item: ReviewItem) -> None:
    """Close an item whose contradiction is over, if it is open for that reason and stands for no other sessions."""
    is_for_outcome = item.state == ItemState.OPEN and item.entered_as == QueueEntry.OUTCOME
    if is_for_outcome and not item.why.startswith(COMBINED):
        ReviewItem.objects.open().filter(pk=item.pk).update(why=OVER)
        queue.leave(item, ItemState.DONE)


def describe_contradiction(session: Session, now: dt.datetime) -> str:
    """The contradiction of the session's verdict and outcomes as a sentence; "" if there is none."""
    verdict = session.verdict.value if session.verdict else None
    if verdict is None:
        return ""
    for record in session.outcomes.latest_per_kind().values():
        outcome = _outcome_value(session, record, now)
        if outcome is not None and _contradict(verdict, outcome):
            detail = record.detail or f"{record.kind} {record.shown_result}"
            return f"The verdict is {verdict:.2f}, but {detail}."
    return ""


def _contradict(verdict: float, outcome: float) -> bool:
    """Whether a verdict and an outcome, both in [0, 1], contradict each other."""
    on_different_sides = (verdict - MIDDLE) * (outcome - MIDDLE) < 0
    return on_different_sides and abs(verdict - outcome) >= GAP


def _outcome_value(session: Session, record: OutcomeRecord, now: dt.datetime) -> float | None:
    """An outcome on the scale of rewards, [0, 1]; None if it shows nothing about the work yet."""
    if record.kind in {OutcomeKind.CLOSED, OutcomeKind.REVERTED}:
        return None  # a closed pull request may be finished elsewhere; `landed` counts what was reverted
    landing = getattr(session, "landing", None)
    if record.kind == OutcomeKind.LANDED and landing and landing.open and now - session.ended_at < PATIENCE:
        return None
    return record.number if record.number is not None else RESULTS.get(record.result)


def _combine(session: Session, now: dt.datetime) -> None:
    """If TOGETHER or more sessions of the arm came into the queue today, keep only the first open item. It then stands
    for all items that nobody has answered.
    """
    today = ReviewItem.objects.filter(
        entered_as=QueueEntry.OUTCOME,
        entered_at__gte=midnight(timezone.localdate(now)),
        session__category=session.category,
    )
    items = list(today.exclude(why=OVER).order_by("pk"))
    if len(items) < TOGETHER:
        return
    first, *others = [item for item in items if item.state == ItemState.OPEN]
    arm = session.category.name if session.category else "no category"
    ReviewItem.objects.filter(pk=first.pk).update(
        why=f"{COMBINED} of {len(items)} sessions of {arm} contradict each other today. This one stands for those that "
        "nobody has answered."
    )
    for item in others:
        queue.leave(item, ItemState.DONE)
