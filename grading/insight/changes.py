"""What changed between two periods, in four parts."""

import datetime as dt
from dataclasses import replace
from typing import cast

import numpy as np
from django.utils import timezone

from grading.insight.bridges import load_pairs, make_offer
from grading.insight.core.bridge import PairedReadings, fit_scale
from grading.insight.core.cells import CellColumn, CellTable, GraderIdentity, group_sums
from grading.insight.core.day_effects import DayEffects, estimate_day_effects
from grading.insight.core.decomposition import ChangeInputs, decompose
from grading.insight.core.means import mean_of
from grading.insight.core.measures import MEASURES
from grading.insight.core.results import BridgeOffer, Mean, PeriodChange, Span, TaskChange, TimeMark
from grading.insight.core.tasks import compare_tasks
from grading.insight.core.work import group_work
from grading.insight.loading import CellFilter, load_cells

# How much days differ is estimated from the periods and this time before them.
HISTORY = dt.timedelta(days=28)
# Measures of rewards, which depend on who graded.
GRADED_MEASURES = frozenset({"reward", "final"})
WEEK = 7
MAX_WEEKS = 4
LOW_REWARD, HIGH_REWARD = 0.3, 0.8


def compare(before: Span, after: Span, *, measure: str = "reward", filters: CellFilter | None = None) -> PeriodChange:
    """The difference of the means of two spans in parts. A constant number of queries.

    Raises ValueError if `before` does not end before `after` begins, and KeyError for an unknown measure.
    """
    if before.last >= after.first:
        raise ValueError(f"expected a period that ends before {after.first}; got one until {before.last}")
    whole = Span(first=before.first - HISTORY, last=after.last)
    history = _load_readings(whole, measure, ("category", "project"), filters)
    old_mean = mean_of(history.during(before), measure)
    new_mean = mean_of(history.during(after), measure)
    if not (old_mean.known and new_mean.known):
        return PeriodChange(
            measure=MEASURES[measure], before_span=before, after_span=after, before=old_mean, after=new_mean
        )
    table = history.where(history.is_during(before) | history.is_during(after))
    graders = rank_graders(table, measure)
    pairs = load_pairs(whole, graders)
    scale = fit_scale(graders, pairs)
    day_effects = fit_day_effects(history, measure, after)
    inputs = ChangeInputs(
        table=table, before=before, after=after, measure=measure, scale=scale, day_effects=day_effects
    )
    result = decompose(inputs)
    missing_low, missing_high = _bound_missing(old_mean, new_mean) if measure == "reward" else (None, None)
    return PeriodChange(
        measure=MEASURES[measure],
        before_span=before,
        after_span=after,
        before=old_mean,
        after=new_mean,
        difference=result.difference,
        low=result.low,
        high=result.high,
        parts=result.parts,
        categories=result.categories,
        missing_low=missing_low,
        missing_high=missing_high,
        within_least=result.within_least,
        within_most=result.within_most,
        tasks=_compare_tasks(inputs, filters),
        bridge=_offer_bridge(result.uncompared, pairs, before, filters) if result.uncompared else None,
    )


def _load_readings(
    span: Span, measure: str, columns: tuple[str, ...], filters: CellFilter | None, *, with_task: bool = False
) -> CellTable:
    """The cells of a measure by these columns and by reader. The column "grader" of the table has the readers.

    For the reward, the table also has the measure "correction": what people's grades add to what the readers gave. For
    measures that graders don't give, the grader is empty.
    """
    measures = [measure, "correction"] if measure == "reward" else [measure]
    table = load_cells(span, columns=(*columns, "reader"), measures=measures, filters=filters, with_task=with_task)
    if measure not in GRADED_MEASURES:
        return without_graders(table)
    return replace(table, columns={**table.columns, "grader": table.columns["reader"]})


