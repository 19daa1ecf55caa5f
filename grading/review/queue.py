"""The queue of sessions that wait for a person: how they enter, who has which, and how they leave."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Min, Q
from django.utils import timezone

from grading.models import Comment, Flag, ReviewAnswer, ReviewItem, Session
from grading.models.review import Answer, ItemState, QueueEntry
from grading.models.sessions import Whose
from grading.monitoring.flags import DISMISSED, clear_flags
from grading.monitoring.watch import inspect_session
from grading.review import random_slice, records
from grading.review.claims import FREE
from grading.review.effects import changes_as_json, measure
from grading.review.impact import first_guess
from grading.review.seen import is_outdated, persons_grade
from grading.vocabulary import NO_REWARD

NEW_EVIDENCE = "new evidence arrived after your grade"
# Items that leave the queue when their reason is gone. Those added by a person or for new evidence wait for a person.
PASSING = (QueueEntry.RULE, QueueEntry.SLICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many items are `open`: `rule` of them for a reason (a rule, a person, new evidence), `slice` by chance alone.

    `blind` counts all items of the random slice, whether there is a reason or not. `oldest` is when the oldest item
    entered the queue.
    """

    open: int
    rule: int
    slice: int
    blind: int
    oldest: dt.datetime | None


def recheck(session: Session, *, alarms: bool = True) -> bool:
    """Check a freshly settled session against the rules and update its review item, in the caller's transaction.

    Returns whether a flag was raised or cleared. `alarms`: also update the alarms.
    """
    flags_changed = inspect_session(session, alarms=alarms)
    # Prefetched flags would be outdated.
    sync_item(Session.objects.get(pk=session.pk) if flags_changed else session)
    return flags_changed


def sync_item(session: Session) -> None:
    """Update the queue item of a session, which the caller has locked.

    A dismissed item stays dismissed. A session that a person graded is queued again only for evidence that arrived
    afterwards. Any other session is queued while there is a reason.
    """
    item = ReviewItem.objects.select_for_update(of=("self",)).filter(session=session).first()
    grade = persons_grade(session)
    if item is not None and item.state == ItemState.DISMISSED:
        return
    if grade is not None:
        if (item is None or item.state == ItemState.DONE) and is_outdated(grade):
            _enter(session, item, QueueEntry.EVIDENCE, NEW_EVIDENCE)
        return
    reason = _reason(session, item)
    if item is not None and item.state == ItemState.OPEN:
        rows = ReviewItem.objects.filter(pk=item.pk)
        if item.entered_as not in PASSING:
            return
        if reason is None:
            rows.update(**_state_columns(ItemState.DONE))
        elif reason != (item.entered_as, item.why):
            entry, why = reason
            rows.update(entered_as=entry, why=why)
    elif reason is not None:
        entry, why = reason
        _enter(session, item, entry, why)


def add(session: Session, by: User, why: str) -> ReviewItem:
    """Put a session into the queue on a person's request, whatever the state of its item."""
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        return enter(session, QueueEntry.PERSON, by_a_person(by, why))


def enter(session: Session, entry: QueueEntry, why: str) -> ReviewItem:
    """Put a session into the queue for this reason. The caller has locked the session."""
    item = ReviewItem.objects.select_for_update(of=("self",)).filter(session=session).first()
    return _enter(session, item, entry, why)


def leave(item: ReviewItem, state: ItemState) -> None:
    """Take an open item off the queue without an answer."""
    ReviewItem.objects.open().filter(pk=item.pk).update(**_state_columns(state))


def by_a_person(by: User | None, why: str) -> str:
    """The `why` of an item that a person added."""
    return f"{by.get_username() if by else 'somebody'}: {why.strip()}"


def assign(item: ReviewItem, to: User | None, by: User) -> None:
    """Assign an item to a person, or to nobody (None). A comment on the session says who did so."""
    with transaction.atomic():
        ReviewItem.objects.filter(pk=item.pk).update(assigned_to=to)
        text = f"Assigned to {to.get_username()}" if to else "Not assigned"
        Comment.objects.create(session_id=item.session_id, author=by, text=text)


