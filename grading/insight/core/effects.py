"""What changed since the newest marks: a step for each, on like work, adjusted for weekday, harness and grader."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from grading.insight.core.bridge import GraderScale
from grading.insight.core.cells import Booleans, CellTable, Floats, GraderIdentity, Integers, MeasureSums, group_sums
from grading.insight.core.means import Z90
from grading.insight.core.measures import Measure
from grading.insight.core.mixed_model import RIDGE, StepData, StepFit, fit_steps
from grading.insight.core.results import EffectFinding, MarkEffect, MarkKind, TimeMark
from grading.insight.core.sequences import LEVEL, anytime_p, half_width
from grading.insight.core.work import group_work

# Marks with fewer sessions between them can't be told apart.
MIN_BETWEEN = 20
NEWEST = 5
# An interval needs this many sessions on either side of a mark, and sessions of this many days before and after it.
MIN_SESSIONS, MIN_DAYS_BEFORE, MIN_DAYS_AFTER = 20, 10, 3
# Recurring tasks decide a finding if there are at least MIN_TASKS, with MIN_TASK_SESSIONS on either side. The MAX_TASKS
# with the most sessions are used.
MIN_TASKS, MIN_TASK_SESSIONS, MAX_TASKS = 3, 10, 200
# The size of the effects whose intervals are narrowest, in standard deviations of sessions: about .04 of a reward.
SCALE = 0.2
# The probability that the interval of recurring tasks is ever wrong. A claim about agents depends on one of its ends.
TASK_MISS = 0.05
# An interval wider than this many standard deviations says nothing.
MAX_HALF_WIDTH = 3.0

GRADER_MARKS = frozenset({MarkKind.RUBRIC, MarkKind.JUDGE})
NO_BRIDGE = "the graders changed at the same time, and too few sessions were graded by both"
FEW = "too few sessions or days"


# Marks that can't be told apart, the newest first.
MarkGroup = tuple[TimeMark, ...]
# How far a measure may have (fallen, risen) only because grades are missing; both are at least 0.
Guard = tuple[float, float]
NO_GUARD: Guard = (0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectInputs:
    """What effects are estimated from.

    `table` has all sessions of a period, `tasks` those with a task. `marks` are the marks of the period, the newest
    first; `groups` those whose effects are estimated. `scale` has the offsets of graders.
    """

    table: CellTable
    tasks: CellTable
    marks: Sequence[TimeMark]
    groups: Sequence[MarkGroup]
    scale: GraderScale


def group_marks(marks: Sequence[TimeMark], table: CellTable) -> list[MarkGroup]:
    """The NEWEST groups of marks of changes, the newest first. Marks with few sessions between them form one group."""
    ordered = sorted((mark for mark in marks if mark.is_change), key=lambda mark: (mark.at, mark.key), reverse=True)
    groups: list[list[TimeMark]] = []
    for mark in ordered:
        if groups and _count_between(table, mark, groups[-1][-1]) < MIN_BETWEEN:
            groups[-1].append(mark)
        elif len(groups) == NEWEST:
            break
        else:
            groups.append([mark])
    return [tuple(group) for group in groups]


def _count_between(table: CellTable, older: TimeMark, newer: TimeMark) -> float:
    """The number of sessions from the day of one mark to the day before another."""
    between = (table.days >= older.day.toordinal()) & (table.days < newer.day.toordinal())
    return float(table.sessions[between].sum())


def came_after(table: CellTable, mark: TimeMark, marks: Sequence[TimeMark]) -> Booleans:
    """For each cell, whether it came after the mark.

    For a new version or model: the cells that ran with it, or with a later one of the same harness. For other marks:
    the cells of later days; if the mark is about a project or an agent, only the cells of that project or agent.
    """
    if mark.kind in {MarkKind.VERSION, MarkKind.MODEL}:
        later_values = {
            other.value
            for other in marks
            if (other.kind, other.harness) == (mark.kind, mark.harness) and other.at >= mark.at
        }
        name = "version" if mark.kind is MarkKind.VERSION else "model"
        return table.columns["harness"].is_one_of({mark.harness}) & table.columns[name].is_one_of({*later_values})
    rows = np.asarray(table.days > mark.day.toordinal(), dtype=bool)
    if mark.project:
        rows = rows & table.columns["project"].is_one_of({mark.project})
    if mark.agent:
        rows = rows & table.columns["agent"].is_one_of({mark.agent})
    return rows


def estimate_effects(inputs: EffectInputs, measure: Measure, *, is_reward: bool) -> list[MarkEffect]:
    """The effect of each group of marks on a measure, in the order of the groups.

    For a reward, the graders' offsets are subtracted, and the effect of missing grades is bounded.
    """
    if not inputs.groups:
        return []
    all_work = fit_groups(inputs, inputs.table, measure.name, is_reward=is_reward)
    recurring = select_recurring(inputs.tasks, measure.name)
    tasks = fit_groups(inputs, recurring, measure.name, is_reward=is_reward)
    guards = missing_guards(inputs, measure.name) if is_reward else [NO_GUARD] * len(inputs.groups)
    effects = []
    for number, group in enumerate(inputs.groups):
        on_all_work = all_work.bound(number, 1 - LEVEL)
        on_tasks = tasks.bound(number, TASK_MISS)
        counts = all_work.counts(number)
        has_enough_tasks = on_tasks is not None and _count_tasks(tasks, number) >= MIN_TASKS
        deciding = on_tasks if has_enough_tasks else None
        value, low, high = _effect_and_interval(on_all_work)
        task_value, task_low, task_high = _effect_and_interval(deciding)
        effect = MarkEffect(
            marks=group,
            measure=measure,
            effect=value,
            low=low,
            high=high,
            before=counts.before,
            after=counts.after,
            days_before=counts.days_before,
            days_after=counts.days_after,
            tasks=_count_tasks(tasks, number) if has_enough_tasks else 0,
            finding=decide_finding(measure, on_all_work, deciding, guards[number]),
            why="" if on_all_work else _why_no_interval(all_work, number, is_reward=is_reward),
            task_effect=task_value,
            task_low=task_low,
            task_high=task_high,
            p_value=None if on_all_work is None else _p_value(on_all_work, guards[number]),
        )
        effects.append(effect)
    return effects


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectBound:
    """An effect with its interval. `information` is 1 / variance; `scale` is as in `sequences.half_width`."""

    effect: float
    low: float
    high: float
    information: float
    scale: float


def _p_value(bound: EffectBound, guard: Guard) -> float:
    """The anytime-valid p-value of the part of an effect that missing grades can't explain (`missing_guards`)."""
    fall, rise = guard
    beyond_guard = max(0.0, -bound.effect - fall, bound.effect - rise)
    return anytime_p(beyond_guard, bound.information, bound.scale)


