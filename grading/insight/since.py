"""What changed since the newest marks, on like work."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from bandit.models import PolicyVersion
from grading.days import midnight
from grading.insight.bridges import load_pairs
from grading.insight.changes import rank_graders
from grading.insight.core.bridge import fit_scale
from grading.insight.core.effects import EffectInputs, estimate_effects, group_marks
from grading.insight.core.measures import MEASURES
from grading.insight.core.results import MarkEffect, MarkKind, SinceReading, Span, TimeMark
from grading.insight.loading import VALUES, load_cells
from grading.insight.marks import load_marks
from grading.models import (
    AuditEvent,
    Evidence,
    Grade,
    JudgePolicy,
    QuotaTransition,
    RubricActivation,
    Session,
    Settlement,
    StoredReading,
)
from grading.models.readings import last_keys

# Days before the oldest of the newest marks, and in all.
DAYS_BEFORE, MOST_DAYS = 56, 150
REWARD = "reward"
ALL_MEASURES = [name for name in MEASURES if name in VALUES and name != "final"]
COLUMNS = ("category", "project", "harness", "version", "model", "agent", "grader")
# The tables of marks that are not about sessions.
TABLES_OF_MARKS = (JudgePolicy, PolicyVersion, QuotaTransition, RubricActivation)
# The name of the stored reading.
STORED_NAME = "insight since marks"
STORED_FORM = TypeAdapter(SinceReading)


def load_inputs(now: dt.datetime, measures: Sequence[str]) -> EffectInputs:
    """The sessions from some weeks before the newest marks until now, and the marks. A constant number of queries."""
    today = timezone.localdate(now)
    longest = Span(first=today - dt.timedelta(days=MOST_DAYS), last=today)
    marks = sorted(load_marks(longest), key=lambda mark: (mark.at, mark.key), reverse=True)
    return inputs_for(marks, longest, measures)


def inputs_for(marks: Sequence[TimeMark], longest: Span, measures: Sequence[str]) -> EffectInputs:
    """The inputs for these marks, the newest first, of sessions in the span `longest`."""
    table = load_cells(longest, columns=COLUMNS, measures=measures)
    groups = group_marks(marks, table)
    first = longest.first
    if groups:
        oldest = min(mark.day for mark in groups[-1])
        first = max(first, oldest - dt.timedelta(days=DAYS_BEFORE))
    span = Span(first=first, last=longest.last)
    table = table.during(span)
    tasks = load_cells(span, columns=(*COLUMNS, "task"), measures=measures, with_task=True)
    graders = rank_graders(table, REWARD) if REWARD in measures else []
    scale = fit_scale(graders, load_pairs(span, graders))
    return EffectInputs(table=table, tasks=tasks, marks=marks, groups=groups, scale=scale)


def effects_of(inputs: EffectInputs, names: Sequence[str]) -> tuple[MarkEffect, ...]:
    """The effects on these measures, in the order of the groups of marks and then of the measures."""
    by_measure = [estimate_effects(inputs, MEASURES[name], is_reward=name == REWARD) for name in names]
    return tuple(effect for group_effects in zip(*by_measure, strict=True) for effect in group_effects)


def stored_reading() -> SinceReading | None:
    """Marks and effects as the worker last stored them. None if it has stored none, or another version did."""
    stored = StoredReading.objects.filter(name=STORED_NAME).first()
    if stored is None:
        return None
    try:
        return replace(STORED_FORM.validate_python(stored.value), read_at=stored.read_at)
    except ValidationError:
        return None


def marks_during(reading: SinceReading | None, span: Span) -> tuple[TimeMark, ...]:
    """The marks of a stored reading that are in the span, the oldest first."""
    if reading is None:
        return ()
    return tuple(mark for mark in reading.marks if span.first <= mark.day <= span.last)


def outages_during(reading: SinceReading | None, span: Span) -> tuple[TimeMark, ...]:
    """The outages of a stored reading that overlap the span, the oldest first."""
    if reading is None:
        return ()
    outages = [mark for mark in reading.marks if mark.kind is MarkKind.OUTAGE and mark.day <= span.last]
    return tuple(mark for mark in outages if mark.until is None or mark.until > midnight(span.first))


def read(now: dt.datetime) -> SinceReading:
    """The marks of the last MOST_DAYS, the oldest first, and the effects of the newest marks."""
    inputs = load_inputs(now, ALL_MEASURES)
    marks = tuple(sorted(inputs.marks, key=lambda mark: (mark.at, mark.key)))
    return SinceReading(marks=marks, effects=effects_of(inputs, ALL_MEASURES), read_at=None)


def store(now: dt.datetime) -> None:
    """Store marks and effects for pages, if what they are computed from or the day has changed since."""
    keys = last_keys(Session, Settlement, Grade, Evidence, AuditEvent, *TABLES_OF_MARKS)
    inputs = f"{timezone.localdate(now)} {keys}"
    StoredReading.objects.renew(STORED_NAME, inputs, lambda: STORED_FORM.dump_python(read(now), mode="json"), now)
