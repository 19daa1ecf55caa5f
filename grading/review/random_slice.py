"""The random slice: which sessions are in it, in which order it is asked about, and whose turn has come.

Membership (`shares`) and order are keyed draws of a session's name: the same whenever one asks, and nothing that
whoever is graded could choose. A session's turn has come once all that stood before it in that order when it was
answered have an answer too. So one that was answered earlier, for its impact, counts as drawn when its turn comes and
not before; and who skips a session holds up the figure instead of bending it. The sessions whose turn has come are a
random sample of all, in whatever order people answered them.

New sessions come in at random places of the order. Where more come in than are answered, those with the lowest ranks
are asked about soon after they came, and the rest wait for ever: each week is sampled alike.
"""

import datetime as dt

from django.db import transaction
from django.db.models import Exists, OuterRef

from grading.models import ReviewAnswer, ReviewItem, Session
from grading.models.review import Answer, ItemState, ReviewItemQuerySet
from grading.models.sessions import yours
from grading.review import shares
from grading.vocabulary import NO_REWARD

# How many turns are noted at once; the rest is left to the next time.
NOTED_AT_ONCE = 5000
ORDER = "review order"


def probability(session: Session) -> float | None:
    """The chance with which a session is in the slice, where it is; None where it is not."""
    return None if session.outcome in NO_REWARD else shares.for_session(session).review_slice


def rank(session: Session) -> float:
    """A session's place in the random order, in [0, 1)."""
    return shares.number(ORDER, session.agent.name, session.external_id)


def answered() -> Exists:
    """Whether somebody has answered an item's session, as a condition in a query. A skip is no answer."""
    answers = ReviewAnswer.objects.effective().exclude(answer=Answer.SKIP)
    return Exists(answers.filter(session=OuterRef("session")))


def awaited() -> ReviewItemQuerySet:
    """The open items of the slice that nobody has answered yet: the next in the random order is the lowest of them."""
    return ReviewItem.objects.open().in_slice().filter(yours(), ~answered())


def take_turns(now: dt.datetime) -> int:
    """Note of each closed item of the slice whose turn has come that it has; how many. What is being answered just now
    is left to the next time.
    """
    before = awaited().filter(rank__lt=OuterRef("rank"), entered_at__lte=OuterRef("closed_at"))
    closed = ReviewItem.objects.in_slice().exclude(state=ItemState.OPEN).filter(yours(), drawn_at=None)
    with transaction.atomic():
        free = closed.filter(~Exists(before)).select_for_update(skip_locked=True, of=("self",))
        ids = list(free.values_list("pk", flat=True)[:NOTED_AT_ONCE])
        return ReviewItem.objects.filter(pk__in=ids).update(drawn_at=now)
