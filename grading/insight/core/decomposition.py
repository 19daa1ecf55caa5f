"""The difference of the mean of two periods in four parts: other work, other results, other graders, other gaps.

A period's mean is a function of four things: `share[k]`, the share of its sessions that are work of cell k;
`graded[k]`, the share of those that have a value; `level[k]`, their mean as the reference grader would read them; and
`scale[k]`, how much their graders read above the reference. It is

    Σ share·graded·(level + scale) / Σ share·graded

Each part is the change of the mean when one of the four goes from its value before to that after, averaged over all
orders in which the four can change: the Shapley value (Shorrocks, "Decomposition procedures for distributional
analysis", Journal of Economic Inequality 2013). So the parts add up and depend on no order. Things that cannot be told
apart change together and have one sum.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from grading.insight.core.bridge import GraderScale
from grading.insight.core.cells import CellTable, Floats, GraderIdentity, group_sums
from grading.insight.core.day_effects import DayEffects
from grading.insight.core.means import Z90, mean_of
from grading.insight.core.period_model import NO_BRIDGE, PeriodModel, find_joint, find_uncompared, model_periods
from grading.insight.core.results import CategoryContribution, ChangePart, PartName, Span

FACTORS = (PartName.MIX, PartName.WITHIN, PartName.GRADERS, PartName.MISSING)
# Two graders that nothing connects are taken to differ by at most this.
MAX_OFFSET = 0.5

Groups = Sequence[tuple[PartName, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInputs:
    """What a difference is computed from. `table` has the rows of both periods alone, each with at least one value. Its
    column "grader" has the readers, and its measure "correction", if there is one, what people's grades add to them.
    """

    table: CellTable
    before: Span
    after: Span
    measure: str
    scale: GraderScale
    effects: DayEffects


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeParts:
    """The parts of a difference, in all and by category, and the difference with its 90 % interval.

    `within_least` and `within_most` are as in `PeriodChange`. `uncompared`: the graders, old and new, that have to read
    the same sessions so that they can be compared; None if that isn't what is missing.
    """

    parts: tuple[ChangePart, ...]
    categories: tuple[CategoryContribution, ...]
    difference: float
    low: float
    high: float
    within_least: float
    within_most: float
    uncompared: tuple[GraderIdentity, GraderIdentity] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Each part as a linear function of levels and scales: its coefficients, of shape (parts, periods, cells)."""

    on_level: Floats
    on_scale: Floats


def decompose(inputs: ChangeInputs) -> ChangeParts:
    """Split the difference of the two periods' means into parts, by the module's formulas."""
    model = model_periods(inputs.table, inputs.after, inputs.measure, inputs.scale.graders)
    joint, unconnected = find_joint(model, inputs.scale)
    groups, reasons = merge_groups(joint)
    has_scale = (PartName.GRADERS,) in groups
    coefficients = shapley_coefficients(model, groups)
    values = cell_values(model, inputs.scale, coefficients, has_scale=has_scale)
    errors = standard_errors(inputs, model, coefficients, has_scale=has_scale)
    session_counts = _count_sessions(model)
    parts = []
    for group, why, cells, error in zip(groups, reasons, values, errors, strict=True):
        # A few sessions may have graders that nothing compares: how much these may differ widens the interval.
        slack = unconnected * MAX_OFFSET if group in {(PartName.WITHIN,), (PartName.GRADERS,)} else 0.0
        value, half = float(cells.sum()), float(Z90 * error) + slack
        sessions = max(session_counts[name] for name in group)
        parts.append(
            ChangePart(names=group, value=value, low=value - half, high=value + half, sessions=sessions, why=why)
        )
    # The coefficients of the whole difference, of which it is the only part.
    whole = Coefficients(
        on_level=coefficients.on_level.sum(axis=0, keepdims=True),
        on_scale=coefficients.on_scale.sum(axis=0, keepdims=True),
    )
    half = float(Z90 * standard_errors(inputs, model, whole, has_scale=has_scale)[0])
    difference = float(values.sum())
    least, most = bound_within(model)
    return ChangeParts(
        parts=tuple(parts),
        categories=_split_by_category(inputs, model, values, groups, reasons),
        difference=difference,
        low=difference - half,
        high=difference + half,
        within_least=least,
        within_most=most,
        uncompared=find_uncompared(model, inputs.scale) if any(NO_BRIDGE in part.why for part in parts) else None,
    )


