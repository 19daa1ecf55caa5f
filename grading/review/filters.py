"""Which items a reviewer sees, and in which order."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Value, When
from django.utils import timezone

from grading.days import start_of_day
from grading.models import Flag, ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, QueueEntry, ReviewItemQuerySet
from grading.models.sessions import reward_columns
from grading.plain import plain_text

ME, NOBODY = "me", "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilters:
    """What a list of items is narrowed to; an empty field narrows nothing.

    `arm` and `agent` are names, `source` decides the reward, `rule` has an open flag, `entered_as` an `QueueEntry`,
    `assigned` a username, "me" or "nobody", `state` an `ItemState`. What does not exist matches nothing.
    """

    arm: str = ""
    source: str = ""
    agent: str = ""
    rule: str = ""
    entered_as: str = ""
    assigned: str = ""
    state: str = str(ItemState.OPEN)

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """From an address' query string; other names in it are left alone."""
        known = {field.name: plain_text(query[field.name], 100) for field in fields(cls) if query.get(field.name)}
        return cls(**known)

    @property
    def query(self) -> str:
        """As a query string, without what is as by default."""
        return urlencode(
            {name: value for name, value in asdict(self).items() if value != getattr(QueueFilters(), name)}
        )

    def __bool__(self) -> bool:
        return bool(self.query)


def waiting(reviewer: User | None, filters: QueueFilters | None = None) -> ReviewItemQuerySet:
    """The items that match, with people and reward columns: what a rule or a person brought first, then the random
    slice, each by impact. `reviewer` is who "me" is.
    """
    filters = filters or QueueFilters()
    items = ReviewItem.objects.with_people().filter(state=filters.state)
    items = items.annotate(**reward_columns("session"))
    named = {
        "session__category__name": filters.arm,
        "session__agent__name": filters.agent,
        "reward_source": filters.source,
        "entered_as": filters.entered_as,
    }
    items = items.filter(**{name: value for name, value in named.items() if value})
    if filters.rule:
        items = items.filter(Exists(Flag.objects.open().filter(session=OuterRef("session"), rule=filters.rule)))
    if filters.assigned == NOBODY:
        items = items.filter(assigned_to=None)
    elif filters.assigned == ME:
        items = items.filter(assigned_to=reviewer)
    elif filters.assigned:
        items = items.filter(assigned_to__username=filters.assigned)
    by_chance = Case(When(entered_as=QueueEntry.SLICE, then=Value(1)), default=Value(0), output_field=IntegerField())
    return items.order_by(by_chance, "-impact", "pk")


def offered_to(reviewer: User, items: ReviewItemQuerySet) -> ReviewItemQuerySet:
    """Those that may be handed to this reviewer: not assigned to another, nor answered by them since the item came, nor
    skipped by them today.
    """
    mine = ReviewAnswer.objects.holding().filter(session=OuterRef("session"), reviewer=reviewer)
    skipped = mine.filter(answer=Answer.SKIP, created_at__gte=start_of_day(timezone.now()))
    answered = mine.exclude(answer=Answer.SKIP).filter(created_at__gte=OuterRef("entered_at"))
    items = items.filter(Q(assigned_to=None) | Q(assigned_to=reviewer))
    return items.exclude(Exists(skipped)).exclude(Exists(answered))


def after_it(item: ReviewItem) -> Q:
    """What comes after an item in the order of `waiting`."""
    later = Q(impact__lt=item.impact) | Q(impact=item.impact, pk__gt=item.pk)
    if item.entered_as == QueueEntry.SLICE:
        return Q(entered_as=QueueEntry.SLICE) & later
    return Q(entered_as=QueueEntry.SLICE) | later
