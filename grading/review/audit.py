"""The audit: every act of every person, newest first, read a page at a time from the tables that the acts are rows of.

A page is found by keyset in each table and merged, so that the thousandth page costs what the first one costs.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from grading.models.review import Answer
from grading.monitoring import DISMISSED, GRADED_BY_A_PERSON
from grading.review import acts
from grading.review.acts import HistoryEntry, HistoryKind

PAGE = 50
CHUNK = 500
# Events that every viewer may see.
EDITS = (AuditKind.CATEGORY, AuditKind.PROJECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilters:
    """What the audit is narrowed to; None or empty: not at all.

    `since` and `until` are days of the site's zone, inclusive. `sessions` are primary keys. `bulk` finds the
    answers of one bulk correction and what undid them. A filter by arm, session or bulk leaves out whatever is about no
    session.
    `with_access`: also who came in, and what happened to tokens, people and downloads.
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
    """The place of one act in the order: its moment, its table, its row."""

    at: dt.datetime
    table: int
    pk: int

    def __str__(self) -> str:
        return f"{self.at.astimezone(dt.UTC).isoformat()}_{self.table}_{self.pk}"

    @classmethod
    def parse(cls, text: str) -> "HistoryCursor | None":
        """None for what is no cursor."""
        try:
            at, table, pk = text.split("_")
            moment = dt.datetime.fromisoformat(at.replace(" ", "+"))
            return cls(moment, int(table), int(pk)) if moment.tzinfo else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Where acts of some kinds are kept: their rows, the columns of moment and username, and how to read one."""

    rows: Callable[[], QuerySet[Any]]
    read: Callable[[Any], HistoryEntry]
    at: str
    by: str
    kinds: tuple[HistoryKind, ...]
    of_session: bool = False


def _of_session(rows: QuerySet[Any], *people: str) -> QuerySet[Any]:
    return rows.select_related("session__agent", "session__category", *people)


def _answers() -> QuerySet[Any]:
    beside = ("undoes", "undone_by__reviewer", "judge", "settlement")
    return _of_session(ReviewAnswer.objects.all(), "reviewer", *beside).defer("settlement__steps", "judge__evidence")


def _taken_off() -> QuerySet[Any]:
    with_an_answer = (GRADED_BY_A_PERSON, DISMISSED)
    by_hand = Flag.objects.filter(cleared_by__isnull=False).exclude(cleared_why__in=with_an_answer)
    return _of_session(by_hand, "cleared_by")


# The place in this list is part of a cursor: append to it.
_TABLES = (
    _Table(
        rows=_answers,
        read=acts.of_answer,
        at="created_at",
        by="reviewer__username",
        kinds=(HistoryKind.ANSWER, HistoryKind.UNDO),
        of_session=True,
    ),
    _Table(
        rows=lambda: _of_session(Reveal.objects.all(), "reviewer"),
        read=acts.of_reveal,
        at="created_at",
        by="reviewer__username",
        kinds=(HistoryKind.REVEAL,),
        of_session=True,
    ),
    _Table(
        rows=lambda: _of_session(Comment.objects.all(), "author"),
        read=acts.of_comment,
        at="created_at",
        by="author__username",
        kinds=(HistoryKind.COMMENT,),
        of_session=True,
    ),
    _Table(
        rows=lambda: _of_session(Flag.objects.filter(raised_by__isnull=False), "raised_by"),
        read=acts.of_flag,
        at="raised_at",
        by="raised_by__username",
        kinds=(HistoryKind.FLAG,),
        of_session=True,
    ),
    _Table(
        rows=_taken_off,
        read=acts.of_unflag,
        at="cleared_at",
        by="cleared_by__username",
        kinds=(HistoryKind.FLAG,),
        of_session=True,
    ),
    _Table(
        rows=lambda: Alarm.objects.filter(acknowledged_at__isnull=False).select_related("acknowledged_by"),
        read=acts.of_alarm,
        at="acknowledged_at",
        by="acknowledged_by__username",
        kinds=(HistoryKind.ALARM,),
    ),
    _Table(
        rows=lambda: RubricActivation.objects.filter(by__isnull=False).select_related("rubric", "by"),
        read=acts.of_activation,
        at="at",
        by="by__username",
        kinds=(HistoryKind.RUBRIC,),
    ),
    _Table(
        rows=lambda: JudgeRun.objects.filter(by__isnull=False).defer("sessions").select_related("by"),
        read=acts.of_run,
        at="created_at",
        by="by__username",
        kinds=(HistoryKind.RUN,),
    ),
    _Table(
        rows=lambda: (
            JudgeRun.objects.filter(cancelled_by__isnull=False).defer("sessions").select_related("cancelled_by")
        ),
        read=acts.of_cancel,
        at="cancelled_at",
        by="cancelled_by__username",
        kinds=(HistoryKind.RUN,),
    ),
    _Table(
        rows=lambda: JudgePolicy.objects.filter(by__isnull=False).select_related("by"),
        read=acts.of_policy,
        at="created_at",
        by="by__username",
        kinds=(HistoryKind.QUOTA,),
    ),
    _Table(
        rows=lambda: QuotaTransition.objects.filter(by__isnull=False).select_related("by"),
        read=acts.of_transition,
        at="at",
        by="by__username",
        kinds=(HistoryKind.QUOTA,),
    ),
    _Table(
        rows=lambda: LogEntry.objects.select_related("user", "content_type"),
        read=acts.of_setting,
        at="action_time",
        by="user__username",
        kinds=(HistoryKind.SETTING,),
    ),
    _Table(
        rows=lambda: CalibrationVersion.objects.filter(accepted=True, version__gt=1).select_related("bandit"),
        read=acts.of_calibration,
        at="created_at",
        by="by",
        kinds=(HistoryKind.CALIBRATION,),
    ),
    _Table(
        rows=lambda: AuditEvent.objects.exclude(kind__in=EDITS),
        read=acts.of_event,
        at="at",
        by="who",
        kinds=tuple(HistoryKind(kind) for kind in AuditKind if kind not in EDITS),
    ),
    _Table(
        rows=lambda: CategoryChange.objects.select_related("by"),
        read=acts.of_category_change,
        at="created_at",
        by="by__username",
        kinds=(HistoryKind.CATEGORY,),
    ),
    _Table(
        rows=lambda: CategoryChange.objects.filter(undone_at__isnull=False).select_related("undone_by"),
        read=acts.of_category_undone,
        at="undone_at",
        by="undone_by__username",
        kinds=(HistoryKind.CATEGORY,),
    ),
    _Table(
        rows=lambda: AuditEvent.objects.filter(kind__in=EDITS),
        read=acts.of_edit,
        at="at",
        by="who",
        kinds=tuple(HistoryKind(kind) for kind in EDITS),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """A page of the audit; `older` is where the next one begins, None on the last."""

    acts: list[HistoryEntry]
    older: HistoryCursor | None


def page(filters: HistoryFilters, *, before: HistoryCursor | None = None, size: int = PAGE) -> HistoryPage:
    """The newest `size` acts that are older than `before`. A constant number of queries."""
    dated_acts: list[tuple[HistoryCursor, HistoryEntry]] = []
    of_a_session = filters.arm or filters.sessions is not None
    for index, table in enumerate(_TABLES):
        if (
            (filters.kind and filters.kind not in table.kinds)
            or (of_a_session and not table.of_session)
            or (filters.bulk and table.read is not acts.of_answer)
            or (table.read is acts.of_event and not filters.with_access)
        ):
            continue
        rows = table.rows().filter(_condition(table, filters))
        if before is not None:
            # Of acts at the same moment, those of later tables come first, and of one table those of later rows.
            older = Q(**{f"{table.at}__lt": before.at})
            if index < before.table:
                older = Q(**{f"{table.at}__lte": before.at})
            elif index == before.table:
                older |= Q(**{table.at: before.at, "pk__lt": before.pk})
            rows = rows.filter(older)
        for row in rows.order_by(f"-{table.at}", "-pk")[: size + 1]:
            act = table.read(row)
            dated_acts.append((HistoryCursor(act.at, index, act.pk), act))
    dated_acts.sort(key=lambda each: each[0], reverse=True)
    latest = dated_acts[:size]
    return HistoryPage(acts=[act for _cursor, act in latest], older=latest[-1][0] if len(dated_acts) > size else None)


def each(filters: HistoryFilters) -> Iterator[HistoryEntry]:
    """Every act, newest first, a chunk at a time."""
    before: HistoryCursor | None = None
    while True:
        part = page(filters, before=before, size=CHUNK)
        yield from part.acts
        if part.older is None:
            return
        before = part.older


def _condition(table: _Table, filters: HistoryFilters) -> Q:
    chosen = Q()
    if filters.person:
        chosen &= Q(**{table.by: filters.person})
    if filters.arm:
        chosen &= Q(session__category__name=filters.arm)
    if filters.sessions is not None:
        chosen &= Q(session__in=filters.sessions)
    if filters.since:
        chosen &= Q(**{f"{table.at}__gte": midnight(filters.since)})
    if filters.until:
        chosen &= Q(**{f"{table.at}__lt": midnight(filters.until + dt.timedelta(days=1))})
    if filters.kind and table.read in {acts.of_event, acts.of_edit}:
        chosen &= Q(kind=filters.kind)
    elif filters.kind and len(table.kinds) > 1:
        chosen &= Q(answer=Answer.UNDO) if filters.kind is HistoryKind.UNDO else ~Q(answer=Answer.UNDO)
    if filters.bulk:
        chosen &= Q(bulk=filters.bulk) | Q(undoes__in=ReviewAnswer.objects.filter(bulk=filters.bulk))
    return chosen
