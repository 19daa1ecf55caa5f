"""Hands out the items of the queue. A page claims an item for five minutes by one conditional UPDATE.

Three of every ten places go to the random slice. The places are counted for each reviewer: those that they answered and
those that they have claimed. A skipped item does not count: the next item takes its place.

Of a day's first 60 places by impact, at most 20 go to one agent's sessions while other agents have any, whatever their
impact. Otherwise an agent that uploads many sessions that look wrong would take all of the reviewers' time.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Value, When, Window
from django.db.models.functions import Greatest, RowNumber
from django.utils import timezone

from grading.days import start_of_day
from grading.models import ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, Place, ReviewItemQuerySet
from grading.models.sessions import yours
from grading.review import places, random_slice
from grading.review.filters import BY_IMPACT, QueueFilters, offered_to, waiting

CLAIM = dt.timedelta(minutes=5)
# How many items a page tries to claim before it reads the list again. Other pages may claim them meanwhile.
TRIED_AT_ONCE = 20
# The items of the slice that nobody has answered yet, and their random order.
AWAITED = Q(slice_probability__isnull=False) & ~Q(random_slice.answered())
BY_TURN = ("rank", "pk")
# Of this many first places of a day by impact, at most this many go to one agent while other agents have sessions.
FIRST_PLACES, MAX_OF_AN_AGENT = 60, 20
# The columns of an item without a claim.
FREE = {"claim": "", "claimed_until": None, "claimed_by": None, "place": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedItems:
    """The first items of a queue with their places, in the order in which they are handed out.

    Items that this reviewer cannot get now come last, and their place is None. `all` is the length of the whole queue.
    """

    items: tuple[tuple[ReviewItem, Place | None], ...]
    all: int


def in_order(reviewer: User, items: ReviewItemQuerySet, filters: QueueFilters, *, size: int) -> QueuedItems:
    """The first `size` items that match the filters, in the order in which this reviewer would get them. Five queries.

    The rows are loaded from `items`. Items that others have claimed, or that are not `offered_to` the reviewer, come
    last.
    """
    now = timezone.now()
    queue = waiting(reviewer, filters)
    may_claim = Q(unclaimed(now) | Q(claimed_by=reviewer)) & offered_to(reviewer, start_of_day(now))
    is_others = Case(When(may_claim, then=0), default=1, output_field=IntegerField())
    by_impact = _by_impact(queue.annotate(is_others=is_others, all=Window(Count("pk"))), now, "is_others")
    rows = list(by_impact.values_list("pk", "is_others", "all")[:size])
    offered = [pk for pk, is_others, _all in rows if not is_others]
    by_turn: list[int] = []
    if offered:
        by_turn = list(queue.filter(may_claim, AWAITED).order_by(*BY_TURN).values_list("pk", flat=True)[:size])
    placed: list[tuple[int, Place | None]] = [*_assign_places(offered, by_turn, _last_places(reviewer), filters)]
    placed += [(pk, None) for pk, is_others, _all in rows if is_others]
    placed = placed[:size]
    items_by_pk = {item.pk: item for item in items.filter(pk__in=[pk for pk, _place in placed])}
    listed = tuple((items_by_pk[pk], place) for pk, place in placed if pk in items_by_pk)
    length = rows[0][2] if rows else 0
    return QueuedItems(items=listed, all=length)


def next_for(reviewer: User, claim: str, filters: QueueFilters | None = None) -> ReviewItem | None:
    """Claim the next item for this reviewer; None if there is none. `claim` is a random string that names the page."""
    filters = replace(filters or QueueFilters(), state=str(ItemState.OPEN))
    items = waiting(reviewer, filters).filter(offered_to(reviewer))
    while True:
        now = timezone.now()
        free = items.filter(unclaimed(now))
        by_impact = _by_impact(free, now).values_list("pk", flat=True)[:TRIED_AT_ONCE]
        by_turn = free.filter(AWAITED).order_by(*BY_TURN).values_list("pk", flat=True)[:TRIED_AT_ONCE]
        candidates = _assign_places(list(by_impact), list(by_turn), _last_places(reviewer, now), filters)
        for pk, place in candidates:
            if take(ReviewItem(pk=pk), reviewer, claim, place=place):
                return ReviewItem.objects.with_people().get(pk=pk)
        if not candidates:
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
    """Claim this item, or renew the claim, by one conditional UPDATE.

    Returns False if the item is closed, or another page has claimed it. With `from_own_page`, a claim of another page
    of the same reviewer is taken over. Without a `place`, an item that this reviewer had claimed keeps its place.
    Raises ValueError if `claim` is empty.
    """
    if not claim:
        raise ValueError("a claim is a random string that the page keeps; got an empty one")
    now = now or timezone.now()
    mine = Q(claimed_by=reviewer) if from_own_page else Q(claimed_by=reviewer, claim=claim)
    free = ReviewItem.objects.open().filter(pk=item.pk).filter(unclaimed(now) | mine)
    earlier_place = Case(When(claimed_by=reviewer, then=F("place")), default=Value(""))
    return bool(free.update(claim=claim, claimed_by=reviewer, claimed_until=now + CLAIM, place=place or earlier_place))


def release(item: ReviewItem, claim: str) -> bool:
    """Give the item back. Returns False if this page does not have the claim any more."""
    claimed = ReviewItem.objects.filter(pk=item.pk, claim=claim).exclude(claim="")
    return bool(claimed.update(**FREE))


def unclaimed(now: dt.datetime) -> Q:
    """A condition on items: they have no claim, or their claim has expired."""
    return Q(claimed_until=None) | Q(claimed_until__lte=now)


def _by_impact(items: QuerySet[ReviewItem], now: dt.datetime, *first: str) -> QuerySet[Any]:
    """Order items by the annotations `first`, then by impact, with the day's first places divided among the agents."""
    today = ReviewAnswer.objects.effective().filter(yours(), place=Place.IMPACT, created_at__gte=start_of_day(now))
    counts = today.exclude(answer=Answer.SKIP).order_by().values_list("session__agent").annotate(Count("pk"))
    answers_by_agent = dict(counts)
    if sum(answers_by_agent.values()) >= FIRST_PLACES:
        return items.order_by(*first, *BY_IMPACT)
    # The number of each item among its agent's items, counted on from the agent's answers of today.
    of_agent = Window(RowNumber(), partition_by=[*first, "session__agent"], order_by=BY_IMPACT)
    answers_today = [When(session__agent=agent, then=count) for agent, count in answers_by_agent.items()]
    place = F("of_agent") + Case(*answers_today, default=0, output_field=IntegerField())
    slice_last, *by_impact = BY_IMPACT
    # An agent's first MAX_OF_AN_AGENT items of the day have the same place, so that impact orders them. Its other items
    # come later.
    numbered = items.annotate(of_agent=of_agent).annotate(agent_place=Greatest(place, MAX_OF_AN_AGENT))
    return numbered.order_by(*first, slice_last, "agent_place", *by_impact)


