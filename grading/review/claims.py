"""Claims: an item is one page's for five minutes, by one conditional UPDATE; two pages never hold the same one."""

import datetime as dt
from dataclasses import replace

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from grading.models import ReviewItem
from grading.models.review import ItemState
from grading.review.filters import QueueFilters, after_it, offered_to, waiting

CLAIM = dt.timedelta(minutes=5)
# How many items are tried before the list is read again: as many pages would have to ask in the same moment.
TRIED_AT_ONCE = 20
FREE = {"claim": "", "claimed_until": None, "claimed_by": None}


def next_for(
    reviewer: User, claim: str, filters: QueueFilters | None = None, after: ReviewItem | None = None
) -> ReviewItem | None:
    """Claim the first item that waits for this reviewer and that nobody holds; None where there is none.

    `claim` is a random string that the page keeps. `after`: the item after which to go on; from its end the queue
    starts again.
    """
    items = offered_to(reviewer, waiting(reviewer, replace(filters or QueueFilters(), state=str(ItemState.OPEN))))
    while True:
        free = items.filter(unheld(timezone.now()))
        later = free.filter(after_it(after)) if after else free
        found = list(later.values_list("pk", flat=True)[:TRIED_AT_ONCE])
        for pk in found:
            if take(ReviewItem(pk=pk), reviewer, claim):
                return ReviewItem.objects.with_people().get(pk=pk)
        if not found and after is None:
            return None
        if not found:
            after = None


def take(item: ReviewItem, reviewer: User, claim: str, *, from_own_page: bool = False) -> bool:
    """Claim this item, or renew the claim: one conditional UPDATE. False where another page holds it, or it is closed.

    `from_own_page`: also where the other page is the same reviewer's; nobody can come in between. ValueError for a
    claim without a name.
    """
    if not claim:
        raise ValueError("a claim is a random string that the page keeps; got an empty one")
    now = timezone.now()
    mine = Q(claimed_by=reviewer) if from_own_page else Q(claimed_by=reviewer, claim=claim)
    free = ReviewItem.objects.open().filter(pk=item.pk).filter(unheld(now) | mine)
    return bool(free.update(claim=claim, claimed_by=reviewer, claimed_until=now + CLAIM))


def release(item: ReviewItem, claim: str) -> bool:
    """Give the item back. False where the claim was another's by now."""
    held = ReviewItem.objects.filter(pk=item.pk, claim=claim).exclude(claim="")
    return bool(held.update(**FREE))


def unheld(now: dt.datetime) -> Q:
    """Items that no live claim holds: a claim that ran out returns by itself."""
    return Q(claimed_until=None) | Q(claimed_until__lte=now)