def merge_groups(joint: Mapping[frozenset[PartName], str]) -> tuple[list[tuple[PartName, ...]], list[str]]:
    """The parts to report, in the order of FACTORS, and why each is not identified, "" if it is.

    `joint` maps factors that can't be told apart to the reason. Sets with a factor in common form one part.
    """
    group_of: dict[PartName, set[PartName]] = {name: {name} for name in FACTORS}
    for names in joint:
        merged = set[PartName]().union(*(group_of[name] for name in names))
        for name in merged:
            group_of[name] = merged
    groups = list(dict.fromkeys(tuple(each for each in FACTORS if each in group_of[name]) for name in FACTORS))
    reasons = []
    for group in groups:
        own = dict.fromkeys(why for names, why in joint.items() if names <= set(group))
        reasons.append("; ".join(own))
    return groups, reasons


def shapley_coefficients(model: PeriodModel, groups: Groups) -> Coefficients:
    """The Shapley value of each group as a linear function of the levels and scales of both periods.

    It is the mean over all orders in which the groups may change: the mean with the group changed minus that without,
    given those that changed before. Of n groups, a set of k others comes before it in k!·(n − k − 1)! of n! orders.
    """
    size, n = model.mean.shape[1], len(groups)
    on_level, on_scale = np.zeros((n, 2, size)), np.zeros((n, 2, size))
    for group in range(n):
        others = [number for number in range(n) if number != group]
        for k in range(n):
            share_of_orders = math.factorial(k) * math.factorial(n - k - 1) / math.factorial(n)
            for changed_before in combinations(others, k):
                for sign, changed in ((1, (*changed_before, group)), (-1, changed_before)):
                    period = _periods_of(groups, changed)
                    weights = sign * share_of_orders * model.weights(period[PartName.MIX], period[PartName.MISSING])
                    on_level[group, period[PartName.WITHIN]] += weights
                    on_scale[group, period[PartName.GRADERS]] += weights
    return Coefficients(on_level=on_level, on_scale=on_scale)


def _periods_of(groups: Groups, changed: Sequence[int]) -> dict[PartName, int]:
    """The period of each factor if the groups with these indexes have changed: 1 if its group has, else 0."""
    return {name: int(number in changed) for number, group in enumerate(groups) for name in group}


def cell_values(model: PeriodModel, scale: GraderScale, coefficients: Coefficients, *, has_scale: bool) -> Floats:
    """The contribution of each cell to each part, with the shape (parts, cells).

    Levels are relative to the overall mean, so that a cell's contribution to the mix does not depend on the zero of the
    measure. This leaves the sum over all cells unchanged, because the coefficients of each part add up to 0.
    """
    levels = model.at_source(model.mean + model.correction)
    if has_scale:
        grader_shift = model.at_source(model.grader_share @ scale.offsets) + model.at_source(model.correction)
        levels = levels - grader_shift
    else:
        grader_shift = np.zeros_like(model.mean)
    overall_mean = float((model.count * model.mean).sum() / model.count.sum())
    from_level = (coefficients.on_level * (levels - overall_mean)).sum(axis=1)
    from_graders = (coefficients.on_scale * grader_shift).sum(axis=1)
    return np.asarray(from_level + from_graders, dtype=np.float64)


def standard_errors(inputs: ChangeInputs, model: PeriodModel, coefficients: Coefficients, *, has_scale: bool) -> Floats:
    """The standard error of each part, from the errors of the cells' means, of whole days and of the graders' offsets.

    Which work arrived and which sessions were graded is observed, and has no error. `has_scale`: the graders' offsets
    are a part of their own, and taken out of the levels.
    """
    scale = inputs.scale
    # The coefficients of what was observed. The mean of one period and cell may stand for the levels of both periods.
    on_mean = np.zeros_like(coefficients.on_level)
    on_offset = np.zeros((len(on_mean), len(scale.graders)))
    for period in (0, 1):
        for cell, source in enumerate(model.source[period]):
            on_mean[:, source, cell] += coefficients.on_level[:, period, cell]
            if has_scale:
                change = coefficients.on_scale[:, period, cell] - coefficients.on_level[:, period, cell]
                on_offset += np.outer(change, model.grader_share[source, cell])
    variance_of_mean = np.divide(
        inputs.effects.session, model.count, out=np.zeros_like(model.count), where=model.count > 0
    )
    variance = (on_mean**2 * variance_of_mean).sum(axis=(1, 2))
    on_day = _day_coefficients(inputs, model, on_mean)
    variance += _quadratic_form(on_day, inputs.effects.covariance(on_day.shape[1]))
    variance += _quadratic_form(on_offset, scale.covariance)
    return np.asarray(np.sqrt(variance), dtype=np.float64)