def _assign_places(
    by_impact: Sequence[int], by_turn: Sequence[int], last_places: Sequence[bool], filters: QueueFilters
) -> list[tuple[int, Place]]:
    """The items' keys and places, in the order in which they are handed out.

    If the list is the random slice itself, all places are by chance. `last_places` is as in `_last_places`.
    """
    if filters.is_slice:
        return [(pk, Place.CHANCE) for pk in dict.fromkeys((*by_turn, *by_impact))]
    ordered = places.in_order(by_impact, by_turn, last_places)
    return [(pk, Place.CHANCE if is_by_chance else Place.IMPACT) for pk, is_by_chance in ordered]


def _last_places(reviewer: User, now: dt.datetime | None = None) -> list[bool]:
    """Whether each of the reviewer's last places was by chance, the oldest first.

    These are the places of the sessions that they answered and, if `now` is given, of those that they have claimed.
    """
    answers = ReviewAnswer.objects.effective().filter(yours(), reviewer=reviewer).exclude(place="")
    answers = answers.exclude(answer=Answer.SKIP).order_by("-pk")
    last_places = list(answers.values_list("place", flat=True)[: places.PERIOD - 1])[::-1]
    if now is not None:
        claimed = ReviewItem.objects.open().filter(yours(), claimed_by=reviewer, claimed_until__gt=now)
        last_places += claimed.exclude(place="").order_by("claimed_until", "pk").values_list("place", flat=True)
    return [place == Place.CHANCE for place in last_places]
