"""The audit: every act of every person, newest first, a page at a time.

The acts are rows of several tables. Each table is paged by keyset and the results are merged, so that the thousandth
page costs as much as the first.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import Q, QuerySet

from bandit.models import CalibrationVersion
from grading.days import midnight
from grading.models import (
    Alarm,
    AuditEvent,
    CategoryChange,
    Comment,
    Flag,
    JudgePolicy,
    JudgeRun,
    QuotaTransition,
    Reveal,
    ReviewAnswer,
    RubricActivation,
)
from grading.models.audit import AuditKind
from grading.monitoring.flags import DISMISSED, GRADED_BY_A_PERSON
from grading.monitoring.rule import title_of
from grading.review import acts
from grading.review.acts import HistoryEntry, HistoryKind

PAGE_SIZE = 50
CHUNK_SIZE = 500
# Events that every viewer may see, without the address that they came from.
EDITS = (AuditKind.CATEGORY, AuditKind.PROJECT)
ANSWERS = {HistoryKind.ANSWER, HistoryKind.UNDO}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilters:
    """The filters of the audit. None or an empty value does not filter.

    `since` and `until` are days of the site's zone, inclusive. `sessions` are primary keys. `bulk` is the name of a
    bulk correction: it selects the correction's answers and their undos. A filter by arm, session or bulk leaves out
    acts that are not about a session. `with_access` includes sign-ins and acts on tokens, people and downloads.
    """

    person: str = ""
    kind: HistoryKind | None = None
    arm: str = ""
    sessions: tuple[int, ...] | None = None
    bulk: str = ""
    since: dt.date | None = None
    until: dt.date | None = None
    with_access: bool = False


@dataclass(frozen=True, slots=True, order=True)
class HistoryCursor:
    """The place of an act in the order: its time, the index of its table, and the row's key."""

    at: dt.datetime
    table: int
    pk: int

    def __str__(self) -> str:
        return f"{self.at.astimezone(dt.UTC).isoformat()}_{self.table}_{self.pk}"

    @classmethod
    def parse(cls, text: str) -> "HistoryCursor | None":
        """The cursor that `str` wrote; None for any other text."""
        try:
            at, table, pk = text.split("_")
            moment = dt.datetime.fromisoformat(at.replace(" ", "+"))
            return cls(moment, int(table), int(pk)) if moment.tzinfo else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActTable:
    """A table whose `rows` are acts.

    `at` is the column of the time, `by` that of the person's name. `what` and `why` return the texts about a row. A
    table with several `kinds` has the column `kind`. `is_access`: the acts are shown only with `with_access`.
    """

    kinds: tuple[HistoryKind, ...]
    rows: QuerySet[Any]
    at: str
    by: str
    what: Callable[[Any], str]
    why: Callable[[Any], str] = lambda _row: ""
    of_session: bool = False
    is_access: bool = False

    def read(self, row: Any) -> HistoryEntry:
        return HistoryEntry(
            at=getattr(row, self.at),
            kind=self.kinds[0] if len(self.kinds) == 1 else HistoryKind(row.kind),
            pk=row.pk,
            who=attrgetter(self.by.replace("__", "."))(row) or "nobody",
            what=self.what(row),
            why=self.why(row),
            session=row.session if self.of_session else None,
            answer=row if isinstance(row, ReviewAnswer) else None,
        )

    def may_have(self, filters: HistoryFilters) -> bool:
        """Whether the table can have rows that pass the filters."""
        is_by_session = bool(filters.arm) or filters.sessions is not None
        return (
            (filters.kind is None or filters.kind in self.kinds)
            and (self.of_session or not is_by_session)
            and (not filters.bulk or self.kinds[0] in ANSWERS)
            and (filters.with_access or not self.is_access)
        )

    def filtered(self, filters: HistoryFilters) -> QuerySet[Any]:
        """The rows that pass the filters."""
        condition = Q()
        if filters.person:
            condition &= Q(**{self.by: filters.person})
        if filters.arm:
            condition &= Q(session__category__name=filters.arm)
        if filters.sessions is not None:
            condition &= Q(session__in=filters.sessions)
        if filters.since:
            condition &= Q(**{f"{self.at}__gte": midnight(filters.since)})
        if filters.until:
            condition &= Q(**{f"{self.at}__lt": midnight(filters.until + dt.timedelta(days=1))})
        if filters.kind and len(self.kinds) > 1:
            condition &= Q(kind=filters.kind)
        if filters.bulk:
            condition &= Q(bulk=filters.bulk) | Q(undoes__in=ReviewAnswer.objects.filter(bulk=filters.bulk))
        return self.rows.filter(condition)


