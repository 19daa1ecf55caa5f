"""The queue beside the session: the open items in their order, with the reason for each; hides what is to be graded
blind.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Value
from django.urls import reverse
from django.utils import timezone

from bandit.models import Arm
from grading.models import ReviewItem, SavedView, Session
from grading.models.review import FilteredList, Place, QueueEntry
from grading.review import claims, seen, views
from grading.review.filters import QueueFilters, waiting
from grading.review.impact import SHRINK, Corrections, Stratum, corrections
from grading.reward.explain import number

LISTED = 100
BY_CHANCE = "random check of the judge"
# From this many answers on, their mean counts more than the expectation before any.
ENOUGH = int(SHRINK)
CHOICES = (
    ("Everything", ""),
    ("Raised by an alarm", "entered_as=rule"),
    ("Random check", "entered_as=slice"),
    ("For me", "assigned=me"),
    ("For nobody yet", "assigned=nobody"),
)
SAMPLES = ("Samples", "samples=only")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A session in the queue. `held_by` names another person who has claimed it; `hidden`: the reward is not shown.
    `why` explains its place in the queue; `by_chance`: it was drawn at random; `raised`: a rule or a person added it.
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
    raised: bool


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
        """Whether the current filters are one of the options."""
        return any(option.chosen for _, options in self.options for option in options)

    @property
    def groups(self) -> list[tuple[str, list[QueueRow]]]:
        """The rows under the headings by which they are listed, each group in the order of the queue."""
        by_chance = [row for row in self.rows if row.by_chance]
        raised = [row for row in self.rows if row.raised and not row.by_chance]
        others = [row for row in self.rows if not row.raised and not row.by_chance]
        groups = [
            ("Flagged or put here", raised),
            ("Expected to change most", others),
            ("Random check of the judge", by_chance),
        ]
        return [(title, rows) for title, rows in groups if rows]

    @property
    def current(self) -> QueueRow | None:
        """The row of the session on the desk; None if it is not listed."""
        return next((row for row in self.rows if row.current), None)

    @property
    def place(self) -> int | None:
        """The place of the session on the desk among the rows, from 1; None if it is not listed."""
        return next((index for index, row in enumerate(self.rows, 1) if row.current), None)

    @property
    def before(self) -> QueueRow | None:
        """The nearest row before the session on the desk that nobody else has claimed."""
        return next((row for row in reversed(self.rows[: (self.place or 1) - 1]) if not row.held_by), None)

    @property
    def after(self) -> QueueRow | None:
        """The nearest row after the session on the desk that nobody else has claimed; the first if it is not listed."""
        return next((row for row in self.rows[self.place or 0 :] if not row.held_by), None)

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


def load_rail(reviewer: User, filters: QueueFilters, *, current: Session | None, may_grade: bool) -> Rail:
    """The queue for `reviewer`: at most LISTED rows, in a constant number of queries.

    `may_grade`: they may grade, so that verdicts are hidden from them until they have graded.
    """
    hidden = seen.judge_hidden_from(reviewer) if may_grade else Value(value=False)
    items = waiting(reviewer, filters).annotate(hidden=hidden)
    queued = claims.in_order(reviewer, items, filters, size=LISTED)
    past_corrections = corrections()
    rows = []
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
            raised=session.open_flags > 0 or item.entered_as != QueueEntry.SLICE,
        )
        rows.append(row)
    saved_views = views.visible_to(reviewer, FilteredList.REVIEW)
    own_views = [view for view in saved_views if view.owner_id == reviewer.pk]
    return Rail(
        rows=tuple(rows),
        total=queued.all,
        options=_options(filters, own_views, [view for view in saved_views if view.owner_id != reviewer.pk]),
        own_view=next((view for view in own_views if view.query == filters.query), None),
    )


def _options(
    filters: QueueFilters, own_views: Sequence[SavedView], other_views: Sequence[SavedView]
) -> tuple[tuple[str, tuple[Option, ...]], ...]:
    """The groups of the select above the queue, each with its title: arms with open items, and saved views."""
    open_items = ReviewItem.objects.open().filter(filters.whose.rows(), session__category=OuterRef("pk"))
    arms = Arm.objects.filter(Exists(open_items)).order_by("name").values_list("name", flat=True)
    groups = (
        ("Queue", (*CHOICES, SAMPLES) if filters.samples else CHOICES),
        ("Arm", [(arm, urlencode({"arm": arm})) for arm in arms]),
        ("Your views", [(view.name, view.query) for view in own_views]),
        ("Views of others", [(view.name, view.query) for view in other_views]),
    )
    option_groups = []
    for title, choices in groups:
        options = tuple(Option(title=name, query=query, chosen=query == filters.query) for name, query in choices)
        if options:
            option_groups.append((title, options))
    return tuple(option_groups)


def why(item: ReviewItem, place: Place | None, past_corrections: Corrections, *, hidden: bool) -> str:
    """Why an item has its place in the queue, as text; does not mention the reward if that is `hidden`."""
    if place is Place.CHANCE:
        return BY_CHANCE
    if hidden and item.entered_as == QueueEntry.OUTCOME:
        return "its work was followed up after the verdict"  # a contradiction would reveal which way the verdict went
    if hidden and item.entered_as == QueueEntry.RULE:
        return item.get_entered_as_display()
    if item.entered_as == QueueEntry.RULE:
        return f"flagged: {item.why}"
    if item.entered_as != QueueEntry.SLICE:
        return item.why
    session = item.session
    stratum = Stratum(session.category_id, session.reward_source, session.open_flags > 0)
    answers = past_corrections.count(stratum)
    if not answers:
        return "nobody has graded a session like this yet"
    move = f"a grade is expected to change the reward by {number(past_corrections.expected_size(stratum))}"
    if answers < ENOUGH:
        return f"{move}; few sessions like this have been graded"
    graded = "" if hidden or not session.reward_source else f" graded by {session.reward_source}"
    return f"{move}, like {answers} corrections of sessions{graded} in {session.category or 'no category'}"


def address(session: Session, filters: QueueFilters, **more: str | int) -> str:
    """The URL of the desk with this session and the queue's filters."""
    query = "&".join(part for part in (filters.query, urlencode(more)) if part)
    return reverse("admin:review_session", args=[session.pk]) + (f"?{query}" if query else "")


def holder(item: ReviewItem | None, reviewer: User) -> str:
    """The name of another person who has claimed the item now; "" if nobody else has."""
    if item is None or item.claimed_by is None or item.claimed_by == reviewer:
        return ""
    is_live = item.claimed_until is not None and item.claimed_until > timezone.now()
    return item.claimed_by.get_username() if is_live else ""