def _day_coefficients(inputs: ChangeInputs, model: PeriodModel, on_mean: Floats) -> Floats:
    """The coefficients of the effects of whole days, (parts, days), from those of the cells' means `on_mean`.

    A row of the table has a part in its cell's mean in proportion to its number of values.
    """
    table = inputs.table
    period = (table.days >= inputs.after.first.toordinal()).astype(int)
    count, count_of_cell = table.sums[inputs.measure].count, model.count[period, model.work.codes]
    share = np.divide(count, count_of_cell, out=np.zeros_like(count), where=count_of_cell > 0)
    on_row = on_mean[:, period, model.work.codes] * share
    first, last = int(table.days.min()), int(table.days.max())
    return np.array([group_sums(table.days - first, part, last - first + 1) for part in on_row])


def _quadratic_form(coefficients: Floats, covariance: Floats) -> Floats:
    """The variance c·C·c of each row c of `coefficients`, (parts,), with C the `covariance`."""
    return np.asarray(((coefficients @ covariance) * coefficients).sum(axis=1), dtype=np.float64)


def _count_sessions(model: PeriodModel) -> dict[PartName, int]:
    """How many sessions each part is about: those of changed work, of work in both periods, of changed graders, and
    those without a grade.
    """
    values_of_grader = (model.grader_share * model.count[:, :, None]).sum(axis=1)
    graders = values_of_grader / values_of_grader.sum(axis=1, keepdims=True)
    common = (model.count > 0).all(axis=0)
    changed_work = float(np.abs(np.diff(model.share, axis=0)).sum() / 2 * model.sessions[1].sum())
    changed_graders = float(np.abs(np.diff(graders, axis=0)).sum() / 2 * model.count[1].sum())
    return {
        PartName.MIX: round(changed_work),
        PartName.WITHIN: round(float(model.count[1, common].sum())),
        PartName.GRADERS: round(changed_graders),
        PartName.MISSING: round(float((model.sessions - model.count).sum())),
    }


def _split_by_category(
    inputs: ChangeInputs, model: PeriodModel, values: Floats, groups: Groups, reasons: Sequence[str]
) -> tuple[CategoryContribution, ...]:
    """Each category's share of the parts of the change, the category with the most sessions first. `values` has a row
    for each of `groups` and a column for each cell of the work model.
    """
    changes = []
    categories = np.array(model.work.categories)
    for name in dict.fromkeys(model.work.categories):
        cells = categories == name
        rows = inputs.table.where(cells[model.work.codes])
        own = values[:, cells].sum(axis=1)
        sessions = round(float(rows.sessions.sum()))
        parts = tuple(
            ChangePart(names=group, value=float(each), low=None, high=None, sessions=sessions, why=why)
            for group, each, why in zip(groups, own, reasons, strict=True)
        )
        change = CategoryContribution(
            name=name,
            before=mean_of(rows.during(inputs.before), inputs.measure),
            after=mean_of(rows.during(inputs.after), inputs.measure),
            parts=parts,
            difference=float(own.sum()),
        )
        changes.append(change)
    return tuple(sorted(changes, key=lambda change: -change.after.sessions - change.before.sessions))


def bound_within(model: PeriodModel) -> tuple[float, float]:
    """The part "within", if all missing values were 0, and if all were 1: the smaller first."""
    coefficients = shapley_coefficients(model, [(name,) for name in FACTORS])
    weights = coefficients.on_level[FACTORS.index(PartName.WITHIN)]
    results = []
    for value in (0.0, 1.0):
        filled = model.at_source(model.graded * model.mean + (1 - model.graded) * value)
        results.append(float((weights * filled).sum()))
    return min(results), max(results)