def require_answers(item: ReviewItem, people: int) -> None:
    """Require the answers of this many people; the item stays open until it has them.

    Raises ValueError if `people` is less than 1.
    """
    if people < 1:
        raise ValueError(f"an item waits for one person at least; got {people}")
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=item.session_id)
        item.wanted = people
        ReviewItem.objects.filter(pk=item.pk).update(wanted=people, **_state_columns(state_of(item)))


def take_off(session: Session, by: User, **columns: Any) -> ReviewAnswer:
    """Dismiss a session that the caller has locked. Returns the answer, with everything that it changed.

    The session's flags are cleared, which changes the stratum of its reward.
    """
    before = measure(session)
    context = records.seen_now(session, before.reward, by)
    close(session, ItemState.DISMISSED, by)
    effects = changes_as_json(before, measure(session, before))
    return records.append(session, by, Answer.CANNOT_JUDGE, context=context, effects=effects, **columns)


def close(session: Session, state: ItemState, by: User) -> None:
    """Close the session's item. A dismissal also clears the session's flags, and creates the item if there is none."""
    if state == ItemState.DISMISSED:
        clear_flags(session, by=by, why=DISMISSED)
        columns = {
            "entered_as": QueueEntry.PERSON,
            "slice_probability": random_slice.probability(session),
            "rank": random_slice.rank(session),
        }
        ReviewItem.objects.get_or_create(session=session, defaults=columns)
    ReviewItem.objects.filter(session=session).update(**_state_columns(state))


def state_of(item: ReviewItem) -> ItemState:
    """The state that follows from an item's answers: open while some are missing, dismissed if nobody could judge it,
    else done.

    Of each person, the latest answer counts that was given since the item entered the queue and was not undone.
    """
    answers = ReviewAnswer.objects.effective().filter(session=item.session_id, created_at__gte=item.entered_at)
    by_reviewer = dict(answers.exclude(answer=Answer.SKIP).order_by("pk").values_list("reviewer", "answer"))
    if len(by_reviewer) < item.wanted:
        return ItemState.OPEN
    return ItemState.DISMISSED if set(by_reviewer.values()) == {Answer.CANNOT_JUDGE} else ItemState.DONE


def count(whose: Whose = Whose.YOURS) -> Counts:
    """The counts of open items."""
    items = ReviewItem.objects.open().filter(whose.rows())
    sums = items.aggregate(
        open=Count("pk"),
        slice=Count("pk", filter=Q(entered_as=QueueEntry.SLICE)),
        blind=Count("slice_probability"),  # NULL outside of the slice, and not counted
        oldest=Min("entered_at"),
    )
    return Counts(rule=sums["open"] - sums["slice"], **sums)


def _reason(session: Session, item: ReviewItem | None) -> tuple[QueueEntry, str] | None:
    """Why a session should be in the queue: the kind of reason and its text; None if it should not be there.

    An item that is in the random slice stays in it.
    """
    open_flags = sorted((flag for flag in session.flags.all() if flag.cleared_at is None), key=lambda flag: flag.pk)
    flags = {flag.rule: flag.detail for flag in open_flags}
    if Flag.BY_A_PERSON in flags:
        return QueueEntry.PERSON, flags[Flag.BY_A_PERSON]
    if session.outcome in NO_REWARD:
        return None
    if flags:
        return QueueEntry.RULE, "; ".join(flags.values())
    drawn_before = item is not None and item.slice_probability is not None
    is_in_slice = drawn_before or random_slice.probability(session) is not None
    return (QueueEntry.SLICE, "") if is_in_slice else None


def _enter(session: Session, item: ReviewItem | None, entry: QueueEntry, why: str) -> ReviewItem:
    """Create an open item for a session, or reopen its `item`."""
    now = timezone.now()
    item = item or ReviewItem(session=session, rank=random_slice.rank(session))
    was_waiting = item.state == ItemState.OPEN and item.pk is not None
    if not was_waiting:
        item.impact = first_guess(session)
        item.entered_at = now
    if item.slice_probability is None:
        item.slice_probability = random_slice.probability(session)
    item.state = ItemState.OPEN
    item.closed_at = None
    item.entered_as = entry
    item.why = why
    item.save()
    return item


def _state_columns(state: ItemState) -> dict[str, Any]:
    """The columns to update when an item enters a state. A closed item has a closing time and no claim."""
    if state == ItemState.OPEN:
        return {"state": state, "closed_at": None}
    return {"state": state, "closed_at": timezone.now(), **FREE}