def without_graders(table: CellTable) -> CellTable:
    """The same table with an empty grader, for a measure that graders don't give."""
    column = CellColumn(labels=(GraderIdentity(),), codes=np.zeros(len(table), dtype=np.int64))
    return replace(table, columns={**table.columns, "grader": column})


def rank_graders(table: CellTable, measure: str) -> list[GraderIdentity]:
    """The graders that gave values, the most frequent first."""
    column = table.columns["grader"]
    counts = group_sums(column.codes, table.sums[measure].count, len(column.labels))
    order = sorted(range(len(column.labels)), key=lambda code: (-counts[code], str(column.labels[code])))
    return [cast("GraderIdentity", column.labels[code]) for code in order if counts[code] > 0]


def fit_day_effects(history: CellTable, measure: str, after: Span) -> DayEffects:
    """How much days differ among sessions of the same work, grader and period (before or after the change)."""
    sums = history.sums[measure]
    is_after = history.days >= after.first.toordinal()
    work = group_work(history, (sums.count * ~is_after, sums.count * is_after))
    keys = np.column_stack([work.codes, history.columns["grader"].codes, is_after])
    _, group = np.unique(keys, axis=0, return_inverse=True)
    return estimate_day_effects(history.days, group.ravel(), sums.count, sums.total, sums.squares)


def _bound_missing(old: Mean, new: Mean) -> tuple[float | None, float | None]:
    """The difference of the means of all sessions if each missing reward were .3, and if each were .8. None without
    missing rewards.
    """
    if not (old.missing or new.missing):
        return None, None
    low = _mean_with(new, LOW_REWARD) - _mean_with(old, LOW_REWARD)
    high = _mean_with(new, HIGH_REWARD) - _mean_with(old, HIGH_REWARD)
    return low, high


def _mean_with(mean: Mean, reward: float) -> float:
    """The mean of all sessions, if each missing value were `reward`."""
    return ((mean.value or 0.0) * mean.known + reward * mean.missing) / mean.sessions


def _compare_tasks(inputs: ChangeInputs, filters: CellFilter | None) -> TaskChange | None:
    """The change on recurring tasks. One query."""
    span = Span(first=inputs.before.first, last=inputs.after.last)
    table = _load_readings(span, inputs.measure, ("task",), filters, with_task=True)
    table = table.where(table.is_during(inputs.before) | table.is_during(inputs.after))
    return compare_tasks(table, inputs)


def _offer_bridge(
    graders: tuple[GraderIdentity, GraderIdentity], pairs: PairedReadings, before: Span, filters: CellFilter | None
) -> BridgeOffer:
    """The offer to have the new grader read sessions that the old one has read. `graders` are (old, new)."""
    old, new = graders
    read_by_both = max(len(pairs.get((old, new), ())), len(pairs.get((new, old), ())))
    return make_offer(old, new, before, read_by_both=read_by_both, filters=filters)


def spans_around(mark: TimeMark, now: dt.datetime) -> tuple[Span, Span] | None:
    """A span before the mark's day, and a span of the same length after it. None if no day has passed since the mark.

    The length is the whole weeks since the mark, at most MAX_WEEKS. In the mark's first week it is the days since then.
    """
    passed = (timezone.localdate(now) - mark.day).days
    whole_weeks = passed // WEEK * WEEK
    days = min(whole_weeks or passed, MAX_WEEKS * WEEK)
    if days < 1:
        return None
    day = dt.timedelta(days=1)
    return (
        Span(first=mark.day - days * day, last=mark.day - day),
        Span(first=mark.day + day, last=mark.day + days * day),
    )


def last_two_weeks(now: dt.datetime) -> tuple[Span, Span]:
    """The last two whole weeks, Monday to Sunday, which the headline and the letter compare."""
    today = timezone.localdate(now)
    monday = today - dt.timedelta(days=today.weekday())
    day = dt.timedelta(days=1)
    week = dt.timedelta(days=WEEK)
    before = Span(first=monday - 2 * week, last=monday - week - day)
    after = Span(first=monday - week, last=monday - day)
    return before, after
