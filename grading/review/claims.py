"""What is handed out next, and to whom: by one conditional UPDATE an item is one page's for five minutes.

Three of every ten places are the random slice's, one reviewer's as another's: by what they were handed out and answered
before, and have in hand. Who skips a session has not had its place: the next one is of the same kind.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, IntegerField, Q, Value, When, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from grading.models import ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, Place, ReviewItemQuerySet
from grading.review import places, random_slice
from grading.review.filters import BY_IMPACT, QueueFilters, offered_to, waiting

CLAIM = dt.timedelta(minutes=5)
# How many items are tried before the list is read again: as many pages would have to ask in the same moment.
TRIED_AT_ONCE = 20
FREE = {"claim": "", "claimed_until": None, "claimed_by": None, "place": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The first items of a queue with their places, in the order in which they are handed out, and how many there are
    in `all`. The place is None where it is not for this reviewer now: those come last.
    """

    items: tuple[tuple[ReviewItem, Place | None], ...]
    all: int


def in_order(reviewer: User, items: ReviewItemQuerySet, filters: QueueFilters, *, size: int) -> Queued:
    """The first `size` of `items`, as they would be handed to this reviewer one after the other. Two queries.

    What others hold now, or what `offered_to` leaves out, is not theirs to be handed.
    """
    now = timezone.now()
    mine = Q(unheld(now) | Q(claimed_by=reviewer)) & offered_to(reviewer)
    theirs = Case(When(mine, then=0), default=1, output_field=IntegerField())
    held = _placed(items.annotate(theirs=theirs), size, first="theirs")
    found = {item.pk: item for item in held}
    offered = [item for item in held if vars(item)["theirs"] == 0]
    order = _order(offered, _given(reviewer), filters)
    rest = [(item.pk, None) for item in sorted(held, key=_by_impact) if vars(item)["theirs"]]
    listed = tuple((found[pk], place) for pk, place in (*order, *rest))
    return Queued(items=listed[:size], all=vars(held[0])["all"] if held else 0)


def next_for(reviewer: User, claim: str, filters: QueueFilters | None = None) -> ReviewItem | None:
    """Claim the first item that waits for this reviewer and that nobody holds; None where there is none.

    `claim` is a random string that the page keeps.
    """
    filters = replace(filters or QueueFilters(), state=str(ItemState.OPEN))
    items = waiting(reviewer, filters).filter(offered_to(reviewer))
    while True:
        now = timezone.now()
        held = _placed(items.filter(unheld(now)), TRIED_AT_ONCE)
        for pk, place in _order(held, _given(reviewer, now), filters):
            if take(ReviewItem(pk=pk), reviewer, claim, place=place):
                return ReviewItem.objects.with_people().get(pk=pk)
        if not held:
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


def _placed(items: ReviewItemQuerySet, size: int, *, first: str | None = None) -> list[ReviewItem]:
    """The first `size` by impact and by turn, with these numbers (`by_turn` None: not awaited) and of how many."""
    awaited = Q(slice_probability__isnull=False) & ~Q(random_slice.answered())
    untimely = Case(When(awaited, then=0), default=1, output_field=IntegerField())
    leading = [first] if first else []
    numbered = items.annotate(
        untimely=untimely,
        by_impact=Window(RowNumber(), order_by=[*leading, *BY_IMPACT]),
        by_turn=Window(RowNumber(), order_by=[*leading, untimely, "rank", "pk"]),
        all=Window(Count("pk")),
    )
    return list(numbered.filter(Q(by_impact__lte=size) | Q(by_turn__lte=size)).order_by("by_impact"))


def _order(held: Sequence[ReviewItem], given: Sequence[bool], filters: QueueFilters) -> list[tuple[int, Place]]:
    """The items' keys with their places; where the slice itself is asked for, all by chance."""
    turns = sorted((each for each in held if vars(each)["untimely"] == 0), key=lambda each: vars(each)["by_turn"])
    by_turn, by_impact = [each.pk for each in turns], [each.pk for each in sorted(held, key=_by_impact)]
    if filters.is_slice:
        return [(pk, Place.CHANCE) for pk in dict.fromkeys((*by_turn, *by_impact))]
    ordered = places.in_order(by_impact, by_turn, given)
    return [(pk, Place.CHANCE if chance else Place.IMPACT) for pk, chance in ordered]


def _by_impact(item: ReviewItem) -> int:
    return int(vars(item)["by_impact"])


def _given(reviewer: User, now: dt.datetime | None = None) -> list[bool]:
    """Which of the reviewer's last places were by chance: what they answered; from `now` on also what they hold."""
    answers = ReviewAnswer.objects.holding().filter(reviewer=reviewer).exclude(place="").exclude(answer=Answer.SKIP)
    given = list(answers.order_by("-pk").values_list("place", flat=True)[: places.OF - 1])[::-1]
    if now is not None:
        held = ReviewItem.objects.open().filter(claimed_by=reviewer, claimed_until__gt=now).exclude(place="")
        given += held.order_by("claimed_until", "pk").values_list("place", flat=True)
    return [place == Place.CHANCE for place in given]
