"""The queue beside the session: what waits, in its order and with the reason, what is kept from this person kept."""

import datetime as dt
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Value
from django.urls import reverse
from django.utils import timezone

from bandit.models import Arm
from grading import review
from grading.models import ReviewItem, SavedView, Session
from grading.models.review import FilteredList, Place, QueueEntry
from grading.review import seen, views
from grading.review.impact import SHRINK, Corrections, Stratum, corrections
from grading.reward.explain import number

LISTED = 100
BY_CHANCE = "random check of the judge"
# From this many answers on, their mean counts more than the expectation before any.
ENOUGH = int(SHRINK)
CHOICES = (
    ("Everything", ""),
    ("Raised by an alarm", "entered_as=rule"),
    ("Random slice", "entered_as=slice"),
    ("For me", "assigned=me"),
    ("For nobody yet", "assigned=nobody"),
)
SAMPLES = ("Samples", "samples=only")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One session that waits. `held_by` names another person who has it now; `hidden`: the reward is not shown. `why`
    it is at its place in the queue; `by_chance` if only by chance.
    """

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
    why: str
    by_chance: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A choice of the select above the queue: `query` is the address' query string."""

    title: str
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    rows: tuple[QueueRow, ...]
    total: int
    options: tuple[tuple[str, tuple[Option, ...]], ...]
    # The reviewer's own saved view that is chosen.
    own_view: SavedView | None

    @property
    def is_named(self) -> bool:
        """Whether what is chosen stands in the select already."""
        return any(option.chosen for _, options in self.options for option in options)

    @property
    def current(self) -> QueueRow | None:
        """The row of the session on the desk, where it is among those listed."""
        return next((row for row in self.rows if row.current), None)

    @property
    def place(self) -> int | None:
        """Where the session on the desk is among those listed, from 1."""
        return next((index for index, row in enumerate(self.rows, 1) if row.current), None)

    @property
    def before(self) -> QueueRow | None:
        """The nearest row before the session on the desk that nobody else has."""
        return next((row for row in reversed(self.rows[: (self.place or 1) - 1]) if not row.held_by), None)

    @property
    def after(self) -> QueueRow | None:
        """The nearest row after it that nobody else has; the first one where the session is not in the list."""
        return next((row for row in self.rows[self.place or 0 :] if not row.held_by), None)

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


def load_rail(reviewer: User, filters: review.QueueFilters, *, current: Session | None, grades: bool) -> Rail:
    """What `reviewer` sees of the queue: at most LISTED rows, in a constant number of queries.

    `grades`: they may grade, so that judges' answers are hidden from them until they have.
    """
    hidden = seen.hidden(reviewer) if grades else Value(value=False)
    items = review.waiting(reviewer, filters).annotate(hidden=hidden)
    queued, past_corrections, rows = review.in_order(reviewer, items, filters, size=LISTED), corrections(), []
    for item, place in queued.items:
        session = item.session
        row = QueueRow(
            session=session,
            value=session.reward_value,
            source=session.reward_source,
            final=bool(session.reward_final),
            url=address(item.session, filters),
            alarm=session.open_flags > 0,
            hidden=vars(item)["hidden"],
            current=current is not None and item.session_id == current.pk,
            held_by=holder(item, reviewer),
            entered_at=item.entered_at,
            why=why(item, place, past_corrections, hidden=vars(item)["hidden"]),
            by_chance=place is Place.CHANCE,
        )
        rows.append(row)
    # What the select offers: arms that have something waiting, and what people saved.
    of_arm = ReviewItem.objects.open().filter(filters.whose.rows(), session__category=OuterRef("pk"))
    arms = Arm.objects.filter(Exists(of_arm)).order_by("name").values_list("name", flat=True)
    saved = views.visible_to(reviewer, FilteredList.REVIEW)
    groups = (
        ("Queue", (*CHOICES, SAMPLES) if filters.samples else CHOICES),
        ("Arm", [(arm, urlencode({"arm": arm})) for arm in arms]),
        ("Your views", [(view.name, view.query) for view in saved if view.owner_id == reviewer.pk]),
        ("Views of others", [(view.name, view.query) for view in saved if view.owner_id != reviewer.pk]),
    )
    options = []
    for title, choices in groups:
        if choices:
            offered = [Option(title=name, query=query, chosen=query == filters.query) for name, query in choices]
            options.append((title, tuple(offered)))
    return Rail(
        rows=tuple(rows),
        total=queued.all,
        options=tuple(options),
        own_view=next((view for view in saved if view.owner_id == reviewer.pk and view.query == filters.query), None),
    )


def why(item: ReviewItem, place: Place | None, past_corrections: Corrections, *, hidden: bool) -> str:
    """Why an item is where it is in the queue, in words, with nothing of the reward where that is `hidden`."""
    if place is Place.CHANCE:
        return BY_CHANCE
    if hidden and item.entered_as in (QueueEntry.RULE, QueueEntry.OUTCOME):
        return item.get_entered_as_display()
    if item.entered_as == QueueEntry.RULE:
        return f"flagged: {item.why}"
    if item.entered_as != QueueEntry.SLICE:
        return item.why
    session = item.session
    stratum = Stratum(session.category_id, session.reward_source, session.open_flags > 0)
    answers = past_corrections.answers(stratum)
    if not answers:
        return "nobody has graded a session like this yet"
    move = f"a grade is expected to change the reward by {number(past_corrections.expected(stratum))}"
    if answers < ENOUGH:
        return f"{move}; few sessions like this have been graded"
    graded = "" if hidden or not session.reward_source else f" graded by {session.reward_source}"
    return f"{move}, like {answers} corrections of sessions{graded} in {session.category or 'no category'}"


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
