"""Sessions of the site summed by cell: the day, the work, who did it and who graded it. One query for any site.

Left out are samples, sessions that say nothing about an agent (infrastructure failed, or it refused to start), those
that a person excluded, and subagents, whose work counts for their parents. A session without a grade has the floor as
its reward, which is no grade: it is missing.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
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

POPULATION = ~Q(outcome__in=[each.value for each in NO_REWARD]) & ~Q(
    reward_reason__in=[Reason.EXCLUDED.value, Reason.CARRIED.value]
)
# Whether the reward is a grade.
GRADED = Q(reward_value__isnull=False) & ~Q(reward_source=Source.FLOOR.value)
# Whether a person graded what a judge had read: how far the two are apart is then known for this very session.
CORRECTED = Q(reward_source=Source.HUMAN.value, verdict__isnull=False)
# The expression of each column. Arms are keys, which become the names of their current arms.
COLUMNS: Mapping[str, Any] = {
    "category": F("category_id"),
    "harness": F("harness_id"),
    "version": F("facts__harness_version"),
    "model": F("model"),
    "agent": F("agent__name"),
    "project": F("project__name"),
    "task": F("task"),
}
ARMS = ("category", "harness")
READERS = ("grader", "reader")
GRADER = ("reward_source", "verdict__model", "verdict__rubric", "verdict__version")
FACTS = (
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
    **{name: Cast(f"facts__{name}", FloatField()) for name in FACTS},
    # Whether a suite was red when it last ran, of the sessions in which the result of one is known.
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
    """Which sessions count. Each is a name as pages show it, "" for any. Sample sessions never count."""

    category: str = ""
    harness: str = ""
    version: str = ""
    model: str = ""
    agent: str = ""
    project: str = ""

    def narrow(self, sessions: SessionQuerySet) -> SessionQuerySet:
        for name, value in asdict(self).items():
            if value and name in ARMS:
                sessions = sessions.filter(Q(**{f"{name}__name": value}) | Q(**{f"{name}__merged_into__name": value}))
            elif value:
                path = {"version": "facts__harness_version", "agent": "agent__name", "project": "project__name"}
                sessions = sessions.filter(**{path.get(name, name): value})
        return sessions


def last_weeks(now: dt.datetime, weeks: int = 10) -> Span:
    """The last so many weeks up to today: from a Monday to the day of `now`."""
    today = timezone.localdate(now)
    return Span(first=today - dt.timedelta(days=today.weekday() + 7 * (weeks - 1)), last=today)


def sessions_during(span: Span, filters: CellFilter | None = None) -> SessionQuerySet:
    """The sessions that figures of the span are about."""
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
    """The sessions of a span, summed by day, by these of COLUMNS, and by grader or reader. One query, and one for the
    names of arms. The reader of a session that a person graded is the judge that had read it, if one had. `with_task`:
    only sessions that have a task.
    """
    paths = [GRADER if name in READERS else (f"by_{name}",) for name in columns]
    keys = {f"by_{name}": COLUMNS[name] for name in columns if name not in READERS}
    sessions = sessions_during(span, filters)
    if with_task:
        sessions = sessions.exclude(task="")
    rows = sessions.annotate(**keys, on_day=local_day("ended_at", span))
    sums = [sums_of(measure) for measure in measures]
    flat = {f"{part}_{number}": each for number, parts in enumerate(sums) for part, each in parts.items()}
    names = [path for group in paths for path in group]
    figures = ("number", "open", *flat)
    rows = rows.values("on_day", *names).annotate(number=Count("pk"), open=Count("pk", filter=PROVISIONAL), **flat)
    records = list(rows.values_list("on_day", *names, *figures))
    return _as_table(records, list(columns), list(measures))


def sums_of(measure: str) -> dict[str, Expression]:
    """The number of sessions with a value of the measure, their sum, and their sum of squares."""
    value = VALUES[measure]
    return {"count": Count(value), "total": Sum(value), "squares": Sum(value * value)}


def local_day(column: str, span: Span) -> Expression:
    """The day of a moment within the span, in the site's zone.

    On SQLite, `TruncDate` calls a Python function for each row, which takes longer than everything else: there the
    offset of the zone is added in SQL. A day on which clocks change has a branch of its own.
    """
    if connection.vendor != "sqlite":
        return TruncDate(column)
    days = [span.first + dt.timedelta(days=number) for number in range(span.days + 1)]
    starts = [midnight(day) for day in days]
    offset = starts[0].utcoffset()
    branches = []
    for number in range(span.days):
        if starts[number + 1].utcoffset() != offset:
            branches.append(When(**{f"{column}__lt": starts[number]}, then=_day_at(column, offset)))
            branches.append(When(**{f"{column}__lt": starts[number + 1]}, then=Value(days[number].isoformat())))
            offset = starts[number + 1].utcoffset()
    last = _day_at(column, offset)
    return Case(*branches, default=last, output_field=CharField()) if branches else last


def _day_at(column: str, offset: dt.timedelta | None) -> Expression:
    minutes = round((offset or dt.timedelta()).total_seconds() / 60)
    return Func(F(column), Value(f"{minutes:+d} minutes"), function="date", output_field=CharField())


def _moments(span: Span) -> tuple[dt.datetime, dt.datetime]:
    """The first and the last moment of a span."""
    return midnight(span.first), midnight(span.last + dt.timedelta(days=1)) - dt.timedelta(microseconds=1)


def _as_table(records: list[tuple[Any, ...]], columns: list[str], measures: list[str]) -> CellTable:
    fields: list[Sequence[Any]] = list(zip(*records, strict=True)) or [()] * (1 + len(columns) + 100)
    ordinals = {day: _as_date(day).toordinal() for day in set(fields[0])}
    place, keys = 1, {}
    for name in columns:
        width = len(GRADER) if name in READERS else 1
        keys[name] = _as_column(name, fields[place : place + width])
        place += width
    sums = {}
    for number, measure in enumerate(measures):
        count, total, squares = (_floats(fields[place + 2 + 3 * number + part]) for part in range(3))
        sums[measure] = MeasureSums(count=count, total=total, squares=squares)
    return CellTable(
        days=np.array([ordinals[day] for day in fields[0]], dtype=np.int64),
        columns=keys,
        sessions=_floats(fields[place]),
        provisional=_floats(fields[place + 1]),
        sums=sums,
    )


def _as_date(day: Any) -> dt.date:
    return day if isinstance(day, dt.date) else dt.date.fromisoformat(day)


def _floats(values: Iterable[Any]) -> Any:
    return np.array([0.0 if value is None else value for value in values], dtype=np.float64)


def _as_column(name: str, fields: Sequence[Sequence[Any]]) -> CellColumn:
    if name in READERS:
        find = reader_of if name == "reader" else grader_of
        return CellColumn.from_values([find(*values) for values in zip(*fields, strict=True)])
    if name in ARMS:
        names = name_arms(key for key in set(fields[0]) if key is not None)
        return CellColumn.from_values([names.get(key, "") for key in fields[0]])
    return CellColumn.from_values([value or "" for value in fields[0]])


def name_arms(keys: Iterable[int]) -> dict[int, str]:
    """The names of arms by key; a merged arm has the name of the arm that it was merged into."""
    arms = Arm.objects.select_related("merged_into").in_bulk(list(keys))
    return {key: arm.current.name for key, arm in arms.items()}


def grader_of(source: str, model: str | None, rubric: str | None, version: str | None) -> GraderIdentity:
    """Who gave a reward with this source, where a verdict, if there is one, has these columns."""
    if source != Source.JUDGE:
        return GraderIdentity(source="" if source == Source.FLOOR else source)
    return GraderIdentity(source=source, model=model or "", rubric=rubric or "", version=version or "")


def reader_of(source: str, model: str | None, rubric: str | None, version: str | None) -> GraderIdentity:
    """The judge that had read what a person graded, if one had; otherwise who gave the reward."""
    corrected = source == Source.HUMAN and model is not None
    return grader_of(Source.JUDGE if corrected else source, model, rubric, version)


def list_choices(span: Span) -> dict[str, list[str]]:
    """The names that sessions of the span have, by field of `CellFilter`, the most frequent first."""
    fields = [field.name for field in dataclass_fields(CellFilter)]
    table = load_cells(span, columns=fields, measures=())
    choices = {}
    for name in fields:
        column = table.columns[name]
        counts = np.bincount(column.codes, weights=table.sessions, minlength=len(column.labels))
        order = sorted(range(len(column.labels)), key=lambda code: (-counts[code], str(column.labels[code])))
        choices[name] = [str(column.labels[code]) for code in order if column.labels[code]]
    return choices
