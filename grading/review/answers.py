"""People's answers. One transaction appends the answer, updates the reward and updates the queue."""

from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.utils import timezone

from grading.days import start_of_day
from grading.models import ReviewAnswer, ReviewItem, Session
from grading.models.review import GRADING, Answer, ItemState
from grading.models.sessions import yours
from grading.monitoring.flags import DISMISSED
from grading.monitoring.watch import refresh_alarms, reopen_flags
from grading.review import corrections, queue, records
from grading.review.claims import FREE
from grading.review.corrections import CorrectionError
from grading.review.effects import changes_as_json, measure
from grading.review.seen import persons_grade
from grading.reward import rewards
from grading.vocabulary import Source

VERDICTS = (*GRADING, Answer.EXCLUDE)


class ClaimLost(CorrectionError):
    """Another person has claimed the item. Take the next one, or wait until their claim expires."""

    def __init__(self, item: ReviewItem) -> None:
        until = f" until {timezone.localtime(item.claimed_until):%H:%M:%S}" if item.claimed_until else ""
        super().__init__(
            f"Nothing was saved, because your claim expired and {item.claimed_by} has claimed this session{until}. "
            "Continue with the next session, or come back later."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedAnswer:
    """A submitted form: the answer, its value in [0, 1] or None, the reason, and what was on the screen.

    `sighted`: the person saw the rewards or other people's answers.
    """

    answer: Answer
    value: float | None = None
    reason: str = ""
    claim: str = ""
    seen_revision: int | None = None
    seen_evidence: str = ""
    seconds: float | None = None
    bulk: str = ""
    sighted: bool = False

    @property
    def columns(self) -> dict[str, Any]:
        """The further columns of the answer, for `records.append`."""
        names = ("reason", "claim", "seconds", "bulk", "sighted")
        return {name: getattr(self, name) for name in names}


def submit(
    session: Session,
    reviewer: User,
    *,
    answer: Answer,
    value: float | None = None,
    reason: str = "",
    claim: str = "",
    seen_revision: int | None = None,
    seen_evidence: str = "",
    seconds: float | None = None,
    bulk: str = "",
) -> ReviewAnswer:
    """Record a person's answer and everything that follows from it, in one transaction.

    A verdict becomes the reward and closes the item. But if several people are asked and another person's grade is
    current, the verdict is only stored as an opinion. A repeat from the same page returns the first answer.

    `seconds` is the time from opening to answering, `bulk` the name of the bulk correction. Raises CorrectionError,
    StaleReview or ClaimLost; then nothing is saved.
    """
    submitted = SubmittedAnswer(
        answer=answer,
        value=value,
        reason=reason.strip(),
        claim=claim,
        seen_revision=seen_revision,
        seen_evidence=seen_evidence,
        seconds=seconds,
        bulk=bulk,
        sighted=bool(bulk),  # whoever grades many at once has their rewards in view
    )
    with transaction.atomic():
        locked = _lock(session)
        if submitted.claim:
            # The same answer from the same page: a double click, or a request that was sent again.
            from_same_page = ReviewAnswer.objects.effective().filter(session=locked, reviewer=reviewer, claim=claim)
            last = from_same_page.order_by("-pk").first()
            if last is not None and last.answer == answer and (answer is Answer.ACCEPT or last.value == value):
                return last
        item = ReviewItem.objects.select_for_update(of=("self",)).filter(session=locked).first()
        # A reviewer whose claim has expired may still answer while nobody else has claimed the item.
        is_claimed = item is not None and item.claimed_until is not None and item.claimed_until > timezone.now()
        if item is not None and is_claimed and item.claimed_by_id != reviewer.pk:
            raise ClaimLost(item)
        if submitted.answer in VERDICTS:
            return _record_verdict(locked, reviewer, submitted, item)
        return _record_skip_or_dismissal(locked, reviewer, submitted, item)


def adopt(answer: ReviewAnswer, by: User, reason: str = "") -> ReviewAnswer:
    """Make another person's answer the current verdict: `by` gives the same grade, and the item is closed.

    Raises CorrectionError if the answer has no grade, was undone, or is the current verdict already.
    """
    with transaction.atomic():
        session = _lock(answer.session)
        if answer.answer not in VERDICTS or ReviewAnswer.objects.filter(undoes=answer).exists():
            raise CorrectionError(
                "Only a grade or an exclusion that was not undone can be adopted; choose another answer."
            )
        current = persons_grade(session)
        if current is not None and current.pk == answer.grade_id:
            raise CorrectionError("Nothing was changed, because this answer is already in force.")
        why = f"{answer.reviewer.get_username()}'s answer holds" + (f": {reason.strip()}" if reason.strip() else "")
        verdict = Answer.EXCLUDE if answer.answer == Answer.EXCLUDE else Answer.GRADE
        submitted = SubmittedAnswer(answer=verdict, value=answer.value, reason=why, sighted=True)
        row = _record_current_verdict(session, by, submitted)
        queue.close(session, ItemState.DONE, by)
        return row


def undo(answer: ReviewAnswer, reviewer: User, reason: str = "") -> ReviewAnswer:
    """Undo an answer: the state before it is restored exactly, and the item is reopened if there is a reason to.

    Raises CorrectionError if the answer was undone before, or is an undo itself.
    """
    with transaction.atomic():
        session = _lock(answer.session)
        if answer.answer == Answer.UNDO:
            raise CorrectionError("An undo can’t be undone. Give the answer again.")
        if ReviewAnswer.objects.filter(undoes=answer).exists():
            raise corrections.AlreadyUndone
        before = measure(session)
        context = records.seen_now(session, before.reward, reviewer)
        if answer.grade is not None:
            corrections.undo(answer.grade, reviewer, reason=reason)
        elif answer.answer == Answer.CANNOT_JUDGE:
            reopen_flags(session, why=DISMISSED, only=_cleared_by(answer))
        refresh_alarms()
        effects = changes_as_json(before, measure(session, before))
        columns: dict[str, Any] = {"reason": reason.strip(), "undoes": answer, "effects": effects}
        row = records.append(session, reviewer, Answer.UNDO, context=context, **columns)
        _update_item(session, reviewer)
        if not ReviewItem.objects.open().filter(session=session).exists():
            queue.sync_item(session)
        return row


def last_of(reviewer: User) -> ReviewAnswer | None:
    """The reviewer's latest answer that was not undone: the key U undoes it. None if there is no such answer.

    It is annotated with `today`, the number of answers that they gave today, skips aside (None for no answers).
    """
    answers = ReviewAnswer.objects.filter(reviewer=reviewer).exclude(answer=Answer.UNDO)
    # Not `effective()`: PostgreSQL expects its join to leave one row, and reads all answers of the reviewer.
    answers = answers.filter(~Exists(ReviewAnswer.objects.filter(undoes=OuterRef("pk"))))
    today = answers.exclude(answer=Answer.SKIP).filter(yours(), created_at__gte=start_of_day(timezone.now()))
    count_today = today.order_by().values("reviewer").annotate(n=Count("pk")).values("n")
    related = answers.select_related("session__agent", "session__category", "grade")
    return related.annotate(today=Subquery(count_today)).order_by("-pk").first()


# --- one answer -------------------------------------------------------------------------------------------------------


def _record_verdict(
    session: Session, reviewer: User, submitted: SubmittedAnswer, item: ReviewItem | None
) -> ReviewAnswer:
    """Record a grade, an acceptance or an exclusion. To accept is to give the shown reward as a grade."""
    if submitted.answer is Answer.ACCEPT:
        current = rewards.live(session)
        corrections.require_fresh(session, current, submitted.seen_revision, submitted.seen_evidence)
        # The floor is not a grade.
        if current is None or current.value is None or current.source == Source.FLOOR:
            raise CorrectionError(
                "There is no grade to accept, because nothing has graded this session yet. Enter a grade."
            )
        submitted = replace(submitted, value=current.value)
    if item is not None and is_opinion(session, reviewer, item):
        # An opinion does not change the current verdict.
        corrections.require_fresh(session, rewards.live(session), submitted.seen_revision, submitted.seen_evidence)
        corrections.checked_grade(submitted.value, exclude=submitted.answer is Answer.EXCLUDE)
        row = records.append(session, reviewer, submitted.answer, value=submitted.value, **submitted.columns)
    else:
        row = _record_current_verdict(session, reviewer, submitted)
    _update_item(session, reviewer)
    return row


def _record_current_verdict(session: Session, reviewer: User, submitted: SubmittedAnswer) -> ReviewAnswer:
    """Record a verdict that becomes the reward, and everything that it changed."""
    before = measure(session)
    context = records.seen_now(session, before.reward, reviewer)
    corrections.record_correction(
        session,
        reviewer,
        value=submitted.value,
        exclude=submitted.answer is Answer.EXCLUDE,
        reason=submitted.reason,
        seen_revision=submitted.seen_revision,
        seen_evidence=submitted.seen_evidence,
    )
    refresh_alarms()
    effects = changes_as_json(before, measure(session, before))
    return records.append(
        session,
        reviewer,
        submitted.answer,
        value=submitted.value,
        context=context,
        grade=persons_grade(session),
        effects=effects,
        **submitted.columns,
    )


def _record_skip_or_dismissal(
    session: Session, reviewer: User, submitted: SubmittedAnswer, item: ReviewItem | None
) -> ReviewAnswer:
    """Record an answer without a verdict: a skip, or "cannot judge".

    A skip gives the item back. "Cannot judge" dismisses the item unless other people are asked too.
    """
    if submitted.value is not None:
        kind = submitted.answer.value
        raise CorrectionError(f"{kind!r} says no grade, and {submitted.value} came with it; clear one of them.")
    if submitted.answer is Answer.UNDO:
        raise CorrectionError("An undo names what it undoes; call undo().")
    if submitted.answer is Answer.CANNOT_JUDGE and not submitted.reason:
        raise CorrectionError("Give a short reason why this session cannot be judged.")
    is_only_reviewer = item is None or (item.state == ItemState.OPEN and item.wanted == 1)
    if submitted.answer is Answer.CANNOT_JUDGE and is_only_reviewer:
        return queue.take_off(session, reviewer, **submitted.columns)
    row = records.append(session, reviewer, submitted.answer, **submitted.columns)
    if submitted.answer is Answer.SKIP:
        ReviewItem.objects.filter(session=session, claimed_by=reviewer).update(**FREE)
    else:
        _update_item(session, reviewer)
    return row


def _update_item(session: Session, by: User) -> None:
    """Close the session's queue item if it has all answers that it needs. Otherwise reopen it, and end `by`'s claim.

    Does nothing if the session has no item.
    """
    items = ReviewItem.objects.filter(session=session)
    item = items.first()
    if item is None:
        return
    state = queue.state_of(item)
    if state == ItemState.OPEN:
        items.exclude(state=state).update(state=state, closed_at=None)
        items.filter(claimed_by=by).update(**FREE)
    else:
        queue.close(session, state, by)


def _cleared_by(dismissal: ReviewAnswer) -> Q | None:
    """A condition on the flags that this dismissal cleared; None if it was one of several, which cleared them together.

    Another dismissal may have cleared the session's other flags, or the same flag when it was raised again.
    """
    if "flags_cleared" not in dismissal.effects:
        return None
    return Q(rule__in=dismissal.effects["flags_cleared"], cleared_at__lte=dismissal.created_at)


def _lock(session: Session) -> Session:
    """The session, read again and locked until the transaction ends."""
    return Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)


def is_opinion(session: Session, reviewer: User, item: ReviewItem) -> bool:
    """Whether an answer of this reviewer would be an opinion, because another person's grade is in force already.

    This is so if several people are asked, and another person has graded the session since its item entered the queue.
    """
    if item.state != ItemState.OPEN or item.wanted <= 1:
        return False
    current = persons_grade(session)
    return current is not None and current.author_id != reviewer.pk and current.created_at >= item.entered_at
