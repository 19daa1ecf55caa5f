"""What is handed out next, and to whom: by one conditional UPDATE an item is one page's for five minutes.

Three of every ten places are the random slice's, one reviewer's as another's: by what they were handed out and answered
before, and have in hand. Who skips a session has not had its place: the next one is of the same kind.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, IntegerField, Q, Value, When, Window
from django.utils import timezone

from bandit.prepared import Prepared
from grading.days import start_of_day
from grading.models import ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, Place, ReviewItemQuerySet
from grading.models.sessions import yours
from grading.review import places, random_slice
from grading.review.filters import BY_IMPACT, QueueFilters, offered_to, waiting

CLAIM = dt.timedelta(minutes=5)
# How many items are tried before the list is read again: as many pages would have to ask in the same moment.
TRIED_AT_ONCE = 20
# The filters whose queries a process keeps.
FILTERS = 32
# The slice's items that nobody answered yet, and their random order.
AWAITED = Q(slice_probability__isnull=False) & ~Q(random_slice.answered())
BY_TURN = ("rank", "pk")
FREE = {"claim": "", "claimed_until": None, "claimed_by": None, "place": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The first items of a queue with their places, in the order in which they are handed out, and how many there are
    in `all`. The place is None where it is not for this reviewer now: those come last.
    """

    items: tuple[tuple[ReviewItem, Place | None], ...]
    all: int


def in_order(reviewer: User, items: ReviewItemQuerySet, filters: QueueFilters, *, size: int) -> Queued:
    """The first `size` of `items`, those that wait by these filters, as they would be handed to this reviewer one after
    the other. Four queries.

    What others hold now, or what `offered_to` leaves out, is not theirs to be handed.
    """
    now = timezone.now()
    asked = reviewer.pk, now, start_of_day(now)
    by_impact, by_turn = _first(filters, size)
    held = by_impact.rows(*asked)
    offered = [pk for pk, is_theirs, _all in held if not is_theirs]
    turns = [pk for (pk,) in by_turn.rows(*asked)] if offered else []
    order: list[tuple[int, Place | None]] = [*_order(offered, turns, _given(reviewer), filters)]
    order += [(pk, None) for pk, is_theirs, _all in held if is_theirs]
    found = {item.pk: item for item in items.filter(pk__in=[pk for pk, _ in order[:size]])}
    listed = tuple((found[pk], place) for pk, place in order[:size] if pk in found)
    return Queued(items=listed, all=held[0][2] if held else 0)


@lru_cache(maxsize=FILTERS)
def _first(filters: QueueFilters, size: int) -> tuple[Prepared[tuple[int, int, int]], Prepared[tuple[int]]]:
    """Of a reviewer, at a moment of the day since that midnight: the first items, with 1 for those that are not theirs
    now, and how many there are in all; and the first of the slice that are.
    """

    def mine(reviewer: int, now: dt.datetime, midnight: dt.datetime) -> Q:
        return Q(unheld(now) | Q(claimed_by=reviewer)) & offered_to(User(pk=reviewer), midnight)

    def by_impact(reviewer: int, *since: dt.datetime) -> Any:
        theirs = Case(When(mine(reviewer, *since), then=0), default=1, output_field=IntegerField())
        told = waiting(User(pk=reviewer), filters).annotate(theirs=theirs, all=Window(Count("pk")))
        return told.order_by("theirs", *BY_IMPACT).values_list("pk", "theirs", "all")[:size]

    def by_turn(reviewer: int, *since: dt.datetime) -> Any:
        turns = waiting(User(pk=reviewer), filters).filter(mine(reviewer, *since), AWAITED)
        return turns.order_by(*BY_TURN).values_list("pk")[:size]

    kinds = int, dt.datetime, dt.datetime
    return Prepared(by_impact, *kinds), Prepared(by_turn, *kinds)


def next_for(reviewer: User, claim: str, filters: QueueFilters | None = None) -> ReviewItem | None:
    """Claim the first item that waits for this reviewer and that nobody holds; None where there is none.

    `claim` is a random string that the page keeps.
    """
    filters = replace(filters or QueueFilters(), state=str(ItemState.OPEN))
    items = waiting(reviewer, filters).filter(offered_to(reviewer))
    while True:
        now = timezone.now()
        free = items.filter(unheld(now)).values_list("pk", flat=True)
        by_impact, turns = free[:TRIED_AT_ONCE], free.filter(AWAITED).order_by(*BY_TURN)[:TRIED_AT_ONCE]
        order = _order(list(by_impact), list(turns), _given(reviewer, now), filters)
        for pk, place in order:
            if take(ReviewItem(pk=pk), reviewer, claim, place=place):
                return ReviewItem.objects.with_people().get(pk=pk)
        if not order:
            return None


def take(
    item: ReviewItem,
    reviewer: User,
    claim: str,
    *,
    from_own_page: bool = False,
    place: Place | None = None,
    now: dt.datetime | None = None,
) -> bool:
    """Claim this item, or renew the claim: one conditional UPDATE. False where another page holds it, or it is closed.

    `from_own_page`: also where the other page is the same reviewer's; nobody can come in between. `place` is the
    queue's; without one, it stays what it was for this reviewer. ValueError for a claim without a name.
    """
    if not claim:
        raise ValueError("a claim is a random string that the page keeps; got an empty one")
    now = now or timezone.now()
    mine = Q(claimed_by=reviewer) if from_own_page else Q(claimed_by=reviewer, claim=claim)
    free = ReviewItem.objects.open().filter(pk=item.pk).filter(unheld(now) | mine)
    kept = Case(When(claimed_by=reviewer, then=F("place")), default=Value(""))
    return bool(free.update(claim=claim, claimed_by=reviewer, claimed_until=now + CLAIM, place=place or kept))


def release(item: ReviewItem, claim: str) -> bool:
    """Give the item back. False where the claim was another's by now."""
    held = ReviewItem.objects.filter(pk=item.pk, claim=claim).exclude(claim="")
    return bool(held.update(**FREE))


def unheld(now: dt.datetime) -> Q:
    """Items that no live claim holds: a claim that ran out returns by itself."""
    return Q(claimed_until=None) | Q(claimed_until__lte=now)


def _order(
    by_impact: Sequence[int], turns: Sequence[int], given: Sequence[bool], filters: QueueFilters
) -> list[tuple[int, Place]]:
    """The items' keys with their places; where the slice itself is asked for, all by chance."""
    if filters.is_slice:
        return [(pk, Place.CHANCE) for pk in dict.fromkeys((*turns, *by_impact))]
    ordered = places.in_order(by_impact, turns, given)
    return [(pk, Place.CHANCE if chance else Place.IMPACT) for pk, chance in ordered]


def _given(reviewer: User, now: dt.datetime | None = None) -> list[bool]:
    """Which of the reviewer's last places were by chance: what they answered; from `now` on also what they hold."""
    given = [place for (place,) in _PLACES.rows(reviewer.pk)][::-1]
    if now is not None:
        held = ReviewItem.objects.open().filter(yours(), claimed_by=reviewer, claimed_until__gt=now).exclude(place="")
        given += held.order_by("claimed_until", "pk").values_list("place", flat=True)
    return [place == Place.CHANCE for place in given]


def _places(reviewer: int) -> Any:
    answers = ReviewAnswer.objects.holding().filter(yours(), reviewer=reviewer).exclude(place="")
    return answers.exclude(answer=Answer.SKIP).order_by("-pk").values_list("place")[: places.OF - 1]


_PLACES: Prepared[tuple[str]] = Prepared(_places, int)
