"""Sessions of the site summed by cell: the day, the work, who did it and who graded it. One query for any site.

Left out are samples, sessions that say nothing about an agent (infrastructure failed, or it refused to start), those
that a person excluded, and subagents, whose work counts for their parents. A session without a grade has the floor as
its reward, which is no grade: it is missing.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import (
    Case,
    CharField,
    Count,
    Expression,
    F,
    FloatField,
    Func,
    Lookup,
    Q,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, TruncDate
from django.db.models.lookups import Contains
from django.utils import timezone

from bandit.models import Arm
from grading.days import midnight
from grading.insight.core.cells import CellColumn, CellTable, GraderIdentity, MeasureSums
from grading.insight.core.results import Span
from grading.models import Session
from grading.models.sessions import SessionQuerySet
from grading.signals.final_state import TestState
from grading.vocabulary import NO_REWARD, Reason, Source

POPULATION = ~Q(outcome__in=[outcome.value for outcome in NO_REWARD]) & ~Q(
    reward_reason__in=[Reason.EXCLUDED.value, Reason.CARRIED.value]
)
# Whether the reward is a grade.
GRADED = Q(reward_value__isnull=False) & ~Q(reward_source=Source.FLOOR.value)
# Whether a person graded a session that a judge had read, so that their difference is known for this session.
CORRECTED = Q(reward_source=Source.HUMAN.value, verdict__isnull=False)
# The expression of each column. Those of ARM_COLUMNS select keys of arms, which `load_cells` replaces by names.
COLUMNS: Mapping[str, Any] = {
    "category": F("category_id"),
    "harness": F("harness_id"),
    "version": F("facts__harness_version"),
    "model": F("model"),
    "agent": F("agent__name"),
    "project": F("project__name"),
    "task": F("task"),
}
ARM_COLUMNS = ("category", "harness")
GRADER_COLUMNS = ("grader", "reader")
# The database columns that a grader or reader is made from.
VERDICT_COLUMNS = ("reward_source", "verdict__model", "verdict__rubric", "verdict__version")
FACT_MEASURES = (
    "minutes",
    "active_minutes",
    "user_turns",
    "interruptions",
    "refusals",
    "failed_share",
    "reads_before_edit",
    "unread_edits",
    "test_runs",
    "retries",
    "compactions",
)


def _suites_have(state: TestState) -> "Lookup[Any]":
    """Whether the last run of some suite ended in this state."""
    return Contains(Cast("facts__suites", TextField()), f'"{state.value}"')


# The value of each measure of a session. "sessions" has none: all sessions count.
VALUES: Mapping[str, Any] = {
    "reward": Case(When(GRADED, then=F("reward_value")), output_field=FloatField()),
    "final": Case(When(GRADED & Q(reward_final=True), then=1.0), When(GRADED, then=0.0), output_field=FloatField()),
    # As a float: the square of an expensive session's microdollars would not fit into 64 bits.
    "correction": Case(
        When(GRADED & CORRECTED, then=F("reward_value") - F("verdict__value")),
        When(GRADED, then=0.0),
        output_field=FloatField(),
    ),
    "cost": Cast("cost_micro", FloatField()),
    "tokens": Cast("tokens", FloatField()),
    **{name: Cast(f"facts__{name}", FloatField()) for name in FACT_MEASURES},
    # Whether a suite was red when it last ran. Sessions without a suite of known result have no value.
    "suites": Case(
        When(_suites_have(TestState.RED), then=1.0),
        When(_suites_have(TestState.GREEN), then=0.0),
        output_field=FloatField(),
    ),
    "claimed_without_green": Case(
        When(facts__claimed_without_green=True, then=1.0),
        When(facts__claimed_without_green=False, then=0.0),
        output_field=FloatField(),
    ),
}
PROVISIONAL = GRADED & Q(reward_final=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFilter:
    """Which sessions count: those with all these names, as pages show them. "" means any name. Samples never count."""

    category: str = ""
    harness: str = ""
    version: str = ""
    model: str = ""
    agent: str = ""
    project: str = ""

    def narrow(self, sessions: SessionQuerySet) -> SessionQuerySet:
        """The sessions that match. A category or harness includes arms that were merged into it."""
        for name, value in asdict(self).items():
            if value and name in ARM_COLUMNS:
                sessions = sessions.filter(Q(**{f"{name}__name": value}) | Q(**{f"{name}__merged_into__name": value}))
            elif value:
                path = {"version": "facts__harness_version", "agent": "agent__name", "project": "project__name"}
                sessions = sessions.filter(**{path.get(name, name): value})
        return sessions


def last_weeks(now: dt.datetime, weeks: int = 10) -> Span:
    """The last `weeks` weeks up to today, from a Monday on."""
    today = timezone.localdate(now)
    return Span(first=today - dt.timedelta(days=today.weekday() + 7 * (weeks - 1)), last=today)


def sessions_during(span: Span, filters: CellFilter | None = None) -> SessionQuerySet:
    """The sessions of the span that count in figures (POPULATION), and match the filters."""
    sessions = Session.objects.filter(POPULATION, is_sample=False, ended_at__range=_moments(span)).order_by()
    return filters.narrow(sessions) if filters else sessions


def load_cells(
    span: Span,
    *,
    columns: Collection[str],
    measures: Collection[str] = ("reward",),
    filters: CellFilter | None = None,
    with_task: bool = False,
) -> CellTable:
    """The sessions of a span, summed by day and by `columns`: names from COLUMNS, "grader" or "reader".

    "grader" is who gave the reward. "reader" is the same, except for a session that a person graded after a judge: its
    reader is that judge. With `with_task`, only sessions that have a task. One query, and one for each column of arms'
    names.
    """
    sessions = sessions_during(span, filters)
    if with_task:
        sessions = sessions.exclude(task="")
    expressions = {f"by_{name}": COLUMNS[name] for name in columns if name not in GRADER_COLUMNS}
    rows = sessions.annotate(**expressions, on_day=local_day(span))
    groups = ["on_day"]
    for name in columns:
        groups += VERDICT_COLUMNS if name in GRADER_COLUMNS else [f"by_{name}"]
    figures: dict[str, Expression] = {"number": Count("pk"), "open": Count("pk", filter=PROVISIONAL)}
    for measure in measures:
        value = VALUES[measure]
        figures[f"count_{measure}"] = Count(value)
        figures[f"total_{measure}"] = Sum(value)
        figures[f"squares_{measure}"] = Sum(value * value)
    records = list(rows.values(*groups).annotate(**figures).values_list(*groups, *figures))
    return _as_table(records, list(columns), list(measures))


def local_day(span: Span) -> Expression:
    """The day on which a session of the span ended, in the site's zone.

    On SQLite, `TruncDate` calls a Python function for each row, which takes longer than everything else: there the
    offset of the zone is added in SQL. A day on which clocks change has a branch of its own.
    """
    if connection.vendor != "sqlite":
        return TruncDate("ended_at")
    days = [span.first + dt.timedelta(days=number) for number in range(span.days + 1)]
    starts = [midnight(day) for day in days]
    offset = starts[0].utcoffset()
    branches = []
    for day, (start, next_start) in zip(days[:-1], pairwise(starts), strict=True):
        if next_start.utcoffset() != offset:
            branches.append(When(ended_at__lt=start, then=_day_at(offset)))
            branches.append(When(ended_at__lt=next_start, then=Value(day.isoformat())))
            offset = next_start.utcoffset()
    last = _day_at(offset)
    return Case(*branches, default=last, output_field=CharField()) if branches else last


def _day_at(offset: dt.timedelta | None) -> Expression:
    """The day on which a session ended at this offset from UTC, in SQLite."""
    minutes = round((offset or dt.timedelta()).total_seconds() / 60)
    return Func(F("ended_at"), Value(f"{minutes:+d} minutes"), function="date", output_field=CharField())


def _moments(span: Span) -> tuple[dt.datetime, dt.datetime]:
    """The first and the last moment of a span."""
    return midnight(span.first), midnight(span.last + dt.timedelta(days=1)) - dt.timedelta(microseconds=1)


def _as_table(records: list[tuple[Any, ...]], columns: list[str], measures: list[str]) -> CellTable:
    """The table of the rows that `load_cells` selected: day, columns, two counts, and three sums for each measure."""
    widths = {name: len(VERDICT_COLUMNS) if name in GRADER_COLUMNS else 1 for name in columns}
    size = 1 + sum(widths.values()) + 2 + 3 * len(measures)
    # The values of one selected column after the other. Without records, `zip` yields no columns at all.
    values = iter(list(zip(*records, strict=True)) or [()] * size)
    days = next(values)
    ordinal_of = {day: _as_date(day).toordinal() for day in set(days)}
    cell_columns = {name: _as_column(name, list(islice(values, width))) for name, width in widths.items()}
    sessions, provisional = _floats(next(values)), _floats(next(values))
    sums = {}
    for measure in measures:
        count, total, squares = map(_floats, islice(values, 3))
        sums[measure] = MeasureSums(count=count, total=total, squares=squares)
    return CellTable(
        days=np.array([ordinal_of[day] for day in days], dtype=np.int64),
        columns=cell_columns,
        sessions=sessions,
        provisional=provisional,
        sums=sums,
    )


def _as_date(day: Any) -> dt.date:
    return day if isinstance(day, dt.date) else dt.date.fromisoformat(day)


def _floats(values: Iterable[Any]) -> Any:
    return np.array([0.0 if value is None else value for value in values], dtype=np.float64)


def _as_column(name: str, fields: Sequence[Sequence[Any]]) -> CellColumn:
    """A column of the table. `fields` are the selected values of VERDICT_COLUMNS for a grader or reader, and one field
    for other columns.
    """
    if name in GRADER_COLUMNS:
        identify = reader_of if name == "reader" else grader_of
        return CellColumn.from_values([identify(*values) for values in zip(*fields, strict=True)])
    if name in ARM_COLUMNS:
        names = name_arms(key for key in set(fields[0]) if key is not None)
        return CellColumn.from_values([names.get(key, "") for key in fields[0]])
    return CellColumn.from_values([value or "" for value in fields[0]])


def name_arms(keys: Iterable[int]) -> dict[int, str]:
    """The names of arms by key; a merged arm has the name of the arm that it was merged into."""
    arms = Arm.objects.select_related("merged_into").in_bulk(list(keys))
    return {key: arm.current.name for key, arm in arms.items()}


def grader_of(source: str, model: str | None, rubric: str | None, version: str | None) -> GraderIdentity:
    """Who gave a reward with this source. The other arguments are columns of its verdict, None without one."""
    if source != Source.JUDGE:
        return GraderIdentity(source="" if source == Source.FLOOR else source)
    return GraderIdentity(source=source, model=model or "", rubric=rubric or "", version=version or "")


def reader_of(source: str, model: str | None, rubric: str | None, version: str | None) -> GraderIdentity:
    """Who gave a reward; if a person graded after a judge, that judge. The arguments are those of `grader_of`."""
    is_corrected = source == Source.HUMAN and model is not None
    return grader_of(Source.JUDGE if is_corrected else source, model, rubric, version)
