"""The random slice: which sessions are in it, their random order, and which sessions' turn has come.

Membership (`shares`) and order are keyed draws of a session's name. They never change, and an agent cannot choose them.
An answered session's turn comes once the sessions that were ahead of it in the order, when it was answered, have
answers too. So a session that was answered out of turn, because of its impact, counts as drawn only when its turn
comes. A skipped session delays the figures but does not bias them. The sessions whose turn has come are a random
sample, in whatever order people answered them.

New sessions enter at random places of the order. If more arrive than are answered, those with the lowest ranks are
answered soon after they arrive, and the others are never answered. So every week is sampled alike.
"""

import datetime as dt

from django.db import transaction
from django.db.models import Exists, OuterRef

from grading.models import ReviewAnswer, ReviewItem, Session
from grading.models.review import Answer, ItemState, ReviewItemQuerySet
from grading.models.sessions import yours
from grading.review import shares
from grading.vocabulary import NO_REWARD

# How many turns one call records; the next call goes on.
RECORDED_AT_ONCE = 5000
ORDER = "review order"


def probability(session: Session) -> float | None:
    """The probability with which the session was drawn for the slice; None if it is not in it."""
    return None if session.outcome in NO_REWARD else shares.for_session(session).review_slice


def rank(session: Session) -> float:
    """A session's place in the random order, in [0, 1)."""
    return shares.keyed_number(ORDER, session.agent.name, session.external_id)


def answered() -> Exists:
    """A condition on items: their session has an answer other than a skip."""
    answers = ReviewAnswer.objects.effective().exclude(answer=Answer.SKIP)
    return Exists(answers.filter(session=OuterRef("session")))


def awaited() -> ReviewItemQuerySet:
    """The open items of the slice that nobody has answered yet. The item with the lowest rank is next."""
    return ReviewItem.objects.open().in_slice().filter(yours(), ~answered())


def take_turns(now: dt.datetime) -> int:
    """Set `drawn_at` of the closed items of the slice whose turn has come. Returns how many.

    Items that are being answered now are left to the next call.
    """
    still_ahead = awaited().filter(rank__lt=OuterRef("rank"), entered_at__lte=OuterRef("closed_at"))
    closed = ReviewItem.objects.in_slice().exclude(state=ItemState.OPEN).filter(yours(), drawn_at=None)
    with transaction.atomic():
        unlocked = closed.filter(~Exists(still_ahead)).select_for_update(skip_locked=True, of=("self",))
        ids = list(unlocked.values_list("pk", flat=True)[:RECORDED_AT_ONCE])
        return ReviewItem.objects.filter(pk__in=ids).update(drawn_at=now)