def _of_session(kind: HistoryKind, rows: QuerySet[Any], at: str, by: str, **texts: Any) -> ActTable:
    """A table of acts on sessions, done by the person in the column `by`."""
    related = rows.select_related("session__agent", "session__category", by)
    return ActTable(kinds=(kind,), rows=related, at=at, by=f"{by}__username", of_session=True, **texts)


def _by_user(kind: HistoryKind, rows: QuerySet[Any], at: str, by: str, **texts: Any) -> ActTable:
    """A table of acts that are not about a session, done by the person in the column `by`.

    Rows without a person are left out.
    """
    acts_of_people = rows.filter(**{f"{by}__isnull": False}).select_related(by)
    return ActTable(kinds=(kind,), rows=acts_of_people, at=at, by=f"{by}__username", **texts)


def _answers(kind: HistoryKind, rows: QuerySet[Any]) -> ActTable:
    related = rows.select_related("undoes", "undone_by__reviewer", "judge", "settlement")
    without_large_columns = related.defer("settlement__steps", "judge__evidence")
    return _of_session(
        kind, without_large_columns, "created_at", "reviewer", what=acts.describe_answer, why=attrgetter("reason")
    )


RUNS = JudgeRun.objects.defer("sessions")
# An act's place in this list is part of a cursor: append to it.
TABLES = (
    _answers(HistoryKind.ANSWER, ReviewAnswer.objects.filter(undoes=None)),
    _answers(HistoryKind.UNDO, ReviewAnswer.objects.filter(undoes__isnull=False)),
    _of_session(HistoryKind.REVEAL, Reveal.objects.all(), "created_at", "reviewer", what=acts.describe_reveal),
    _of_session(
        HistoryKind.COMMENT,
        Comment.objects.all(),
        "created_at",
        "author",
        what=lambda _row: "commented",
        why=attrgetter("text"),
    ),
    _of_session(
        HistoryKind.FLAG,
        Flag.objects.filter(raised_by__isnull=False),
        "raised_at",
        "raised_by",
        what=lambda _row: "flagged it",
        why=attrgetter("detail"),
    ),
    _of_session(
        HistoryKind.FLAG,
        Flag.objects.filter(cleared_by__isnull=False).exclude(cleared_why__in=(GRADED_BY_A_PERSON, DISMISSED)),
        "cleared_at",
        "cleared_by",
        what=acts.describe_unflag,
        why=attrgetter("cleared_why"),
    ),
    _by_user(
        HistoryKind.ALARM,
        Alarm.objects.all(),
        "acknowledged_at",
        "acknowledged_by",
        what=lambda row: f"acknowledged the alarm “{title_of(row.rule)}”",
        why=attrgetter("detail"),
    ),
    _by_user(
        HistoryKind.RUBRIC,
        RubricActivation.objects.select_related("rubric"),
        "at",
        "by",
        what=lambda row: f"put rubric {row.rubric} in force",
    ),
    _by_user(HistoryKind.RUN, RUNS, "created_at", "by", what=acts.describe_run, why=attrgetter("why")),
    _by_user(
        HistoryKind.RUN,
        RUNS,
        "cancelled_at",
        "cancelled_by",
        what=lambda _row: "cancelled judging again",
        why=attrgetter("why"),
    ),
    _by_user(
        HistoryKind.QUOTA,
        JudgePolicy.objects.all(),
        "created_at",
        "by",
        what=lambda _row: "set the judge’s policy",
        why=acts.describe_policy,
    ),
    _by_user(
        HistoryKind.QUOTA,
        QuotaTransition.objects.all(),
        "at",
        "by",
        what=lambda row: f"set the judge to {row.state}",
        why=attrgetter("detail"),
    ),
    _by_user(
        HistoryKind.SETTING,
        LogEntry.objects.select_related("content_type"),
        "action_time",
        "user",
        what=acts.describe_setting,
        why=LogEntry.get_change_message,
    ),
    _by_user(
        HistoryKind.CATEGORY,
        CategoryChange.objects.all(),
        "created_at",
        "by",
        what=attrgetter("summary"),
        why=attrgetter("reason"),
    ),
    _by_user(
        HistoryKind.CATEGORY,
        CategoryChange.objects.all(),
        "undone_at",
        "undone_by",
        what=lambda row: f"undid “{row.summary}”",
        why=attrgetter("undone_why"),
    ),
    ActTable(
        kinds=(HistoryKind.CALIBRATION,),
        rows=CalibrationVersion.objects.filter(accepted=True, version__gt=1).select_related("bandit"),
        at="created_at",
        by="by",
        what=acts.describe_calibration,
        why=lambda row: f"version {row.version}" + (f": {row.note}" if row.note else ""),
    ),
    ActTable(
        kinds=tuple(HistoryKind(kind.value) for kind in AuditKind if kind not in EDITS),
        rows=AuditEvent.objects.exclude(kind__in=EDITS),
        at="at",
        by="who",
        what=attrgetter("what"),
        why=acts.event_details,
        is_access=True,
    ),
    ActTable(
        kinds=tuple(HistoryKind(kind.value) for kind in EDITS),
        rows=AuditEvent.objects.filter(kind__in=EDITS),
        at="at",
        by="who",
        what=attrgetter("what"),
        why=attrgetter("detail"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """A page of the audit. `older` is where the next page begins; None on the last page."""

    acts: list[HistoryEntry]
    older: HistoryCursor | None


def read_page(filters: HistoryFilters, *, before: HistoryCursor | None = None, size: int = PAGE_SIZE) -> HistoryPage:
    """The newest `size` acts that are older than `before`. A constant number of queries."""
    dated_acts: list[tuple[HistoryCursor, HistoryEntry]] = []
    for index, table in enumerate(TABLES):
        if not table.may_have(filters):
            continue
        rows = table.filtered(filters)
        if before is not None:
            # Of acts at the same moment, acts of later tables come first; within a table, later rows come first.
            older = Q(**{f"{table.at}__lt": before.at})
            if index < before.table:
                older = Q(**{f"{table.at}__lte": before.at})
            elif index == before.table:
                older |= Q(**{table.at: before.at, "pk__lt": before.pk})
            rows = rows.filter(older)
        for row in rows.order_by(f"-{table.at}", "-pk")[: size + 1]:
            act = table.read(row)
            dated_acts.append((HistoryCursor(act.at, index, act.pk), act))
    dated_acts.sort(key=lambda dated: dated[0], reverse=True)
    latest = dated_acts[:size]
    last_cursor = latest[-1][0] if len(dated_acts) > size else None
    return HistoryPage(acts=[act for _cursor, act in latest], older=last_cursor)


def each_act(filters: HistoryFilters) -> Iterator[HistoryEntry]:
    """Every act, newest first, a chunk at a time."""
    before: HistoryCursor | None = None
    while True:
        chunk = read_page(filters, before=before, size=CHUNK_SIZE)
        yield from chunk.acts
        if chunk.older is None:
            return
        before = chunk.older
