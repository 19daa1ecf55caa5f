"""What people record about a session besides grades: comments, flags, and that they have seen the judge's answer."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from grading.models import Comment, Flag, Reveal, ReviewItem, Session
from grading.models.review import QueueEntry
from grading.monitoring.rule import title_of
from grading.review import queue
from grading.review.corrections import CorrectionError, checked_grade
from grading.review.seen import judges_answer
from grading.reward import rewards

TAKEN_BACK = "taken back"
LONGEST_COMMENT = 4000


def comment(session: Session, author: User, text: str) -> Comment:
    """Comment on a session. Raises CorrectionError if the text is empty or too long."""
    text = text.strip()
    if not 0 < len(text) <= LONGEST_COMMENT:
        raise CorrectionError(f"A comment has 1 to {LONGEST_COMMENT} characters; this one has {len(text)}.")
    return Comment.objects.create(session=session, author=author, text=text)


def flag(session: Session, by: User, why: str) -> Flag:
    """Flag a session by hand and queue it. Raises CorrectionError without a reason, or if a person has flagged it."""
    if not why.strip():
        raise CorrectionError("Give a short reason for the flag: what should others look at?")
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        existing = Flag.objects.filter(session=session, rule=Flag.BY_A_PERSON).first()
        if existing is not None and existing.cleared_at is None:
            raise CorrectionError(f"{existing.raised_by} has already flagged this session: {existing.detail}")
        row = existing or Flag(session=session, rule=Flag.BY_A_PERSON)
        row.detail = why.strip()
        row.raised_at = timezone.now()
        row.raised_by = by
        row.cleared_at = None
        row.cleared_by = None
        row.cleared_why = ""
        row.save()
        rewards.settle(session)
        queue.add(session, by, why)
        return row


def unflag(flag: Flag, by: User) -> None:
    """Clear a person's flag. The session leaves the queue if it was there only because of the flag.

    Raises CorrectionError for a rule's flag: a person can clear it only with a grade or a dismissal.
    """
    if flag.rule != Flag.BY_A_PERSON:
        raise CorrectionError(
            f"A rule raised this flag ({title_of(flag.rule)}). To clear it, grade the session or answer “Can’t judge”."
        )
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=flag.session_id)
        open_flag = Flag.objects.open().filter(pk=flag.pk)
        open_flag.update(cleared_at=timezone.now(), cleared_by=by, cleared_why=TAKEN_BACK)
        rewards.settle(session)
        # Mark the item as a rule's: `sync_item` leaves items that a person added in the queue.
        items = ReviewItem.objects.open().filter(session=session, entered_as=QueueEntry.PERSON)
        items.filter(why=queue.by_a_person(flag.raised_by, flag.detail)).update(entered_as=QueueEntry.RULE)
        queue.sync_item(session)


def reveal(session: Session, reviewer: User, value: float | None = None) -> Reveal:
    """Record that this person has seen the judge's answer. Returns the record of the first time.

    `value` is the grade that they would have given without it. Raises CorrectionError if it is not in [0, 1].
    """
    if value is not None:
        value = checked_grade(value, exclude=False)
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        first = Reveal.objects.filter(session=session, reviewer=reviewer).order_by("pk").first()
        judge = judges_answer(session)
        return first or Reveal.objects.create(session=session, reviewer=reviewer, judge=judge, value=value)
