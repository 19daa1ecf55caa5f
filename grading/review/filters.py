"""Which items a reviewer sees, and in which order."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, When
from django.utils import timezone

from grading.days import start_of_day
from grading.models import Flag, ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, QueueEntry, ReviewItemQuerySet
from grading.models.sessions import Whose
from grading.plain import plain_text

ME, NOBODY = "me", "nobody"
# First the items that a rule or a person added; among these and the others, by the expected correction of the reward.
BY_IMPACT = (
    Case(When(entered_as=QueueEntry.SLICE, then=1), default=0, output_field=IntegerField()),
    "-impact",
    "pk",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilters:
    """The filters of a list of items. An empty field does not filter.

    `arm` and `agent` are names. `source` is the source of the reward. `rule` is the rule of an open flag. `entered_as`
    is a `QueueEntry`; SLICE also matches the slice's items that a rule or a person added. `assigned` is a username,
    "me" or "nobody". `state` is an `ItemState`. `samples` is "only" to list the items of samples instead of all other
    items. A value that does not exist matches nothing.
    """

    arm: str = ""
    source: str = ""
    agent: str = ""
    rule: str = ""
    entered_as: str = ""
    assigned: str = ""
    samples: str = ""
    state: str = str(ItemState.OPEN)

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """The filters in a query string. Its other parameters are ignored."""
        values = {field.name: plain_text(query[field.name], 100) for field in fields(cls) if query.get(field.name)}
        return cls(**values)

    @property
    def query(self) -> str:
        """The filters as a query string, without the defaults."""
        return urlencode(
            {name: value for name, value in asdict(self).items() if value != getattr(QueueFilters(), name)}
        )

    @property
    def whose(self) -> Whose:
        return Whose.SAMPLES if self.samples else Whose.YOURS

    @property
    def is_slice(self) -> bool:
        """Whether the list is the random slice itself. All its items are handed out in random order."""
        return self.entered_as == QueueEntry.SLICE

    def __bool__(self) -> bool:
        return bool(self.query)


def waiting(reviewer: User | None, filters: QueueFilters | None = None) -> ReviewItemQuerySet:
    """The items that match, with session and people, in the order BY_IMPACT. The filters' "me" means `reviewer`."""
    filters = filters or QueueFilters()
    items = ReviewItem.objects.with_people().filter(filters.whose.rows(), state=filters.state)
    named = {
        "session__category__name": filters.arm,
        "session__agent__name": filters.agent,
        "session__reward_source": filters.source,
    }
    items = items.filter(**{name: value for name, value in named.items() if value})
    if filters.is_slice:
        items = items.in_slice()
    elif filters.entered_as:
        items = items.filter(entered_as=filters.entered_as)
    if filters.rule:
        items = items.filter(Exists(Flag.objects.open().filter(session=OuterRef("session"), rule=filters.rule)))
    if filters.assigned == NOBODY:
        items = items.filter(assigned_to=None)
    elif filters.assigned == ME:
        items = items.filter(assigned_to=reviewer)
    elif filters.assigned:
        items = items.filter(assigned_to__username=filters.assigned)
    return items.order_by(*BY_IMPACT)


def offered_to(reviewer: User, midnight: dt.datetime | None = None) -> Q:
    """A condition on items: they may be handed to this reviewer.

    An item may be if it is not assigned to another person, the reviewer has not answered it since it entered the queue,
    and has not skipped it since `midnight` (by default today's).
    """
    answers = ReviewAnswer.objects.effective().filter(session=OuterRef("session"), reviewer=reviewer)
    skipped = answers.filter(answer=Answer.SKIP, created_at__gte=midnight or start_of_day(timezone.now()))
    answered = answers.exclude(answer=Answer.SKIP).filter(created_at__gte=OuterRef("entered_at"))
    not_others = Q(assigned_to=None) | Q(assigned_to=reviewer)
    return not_others & ~Q(Exists(skipped)) & ~Q(Exists(answered))
