"""What people say of sessions: an answer is appended, the reward follows, the queue follows, in one transaction."""

from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Subquery
from django.utils import timezone

from grading import monitoring, zones
from grading.days import start_of_day
from grading.models import ReviewAnswer, ReviewItem, Session
from grading.models.review import GRADING, Answer, ItemState
from grading.models.sessions import yours
from grading.review import corrections, queue, records
from grading.review.claims import FREE
from grading.review.corrections import CorrectionError
from grading.review.effects import changes, measure
from grading.review.notes import comment, flag, reveal, unflag
from grading.review.seen import hides_judge, persons_grade
from grading.reward import rewards
from grading.vocabulary import Source

__all__ = [
    "ClaimLost",
    "adopt",
    "comment",
    "flag",
    "hides_judge",
    "is_opinion",
    "last_of",
    "reveal",
    "submit",
    "undo",
    "unflag",
]

VERDICTS = (*GRADING, Answer.EXCLUDE)


class ClaimLost(CorrectionError):
    """Somebody else holds the item. Take the next one, or wait until their claim has run out."""

    def __init__(self, item: ReviewItem) -> None:
        until = f" until {zones.local(item.claimed_until):%H:%M:%S}" if item.claimed_until else ""
        super().__init__(
            f"{item.claimed_by} holds this session{until}: your claim had run out. Nothing was saved; go on with the "
            "next one, or come back if it is still in the queue then."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedAnswer:
    """What a form says: the answer, its value in [0, 1] where it has one, why, and what was on the screen.

    `sighted`: given with the rewards or others' answers in view.
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
        """What of it is kept as it came, besides answer and value."""
        named = ("reason", "claim", "seconds", "bulk", "sighted")
        return {name: getattr(self, name) for name in named}


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
    """Record what a person says of a session, and everything that follows, in one transaction.

    A grade, an acceptance and an exclusion become the reward and close the item; while more people are wanted and
    somebody's grade holds already, they stand beside as an opinion. `seconds` from opening to answering, `bulk` the
    name of the correction of many that this belongs to. The same said again from the same page changes nothing and
    returns the first answer. CorrectionError, StaleReview or ClaimLost where nothing could be saved.
    """
    said = SubmittedAnswer(
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
        locked = _locked(session)
        if said.claim:
            # The same answer from the same page: a double click, or a request that was sent again.
            mine = ReviewAnswer.objects.effective().filter(session=locked, reviewer=reviewer, claim=said.claim)
            first = mine.order_by("-pk").first()
            if first is not None and first.answer == answer and (answer is Answer.ACCEPT or first.value == value):
                return first
        item = ReviewItem.objects.select_for_update(of=("self",)).filter(session=locked).first()
        # One whose claim ran out may still answer while nobody else holds the item.
        is_claimed = item is not None and item.claimed_until is not None and item.claimed_until > timezone.now()
        if item is not None and is_claimed and item.claimed_by_id != reviewer.pk:
            raise ClaimLost(item)
        if said.answer in VERDICTS:
            return _verdict(locked, reviewer, said, item)
        return _no_verdict(locked, reviewer, said, item)


def adopt(answer: ReviewAnswer, by: User, reason: str = "") -> ReviewAnswer:
    """Make somebody's answer the authoritative one: `by` gives its grade in their own name, and the item is closed.

    CorrectionError where the answer says no grade, was undone, or holds already.
    """
    with transaction.atomic():
        session = _locked(answer.session)
        if answer.answer not in VERDICTS or ReviewAnswer.objects.filter(undoes=answer).exists():
            raise CorrectionError("Only a grade or an exclusion that was not undone can hold; choose another answer.")
        held = persons_grade(session)
        if held is not None and held.pk == answer.grade_id:
            raise CorrectionError("This answer holds already; nothing was changed.")
        why = f"{answer.reviewer.get_username()}'s answer holds" + (f": {reason.strip()}" if reason.strip() else "")
        verdict = Answer.EXCLUDE if answer.answer == Answer.EXCLUDE else Answer.GRADE
        row = _graded(session, by, SubmittedAnswer(answer=verdict, value=answer.value, reason=why, sighted=True))
        queue.close(session, ItemState.DONE, by)
        return row


def undo(answer: ReviewAnswer, reviewer: User, reason: str = "") -> ReviewAnswer:
    """Take an answer back: what held before it holds again, exactly, and the item waits again where it should.

    CorrectionError where it was undone before, or is an undo itself.
    """
    with transaction.atomic():
        session = _locked(answer.session)
        if answer.answer == Answer.UNDO:
            raise CorrectionError("An undo can’t be undone; give the answer again.")
        if ReviewAnswer.objects.filter(undoes=answer).exists():
            raise corrections.AlreadyUndone
        before = measure(session)
        seen = records.seen_now(session, before.reward, reviewer)
        if answer.grade is not None:
            corrections.undo(answer.grade, reviewer, reason=reason)
        elif answer.answer == Answer.CANNOT_JUDGE:
            monitoring.reopen_flags(session, why=monitoring.DISMISSED)
        monitoring.refresh()
        effects = changes(before, measure(session, before))
        said: dict[str, Any] = {"reason": reason.strip(), "undoes": answer, "effects": effects}
        row = records.append(session, reviewer, Answer.UNDO, seen=seen, **said)
        _item_follows(session, reviewer)
        if not ReviewItem.objects.open().filter(session=session).exists():
            queue.sync_item(session)
        return row


def last_of(reviewer: User) -> ReviewAnswer | None:
    """The reviewer's latest answer that was not undone: what U takes back; with how many they gave today, skips not
    counted, as `today` (None for none).
    """
    mine = ReviewAnswer.objects.filter(reviewer=reviewer).exclude(answer=Answer.UNDO)
    # Not by `holding`, whose join PostgreSQL believes to leave one row: it would read all that the reviewer ever said.
    mine = mine.filter(~Exists(ReviewAnswer.objects.filter(undoes=OuterRef("pk"))))
    today = mine.exclude(answer=Answer.SKIP).filter(yours(), created_at__gte=start_of_day(timezone.now()))
    counted = today.order_by().values("reviewer").annotate(n=Count("pk")).values("n")
    related = mine.select_related("session__agent", "session__category", "grade")
    return related.annotate(today=Subquery(counted)).order_by("-pk").first()


# --- one answer -------------------------------------------------------------------------------------------------------


def _verdict(session: Session, reviewer: User, said: SubmittedAnswer, item: ReviewItem | None) -> ReviewAnswer:
    """A grade, an acceptance or an exclusion; to accept is to give the reward that is shown as a grade."""
    if said.answer is Answer.ACCEPT:
        held = rewards.live(session)
        corrections.require_fresh(session, held, said.seen_revision, said.seen_evidence)
        # The floor is no grade (L2).
        if held is None or held.value is None or held.source == Source.FLOOR:
            raise CorrectionError("There is no grade to accept here: nothing has graded this session yet. Give one.")
        said = replace(said, value=held.value)
    if item is not None and is_opinion(session, reviewer, item):
        # It stands beside the one that holds, and changes nothing.
        corrections.require_fresh(session, rewards.live(session), said.seen_revision, said.seen_evidence)
        corrections.checked(said.value, exclude=said.answer is Answer.EXCLUDE)
        row = records.append(session, reviewer, said.answer, value=said.value, **said.columns)
    else:
        row = _graded(session, reviewer, said)
    _item_follows(session, reviewer)
    return row


def _graded(session: Session, reviewer: User, said: SubmittedAnswer) -> ReviewAnswer:
    """A verdict that becomes the reward, with all that it changed."""
    before = measure(session)
    seen = records.seen_now(session, before.reward, reviewer)
    corrections.record_correction(
        session,
        reviewer,
        value=said.value,
        exclude=said.answer is Answer.EXCLUDE,
        reason=said.reason,
        seen_revision=said.seen_revision,
        seen_evidence=said.seen_evidence,
    )
    monitoring.refresh()
    effects = changes(before, measure(session, before))
    made: dict[str, Any] = {"seen": seen, "grade": persons_grade(session), "effects": effects}
    return records.append(session, reviewer, said.answer, value=said.value, **made, **said.columns)


def _no_verdict(session: Session, reviewer: User, said: SubmittedAnswer, item: ReviewItem | None) -> ReviewAnswer:
    """A skip gives the item back; "cannot judge" takes it off the queue, unless others are asked too."""
    if said.value is not None:
        raise CorrectionError(f"{said.answer.value!r} says no grade, and {said.value} came with it; clear one of them.")
    if said.answer is Answer.UNDO:
        raise CorrectionError("An undo names what it undoes; call undo().")
    if said.answer is Answer.CANNOT_JUDGE and not said.reason:
        raise CorrectionError("A reason is needed: say in a few words why it cannot be judged.")
    alone = item is None or (item.state == ItemState.OPEN and item.wanted == 1)
    if said.answer is Answer.CANNOT_JUDGE and alone:
        return queue.take_off(session, reviewer, **said.columns)
    row = records.append(session, reviewer, said.answer, **said.columns)
    if said.answer is Answer.SKIP:
        ReviewItem.objects.filter(session=session, claimed_by=reviewer).update(**FREE)
    else:
        _item_follows(session, reviewer)
    return row


def _item_follows(session: Session, by: User) -> None:
    """The session's item has its answers now and is closed, or lacks some and waits, no longer in these hands."""
    items = ReviewItem.objects.filter(session=session)
    item = items.first()
    state = None if item is None else queue.state_of(item)
    if state == ItemState.OPEN:
        items.exclude(state=state).update(state=state, closed_at=None)
        items.filter(claimed_by=by).update(**FREE)
    elif state is not None:
        queue.close(session, state, by)


def _locked(session: Session) -> Session:
    return Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)


def is_opinion(session: Session, reviewer: User, item: ReviewItem) -> bool:
    """Whether an answer stands beside: others are asked too and the grade of another holds since the item came in."""
    if item.state != ItemState.OPEN or item.wanted <= 1:
        return False
    held = persons_grade(session)
    return held is not None and held.author_id != reviewer.pk and held.created_at >= item.entered_at