def _effect_and_interval(bound: EffectBound | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if bound is None else (bound.effect, bound.low, bound.high)


class SideCounts(NamedTuple):
    """Sessions with a value, and days with such sessions, on either side of a mark."""

    before: int
    after: int
    days_before: int
    days_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFit:
    """The steps of all groups, fitted together to the cells of `table` that have values.

    `after[i, g]`: whether cell i came after group g. `is_about[i, g]`: whether a mark of group g is about the sessions
    of cell i at all. `offset_variance[g]`: the variance of the step of group g due to errors of graders' offsets.
    """

    table: CellTable
    measure: str
    groups: Sequence[MarkGroup]
    after: Booleans
    is_about: Booleans
    fit: StepFit | None
    offset_variance: Floats

    def counts(self, number: int) -> SideCounts:
        """The sessions and days before and after the group with this index."""
        count = self.table.sums[self.measure].count
        after = self.after[:, number]
        first = min(mark.day for mark in self.groups[number]).toordinal()
        before = self.is_about[:, number] & ~after & (self.table.days < first)
        return SideCounts(
            before=round(float(count[before].sum())),
            after=round(float(count[after].sum())),
            days_before=len(np.unique(self.table.days[before])),
            days_after=len(np.unique(self.table.days[after])),
        )

    def bound(self, number: int, miss: float) -> EffectBound | None:
        """The effect of the group with this index, and its interval by a confidence sequence.

        `miss` is the probability that the interval is ever wrong. None if there are too few sessions or days, or the
        interval is too wide to say anything.
        """
        counts = self.counts(number)
        if self.fit is None or min(counts.before, counts.after) < MIN_SESSIONS:
            return None
        if counts.days_before < MIN_DAYS_BEFORE or counts.days_after < MIN_DAYS_AFTER:
            return None
        variance = float(self.fit.covariance[number, number]) + float(self.offset_variance[number])
        information = 1 / variance
        scale = SCALE * self.fit.deviation
        half = half_width(information, scale, miss)
        if half > MAX_HALF_WIDTH * self.fit.deviation:
            return None
        effect = float(self.fit.coefficients[number])
        return EffectBound(effect=effect, low=effect - half, high=effect + half, information=information, scale=scale)


def fit_groups(inputs: EffectInputs, table: CellTable, measure: str, *, is_reward: bool) -> GroupFit:
    """Fit the steps of all groups together. If the table has tasks, work is alike only within a task."""
    table = table.where(table.sums[measure].count > 0)
    shape = (len(table), len(inputs.groups))
    after = np.zeros(shape, dtype=bool)
    is_about = np.zeros(shape, dtype=bool)
    for number, group in enumerate(inputs.groups):
        for mark in group:
            after[:, number] |= came_after(table, mark, inputs.marks)
            is_about[:, number] |= _is_about(table, mark)
    no_columns = np.zeros((len(table), 0))
    graders, shifted = grader_columns(table, measure, inputs.scale) if is_reward else (no_columns, table)
    design = np.column_stack([after.astype(np.float64), *_nuisance(table, measure), graders])
    fit = None
    if len(table):
        sums = shifted.sums[measure]
        days = table.days - int(table.days.min())
        data = StepData(design=design, days=days, count=sums.count, total=sums.total, squares=sums.squares)
        fit = fit_steps(data)
    variance = np.zeros(len(inputs.groups))
    if is_reward and len(table):
        variance = _offset_variance(table, measure, design, inputs.scale, len(inputs.groups))
    return GroupFit(
        table=table,
        measure=measure,
        groups=inputs.groups,
        after=after,
        is_about=is_about,
        fit=fit,
        offset_variance=variance,
    )


def _is_about(table: CellTable, mark: TimeMark) -> Booleans:
    """For each cell, whether the mark is about it: about its harness, project or agent, or about all sessions."""
    rows = np.ones(len(table), dtype=bool)
    for name in ("harness", "project", "agent"):
        value = getattr(mark, name)
        if value:
            rows &= table.columns[name].is_one_of({value})
    return rows


def _nuisance(table: CellTable, measure: str) -> list[Floats]:
    """The columns of the regression that aren't of interest: those for like work, the harness and the weekday."""
    if "task" in table.columns:
        work = table.columns["task"].codes
    else:
        count = table.sums[measure].count
        work = group_work(table, (count, count)).codes if len(table) else table.days  # any empty array
    return [indicators(codes) for codes in (work, table.columns["harness"].codes, table.days % 7)]


def indicators(codes: Integers) -> Floats:
    """A column for each code in use, which is 1 in its rows."""
    used, compact = np.unique(codes, return_inverse=True)
    return np.eye(len(used))[compact]


def grader_columns(table: CellTable, measure: str, scale: GraderScale) -> tuple[Floats, CellTable]:
    """Adjust for graders: an indicator column for each component of graders, and the table with the graders' offsets
    within their component subtracted. Graders of different components can't be compared.
    """
    column = table.columns["grader"]
    labels = [cast("GraderIdentity", label) for label in column.labels]
    offsets = np.array([scale.offset_of(label) for label in labels] or [0.0])
    component_of = dict(zip(scale.graders, scale.components, strict=True))
    components = np.array([component_of.get(label, -1) for label in labels] or [0])
    return indicators(components[column.codes]), table.shifted(measure, -offsets[column.codes])


def _offset_variance(table: CellTable, measure: str, design: Floats, scale: GraderScale, groups: int) -> Floats:
    """The variance of each of the first `groups` coefficients due to errors of the graders' offsets.

    A coefficient is linear in the offsets. How it depends on a grader's offset is the coefficient in a regression of
    that grader's sessions (1 if it read the session, else 0) on the design.
    """
    if not scale.covariance.any():
        return np.zeros(groups)
    count = table.sums[measure].count
    shares = np.column_stack([table.columns["grader"].is_one_of({grader}) for grader in scale.graders])
    weighted = design * count[:, None]
    moments = design.T @ weighted + RIDGE * np.eye(design.shape[1])
    on_offset = np.linalg.solve(moments, weighted.T @ shares.astype(np.float64))[:groups]
    return np.asarray(((on_offset @ scale.covariance) * on_offset).sum(axis=1), dtype=np.float64)


def missing_guards(inputs: EffectInputs, measure: str) -> list[Guard]:
    """For each group: how far the mean may have (fallen, risen) only because other sessions lack a grade than before.

    The change of the share of sessions without a grade is estimated like any effect. If it is beyond chance, the
    sessions that lost their grade are assumed to be the best ones (for a fall) or the worst ones (for a rise).
    """
    table = inputs.table
    sums = table.sums[measure]
    missing = table.sessions - sums.count
    name = "missing"
    is_missing = MeasureSums(count=table.sessions, total=missing, squares=missing)  # a measure of 1 or 0
    fitted = fit_groups(inputs, replace(table, sums={name: is_missing}), name, is_reward=False)
    if fitted.fit is None:
        return [NO_GUARD] * len(inputs.groups)
    mean = float(sums.total.sum()) / max(1.0, float(sums.count.sum()))
    guards = []
    for number in range(len(inputs.groups)):
        change = float(fitted.fit.coefficients[number])
        half_width = Z90 * float(np.sqrt(fitted.fit.covariance[number, number]))
        share = abs(change) if abs(change) > half_width else 0.0
        # How much the mean changes if this share of sessions, all with reward 1 or all with 0, loses or gets grades.
        by_best = share * (1 - mean)
        by_worst = share * mean
        guards.append((by_best, by_worst) if change > 0 else (by_worst, by_best))
    return guards


def select_recurring(table: CellTable, measure: str) -> CellTable:
    """The cells of the tasks that have values on two days or more; at most the MAX_TASKS with the most sessions."""
    count = table.sums[measure].count
    tasks = table.columns["task"]
    size = len(tasks.labels)
    if not size:
        return table
    task_days = np.unique(np.column_stack([tasks.codes, table.days])[count > 0], axis=0)
    days_of_task = np.bincount(task_days[:, 0], minlength=size)
    sessions = group_sums(tasks.codes, count, size) * (days_of_task > 1)  # 0 for a task that doesn't recur
    largest = np.argsort(-sessions, kind="stable")[:MAX_TASKS]
    is_chosen = np.zeros(size, dtype=bool)
    is_chosen[largest] = sessions[largest] > 0
    return table.where(is_chosen[tasks.codes])


def _count_tasks(fitted: GroupFit, number: int) -> int:
    """How many tasks have sessions on both sides of the group with this index; 0 if a side has too few sessions."""
    tasks = fitted.table.columns["task"]
    counts = fitted.counts(number)
    if min(counts.before, counts.after) < MIN_TASK_SESSIONS:
        return 0
    after = fitted.after[:, number]
    return len({*tasks.codes[after].tolist()} & {*tasks.codes[~after].tolist()})


def decide_finding(
    measure: Measure, on_all_work: EffectBound | None, on_tasks: EffectBound | None, guard: Guard
) -> EffectFinding:
    """What an effect shows. `on_tasks` is the effect on recurring tasks alone, None if too few recur."""
    if on_all_work is None:
        return EffectFinding.NOT_ENOUGH
    if not measure.better:
        return EffectFinding.CHANGED if _direction(on_all_work, NO_GUARD) else EffectFinding.UNCLEAR
    for_better_on_tasks = _direction(on_tasks, guard) * measure.better if on_tasks else 0
    if for_better_on_tasks:
        return EffectFinding.WORSE if for_better_on_tasks < 0 else EffectFinding.BETTER
    for_better = _direction(on_all_work, guard) * measure.better
    if for_better:
        return EffectFinding.HARDER_OR_WORSE if for_better < 0 else EffectFinding.EASIER_OR_BETTER
    return EffectFinding.UNCLEAR


def _direction(bound: EffectBound, guard: Guard) -> int:
    """-1 if the effect is below 0 beyond chance and beyond the guard, 1 if it is above, else 0."""
    fall, rise = guard
    if bound.high + fall < 0:
        return -1
    return 1 if bound.low - rise > 0 else 0


def _why_no_interval(fitted: GroupFit, number: int, *, is_reward: bool) -> str:
    """Why the effect of the group with this index has no interval."""
    kinds = {mark.kind for mark in fitted.groups[number]}
    return NO_BRIDGE if is_reward and kinds & GRADER_MARKS else FEW
