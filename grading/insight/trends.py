"""Means of a measure by day or week, from sums that the database computes.

Rewards are those of the current settlements, so a correction changes each figure that its session is in.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import sqrt
from typing import Any, Final

from django.db.models import Case, Count, F, FloatField, IntegerField, Q, QuerySet, Sum, TextField, Value, When
from django.db.models.functions import Cast
from scipy.special import ndtri, stdtrit

from bandit.models import Arm
from grading.days import midnight
from grading.insight.core.measures import MEASURES, Measure, MeasureUnit
from grading.insight.core.results import Mean, Span, Trend, TrendLine, TrendPoint, TrendSplit, TrendStep
from grading.insight.loading import CellFilter
from grading.models import Session
from grading.signals.final_state import TestState

# The quantile at the upper end of a 90 % interval.
UPPER: Final = 0.95
# The path of each split from a session.
PATHS: Final = {
    TrendSplit.CATEGORY: "category",
    TrendSplit.HARNESS: "harness",
    TrendSplit.VERSION: "facts__harness_version",
    TrendSplit.MODEL: "model",
    TrendSplit.AGENT: "agent__name",
    TrendSplit.PROJECT: "project__name",
}
ARM_SPLITS: Final = frozenset({TrendSplit.CATEGORY, TrendSplit.HARNESS})
# The columns of measures whose column has another name. The others are vitals.
COLUMNS: Final = {"reward": "reward_value", "cost": "cost_micro", "tokens": "tokens"}
# Measures that are 0 or 1 of each session, so that their mean is a share of sessions.
YES_OR_NO: Final = frozenset({"final", "suites", "claimed_without_green"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSums:
    """Sums over some sessions: `total` and `squares` of the values, of which `known` are not None."""

    sessions: int = 0
    known: int = 0
    provisional: int = 0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, other: "MeasureSums") -> "MeasureSums":
        return MeasureSums(
            sessions=self.sessions + other.sessions,
            known=self.known + other.known,
            provisional=self.provisional + other.provisional,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )


# By place between the edges.
Row = dict[int, MeasureSums]


def load_trend(
    measure: str,
    span: Span,
    *,
    step: TrendStep = TrendStep.WEEK,
    split: TrendSplit | None = None,
    filters: CellFilter | None = None,
) -> Trend:
    """A measure over the span, by its name in `MEASURES`. Raises KeyError for another name. Constant queries.

    The first and the last week may be shorter than seven days.
    """
    spans, chosen = cut(span, step), MEASURES[measure]
    groups = _sums(narrow(Session.objects.yours(), filters), chosen, spans, split)
    if split in ARM_SPLITS:
        groups = _by_arm(groups)
    whole: Row = {}
    for row in groups.values():
        _add(whole, row)
    lines = [_line(name, row, chosen, spans) for name, row in groups.items()] if split else []
    lines.sort(key=lambda line: (-line.total.sessions, line.name))
    return Trend(measure=chosen, step=step, split=split, whole=_line("", whole, chosen, spans), lines=tuple(lines))


def cut(span: Span, step: TrendStep) -> list[Span]:
    """The days of the span, or its weeks."""
    days = [span.first + dt.timedelta(days=number) for number in range(span.days)]
    if step is TrendStep.DAY:
        return [Span(first=day, last=day) for day in days]
    starts = [day for day in days if day == span.first or day.weekday() == 0]
    ends = [*(day - dt.timedelta(days=1) for day in starts[1:]), span.last]
    return [Span(first=first, last=last) for first, last in zip(starts, ends, strict=True)]


def narrow(sessions: QuerySet[Session], filters: CellFilter | None) -> QuerySet[Session]:
    """The sessions that the filters leave. Merged arms are one."""
    for split, path in PATHS.items():
        name = getattr(filters, split.value, "")
        if name and split in ARM_SPLITS:
            arms = Arm.objects.filter(Q(name=name) | Q(merged_into__name=name), bandit__name=split.value)
            sessions = sessions.filter(**{f"{path}__in": arms.values("pk")})
        elif name:
            sessions = sessions.filter(**{path: name})
    return sessions


def _sums(
    sessions: QuerySet[Session], measure: Measure, spans: Sequence[Span], split: TrendSplit | None
) -> dict[str, Row]:
    """The sums of each group of the split by place; "" is the group of sessions that have no value of it."""
    edges = [midnight(spans[0].first), *(midnight(each.last + dt.timedelta(days=1)) for each in spans)]
    rows = sessions.filter(ended_at__gte=edges[0], ended_at__lt=edges[-1]).order_by()
    if measure.name == "suites":
        rows = rows.annotate(suites_text=Cast("facts__suites", TextField()))
    rows = rows.annotate(place=place_of(edges[1:]), measured=expression(measure))
    groups = {"group": F(PATHS[split])} if split else {}
    aggregates = {
        "sessions": Count("pk"),
        "known": Count("measured"),
        "provisional": Count("pk", filter=Q(reward_final=False)),
        "total": Sum("measured", default=0.0),
        "squares": Sum(F("measured") * F("measured"), default=0.0),
    }
    result: dict[str, Row] = defaultdict(dict)
    for values in rows.values("place", **groups).annotate(**aggregates):
        place, group = values.pop("place"), str(values.pop("group", None) or "")
        _add(result[group], {place: MeasureSums(**values)})
    return result


def place_of(ends: Sequence[dt.datetime], first: int = 0) -> Any:
    """The place of a session's end before the first of these ascending `ends` that is later, as an expression.

    Comparisons of times, which halve the places each, instead of a date in the site's zone, for which SQLite would
    call Python.
    """
    if len(ends) == 1:
        return Value(first)
    half = len(ends) // 2
    before, after = place_of(ends[:half], first), place_of(ends[half:], first + half)
    return Case(When(ended_at__lt=ends[half - 1], then=before), default=after, output_field=IntegerField())


def expression(measure: Measure) -> Any:
    """A measure of a session as an expression, None where it is unknown. For "suites", rows have `suites_text`."""
    if measure.unit is MeasureUnit.SESSIONS:
        return Value(1.0)
    if measure.name == "final":
        return Case(When(reward_final=True, then=Value(1.0)), default=Value(0.0))
    if measure.name == "suites":
        return Case(
            When(suites_text__contains=f'"{TestState.RED}"', then=Value(1.0)),
            When(suites_text__contains=f'"{TestState.GREEN}"', then=Value(0.0)),
            default=None,
            output_field=FloatField(),
        )
    column = COLUMNS.get(measure.name, f"facts__{measure.name}")
    if measure.name in YES_OR_NO:
        return Case(When(**{column: True}, then=Value(1.0)), When(**{column: False}, then=Value(0.0)), default=None)
    return Cast(column, FloatField())


def _by_arm(groups: Mapping[str, Row]) -> dict[str, Row]:
    """Groups by the keys of arms, as groups by name; merged arms are one."""
    arms = Arm.objects.select_related("merged_into").in_bulk([int(key) for key in groups if key])
    names = {str(key): arm.current.name for key, arm in arms.items()}
    result: dict[str, Row] = defaultdict(dict)
    for key, row in groups.items():
        _add(result[names.get(key, "")], row)
    return result


def _add(row: Row, more: Row) -> None:
    for place, sums in more.items():
        row[place] = row.get(place, MeasureSums()).plus(sums)


def _line(name: str, row: Row, measure: Measure, spans: Iterable[Span]) -> TrendLine:
    points = tuple(
        TrendPoint(span=span, mean=mean_of(row.get(place, MeasureSums()), measure)) for place, span in enumerate(spans)
    )
    total = reduce(MeasureSums.plus, row.values(), MeasureSums())
    return TrendLine(name=name, points=points, total=mean_of(total, measure))


def mean_of(sums: MeasureSums, measure: Measure) -> Mean:
    """The mean with its interval: Wilson's for a share of sessions, otherwise Student's."""
    counts = {"sessions": sums.sessions, "known": sums.known, "provisional": sums.provisional}
    if measure.unit is MeasureUnit.SESSIONS:
        return Mean(value=float(sums.sessions), low=None, high=None, **counts)
    if not sums.known:
        return Mean(value=None, low=None, high=None, **counts)
    value = sums.total / sums.known
    low, high = _interval(sums, value, measure)
    return Mean(value=value, low=low, high=high, **counts)


def _interval(sums: MeasureSums, mean: float, measure: Measure) -> tuple[float | None, float | None]:
    n = sums.known
    if n < 2:  # noqa: PLR2004 - one value has no variance
        return None, None
    if measure.name in YES_OR_NO:
        z = float(ndtri(UPPER))
        middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    else:
        # Rounding may leave a tiny negative variance.
        variance = max(sums.squares - n * mean * mean, 0.0) / (n - 1)
        middle, half = mean, float(stdtrit(n - 1, UPPER)) * sqrt(variance / n)
    most = 1.0 if measure.unit in (MeasureUnit.REWARD, MeasureUnit.SHARE) else float("inf")
    return max(middle - half, 0.0), min(middle + half, most)
