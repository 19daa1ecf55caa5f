"""The queue beside the session: what waits, in its sections, with what is kept from this person kept."""

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, Value
from django.urls import reverse
from django.utils import timezone

from bandit.models import Arm
from grading import review
from grading.models import Flag, ReviewItem, Session
from grading.models.review import FilteredList, QueueEntry
from grading.review import seen, views

LISTED = 100
TITLES = {
    QueueEntry.RULE: "Raised by an alarm",
    QueueEntry.EVIDENCE: "New evidence",
    QueueEntry.PERSON: "Put here by people",
    QueueEntry.SLICE: "Random slice",
}


CHOICES = (
    ("Everything", ""),
    ("Raised by an alarm", "entered_as=rule"),
    ("Random slice", "entered_as=slice"),
    ("For me", "assigned=me"),
    ("For nobody yet", "assigned=nobody"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One session that waits. `held_by` names another person who has it now; `hidden` keeps the reward back."""

    session: Session
    value: float | None
    source: str
    final: bool
    url: str
    alarm: bool
    hidden: bool
    current: bool
    held_by: str
    entered_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    count: int
    rows: tuple[QueueRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A choice of the select above the queue: `query` is the address' query string."""

    title: str
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    sections: tuple[Section, ...]
    total: int
    options: tuple[tuple[str, tuple[Option, ...]], ...]

    @property
    def is_named(self) -> bool:
        """Whether what is chosen stands in the select already."""
        return any(option.chosen for _, options in self.options for option in options)

    @property
    def more(self) -> int:
        return self.total - sum(len(section.rows) for section in self.sections)


def of(reviewer: User, filters: review.QueueFilters, *, current: Session | None, grades: bool) -> Rail:
    """What `reviewer` sees of the queue: at most LISTED rows, in a constant number of queries.

    `grades`: they may grade, so that judges' answers are hidden from them until they have.
    """
    waiting = review.waiting(reviewer, filters)
    flags = Flag.objects.open().filter(session=OuterRef("session"))
    hidden = seen.hidden(reviewer) if grades else Value(value=False)
    items = waiting.annotate(flagged=Exists(flags), hidden=hidden)[:LISTED]
    counts = dict(waiting.order_by().values_list("entered_as").annotate(Count("pk")))
    rows: dict[str, list[QueueRow]] = defaultdict(list)
    for item in items:
        told = vars(item)  # with what was annotated
        row = QueueRow(
            session=item.session,
            value=told["reward_value"],
            source=told["reward_source"] or "",
            final=bool(told["reward_final"]),
            url=address(item.session, filters),
            alarm=told["flagged"],
            hidden=told["hidden"],
            current=current is not None and item.session_id == current.pk,
            held_by=holder(item, reviewer),
            entered_at=item.entered_at,
        )
        rows[item.entered_as].append(row)
    sections = (
        Section(title=title, count=counts.get(entry, 0), rows=tuple(rows[entry])) for entry, title in TITLES.items()
    )
    # What the select offers: arms that have something waiting, and what people saved.
    of_arm = ReviewItem.objects.open().filter(session__category=OuterRef("pk"))
    arms = Arm.objects.filter(Exists(of_arm)).order_by("name").values_list("name", flat=True)
    kept = [(view.owner_id == reviewer.pk, view.name, view.query) for view in views.of(reviewer, FilteredList.REVIEW)]
    groups = (
        ("Queue", CHOICES),
        ("Arm", [(arm, urlencode({"arm": arm})) for arm in arms]),
        ("Your views", [(name, query) for mine, name, query in kept if mine]),
        ("Views of others", [(name, query) for mine, name, query in kept if not mine]),
    )
    options = []
    for title, choices in groups:
        if choices:
            offered = [Option(title=name, query=query, chosen=query == filters.query) for name, query in choices]
            options.append((title, tuple(offered)))
    return Rail(
        sections=tuple(section for section in sections if section.count),
        total=sum(counts.values()),
        options=tuple(options),
    )


def address(session: Session, filters: review.QueueFilters, **more: str | int) -> str:
    """Where the session's desk is, with the queue's filters kept."""
    query = "&".join(part for part in (filters.query, urlencode(more)) if part)
    return reverse("admin:review_session", args=[session.pk]) + (f"?{query}" if query else "")


def holder(item: ReviewItem | None, reviewer: User) -> str:
    """Who else has the item now; empty where nobody else has."""
    live = item is not None and item.claimed_until is not None and item.claimed_until > timezone.now()
    if not live or item is None or item.claimed_by is None or item.claimed_by == reviewer:
        return ""
    return item.claimed_by.get_username()
