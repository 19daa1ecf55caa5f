"""What people leave on a session besides a grade: comments, flags, and that they looked at the judge's answer."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from grading.models import Comment, Flag, Reveal, ReviewItem, Session
from grading.models.review import QueueEntry
from grading.monitoring import title_of
from grading.review import queue
from grading.review.corrections import CorrectionError, checked
from grading.review.seen import judges_answer
from grading.reward import rewards

TAKEN_BACK = "taken back"
LONGEST_COMMENT = 4000


def comment(session: Session, author: User, text: str) -> Comment:
    """Note something on a session, for others. CorrectionError for an empty text or one too long."""
    text = text.strip()
    if not 0 < len(text) <= LONGEST_COMMENT:
        raise CorrectionError(f"A comment has 1 to {LONGEST_COMMENT} characters; this one has {len(text)}.")
    return Comment.objects.create(session=session, author=author, text=text)


def flag(session: Session, by: User, why: str) -> Flag:
    """Put a session up for review by hand. CorrectionError without a `why`, or where a person flagged it already."""
    if not why.strip():
        raise CorrectionError("A flag needs a reason: say in a few words what others should look at.")
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        existing = Flag.objects.filter(session=session, rule=Flag.BY_A_PERSON).first()
        if existing is not None and existing.cleared_at is None:
            raise CorrectionError(f"{existing.raised_by} flagged this session already: {existing.detail}")
        row = existing or Flag(session=session, rule=Flag.BY_A_PERSON)
        row.detail, row.raised_at, row.raised_by = why.strip(), timezone.now(), by
        row.cleared_at, row.cleared_by, row.cleared_why = None, None, ""
        row.save()
        rewards.settle(session)
        queue.add(session, by, why)
        return row


def unflag(flag: Flag, by: User) -> None:
    """Take a person's flag back; the session leaves the queue where only the flag had brought it in.

    CorrectionError for a rule's flag: those end with a grade, a dismissal, or by themselves.
    """
    if flag.rule != Flag.BY_A_PERSON:
        raise CorrectionError(
            f"A rule raised this flag ({title_of(flag.rule)}): grade the session, or say that it can't be judged."
        )
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=flag.session_id)
        taken = Flag.objects.open().filter(pk=flag.pk)
        taken.update(cleared_at=timezone.now(), cleared_by=by, cleared_why=TAKEN_BACK)
        rewards.settle(session)
        brought = ReviewItem.objects.open().filter(session=session, entered_as=QueueEntry.PERSON)
        brought.filter(why=queue.by_a_person(flag.raised_by, flag.detail)).update(entered_as=QueueEntry.RULE)
        queue.sync_item(session)


def reveal(session: Session, reviewer: User, value: float | None = None) -> Reveal:
    """Show this person the judge's answer; `value` in [0, 1] is what they would have said until then. The first counts.

    CorrectionError for a value that is no such number.
    """
    if value is not None:
        value = checked(value, exclude=False)
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        first = Reveal.objects.filter(session=session, reviewer=reviewer).order_by("pk").first()
        judge = judges_answer(session)
        return first or Reveal.objects.create(session=session, reviewer=reviewer, judge=judge, value=value)
