"""The difference of the mean of two periods in four parts: other work, other results, other graders, other gaps.

A period's mean is a function of four things: `share[k]`, the share of its sessions that are work of cell k;
`graded[k]`, the share of the cell's sessions that have a value; `level[k]`, their mean as the reference grader would
read them; and `scale[k]`, how much their graders read above the reference. It is

    Σ share·graded·(level + scale) / Σ share·graded

Each part is the change of the mean when one of the four goes from its earlier value to its later one, averaged over all
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
from grading.insight.core.period_model import NO_BRIDGE, PeriodModel, find_inseparable, find_uncompared, model_periods
from grading.insight.core.results import CategoryContribution, ChangePart, PartName, Span

FACTORS = (PartName.MIX, PartName.WITHIN, PartName.GRADERS, PartName.MISSING)
# Two graders that nothing connects are taken to differ by at most this.
MAX_OFFSET = 0.5

Groups = Sequence[tuple[PartName, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInputs:
    """What a difference is computed from. `table` has only rows of the two periods, and values in both periods.

    Its column "grader" has the readers. Its measure "correction", if it has one, is what people's grades add to what
    the readers gave.
    """

    table: CellTable
    before: Span
    after: Span
    measure: str
    scale: GraderScale
    day_effects: DayEffects


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeParts:
    """The parts of a difference, in all and by category, and the difference with its 90 % interval.

    `within_least` and `within_most` are as in `PeriodChange`. `uncompared` are two graders (old, new) that have to read
    the same sessions so that they can be compared; None if graders are not why parts can't be told apart.
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
    inseparable, unconnected = find_inseparable(model, inputs.scale)
    groups, reasons = merge_groups(inseparable)
    separates_graders = (PartName.GRADERS,) in groups
    coefficients = shapley_coefficients(model, groups)
    values = cell_values(model, inputs.scale, coefficients, separates_graders=separates_graders)
    errors = standard_errors(inputs, model, coefficients, separates_graders=separates_graders)
    session_counts = _count_sessions(model)
    parts = []
    for group, why, cells, error in zip(groups, reasons, values, errors, strict=True):
        # A few sessions may have graders that nothing compares: how much these may differ widens the interval.
        slack = unconnected * MAX_OFFSET if group in {(PartName.WITHIN,), (PartName.GRADERS,)} else 0.0
        value = float(cells.sum())
        half = float(Z90 * error) + slack
        sessions = max(session_counts[name] for name in group)
        parts.append(
            ChangePart(names=group, value=value, low=value - half, high=value + half, sessions=sessions, why=why)
        )
    # The whole difference, as if it were the only part.
    whole = Coefficients(
        on_level=coefficients.on_level.sum(axis=0, keepdims=True),
        on_scale=coefficients.on_scale.sum(axis=0, keepdims=True),
    )
    half = float(Z90 * standard_errors(inputs, model, whole, separates_graders=separates_graders)[0])
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


def merge_groups(inseparable: Mapping[frozenset[PartName], str]) -> tuple[list[tuple[PartName, ...]], list[str]]:
    """The parts to report, in the order of FACTORS, and for each the reason why it is not identified, "" if it is.

    `inseparable` maps sets of factors that can't be told apart to the reason. Sets with a factor in common form one
    part.
    """
    group_of: dict[PartName, set[PartName]] = {name: {name} for name in FACTORS}
    for names in inseparable:
        merged = set[PartName]().union(*(group_of[name] for name in names))
        for name in merged:
            group_of[name] = merged
    groups = list(dict.fromkeys(tuple(other for other in FACTORS if other in group_of[name]) for name in FACTORS))
    reasons = []
    for group in groups:
        group_reasons = dict.fromkeys(why for names, why in inseparable.items() if names <= set(group))
        reasons.append("; ".join(group_reasons))
    return groups, reasons


def shapley_coefficients(model: PeriodModel, groups: Groups) -> Coefficients:
    """The Shapley value of each group as a linear function of the levels and scales of both periods.

    In each order in which the groups may change, a group adds a step: the mean once it has changed minus the mean just
    before. The Shapley value is the average step over all orders. Of the n! orders of n groups, k!·(n − k − 1)! have a
    given set of k others before the group.
    """
    n = len(groups)
    cells = model.mean.shape[1]
    on_level, on_scale = np.zeros((n, 2, cells)), np.zeros((n, 2, cells))
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


def cell_values(
    model: PeriodModel, scale: GraderScale, coefficients: Coefficients, *, separates_graders: bool
) -> Floats:
    """The contribution of each cell to each part, with the shape (parts, cells). `separates_graders`: the graders'
    offsets are a part of their own.

    Levels are relative to the overall mean, so that a cell's contribution to the mix does not depend on the zero of the
    measure. This leaves the sum over all cells unchanged, because the coefficients of each part add up to 0.
    """
    levels = model.at_source(model.mean + model.correction)
    if separates_graders:
        grader_shift = model.at_source(model.grader_share @ scale.offsets) + model.at_source(model.correction)
        levels = levels - grader_shift
    else:
        grader_shift = np.zeros_like(model.mean)
    overall_mean = float((model.count * model.mean).sum() / model.count.sum())
    from_level = (coefficients.on_level * (levels - overall_mean)).sum(axis=1)
    from_graders = (coefficients.on_scale * grader_shift).sum(axis=1)
    return np.asarray(from_level + from_graders, dtype=np.float64)


def standard_errors(
    inputs: ChangeInputs, model: PeriodModel, coefficients: Coefficients, *, separates_graders: bool
) -> Floats:
    """The standard error of each part, from the errors of the cells' means, of whole days and of the graders' offsets.

    Which work arrived and which sessions were graded is observed, and has no error. `separates_graders`: the graders'
    offsets are a part of their own, and are taken out of the levels.
    """
    scale = inputs.scale
    # The coefficients of what was observed. The mean of one period and cell may stand for the levels of both periods.
    on_mean = np.zeros_like(coefficients.on_level)
    on_offset = np.zeros((len(on_mean), len(scale.graders)))
    for period in (0, 1):
        for cell, source in enumerate(model.source[period]):
            on_mean[:, source, cell] += coefficients.on_level[:, period, cell]
            if separates_graders:
                change = coefficients.on_scale[:, period, cell] - coefficients.on_level[:, period, cell]
                on_offset += np.outer(change, model.grader_share[source, cell])
    variance_of_mean = np.divide(
        inputs.day_effects.session_variance, model.count, out=np.zeros_like(model.count), where=model.count > 0
    )
    variance = (on_mean**2 * variance_of_mean).sum(axis=(1, 2))
    on_day = _day_coefficients(inputs, model, on_mean)
    variance += _quadratic_form(on_day, inputs.day_effects.covariance(on_day.shape[1]))
    variance += _quadratic_form(on_offset, scale.covariance)
    return np.asarray(np.sqrt(variance), dtype=np.float64)


def _day_coefficients(inputs: ChangeInputs, model: PeriodModel, on_mean: Floats) -> Floats:
    """The coefficients of the effects of whole days, (parts, days). `on_mean` are the coefficients of the cells' means.

    A row of the table contributes to its cell's mean in proportion to its number of values.
    """
    table = inputs.table
    period = (table.days >= inputs.after.first.toordinal()).astype(int)
    count = table.sums[inputs.measure].count
    count_of_cell = model.count[period, model.work.codes]
    share = np.divide(count, count_of_cell, out=np.zeros_like(count), where=count_of_cell > 0)
    on_row = on_mean[:, period, model.work.codes] * share
    first, last = int(table.days.min()), int(table.days.max())
    return np.array([group_sums(table.days - first, on_row_of_part, last - first + 1) for on_row_of_part in on_row])


def _quadratic_form(coefficients: Floats, covariance: Floats) -> Floats:
    """The variance c·C·c of each row c of `coefficients`, as an array (parts,); C is the `covariance`."""
    return np.asarray(((coefficients @ covariance) * coefficients).sum(axis=1), dtype=np.float64)


def _count_sessions(model: PeriodModel) -> dict[PartName, int]:
    """How many sessions each part is about: those of changed work, of work in both periods, of changed graders, and
    those without a grade.
    """
    values_of_grader = (model.grader_share * model.count[:, :, None]).sum(axis=1)
    overall_grader_share = values_of_grader / values_of_grader.sum(axis=1, keepdims=True)
    in_both = (model.count > 0).all(axis=0)
    changed_work = float(np.abs(np.diff(model.share, axis=0)).sum() / 2 * model.sessions[1].sum())
    changed_graders = float(np.abs(np.diff(overall_grader_share, axis=0)).sum() / 2 * model.count[1].sum())
    return {
        PartName.MIX: round(changed_work),
        PartName.WITHIN: round(float(model.count[1, in_both].sum())),
        PartName.GRADERS: round(changed_graders),
        PartName.MISSING: round(float((model.sessions - model.count).sum())),
    }


def _split_by_category(
    inputs: ChangeInputs, model: PeriodModel, values: Floats, groups: Groups, reasons: Sequence[str]
) -> tuple[CategoryContribution, ...]:
    """Each category's share of the parts of the change, the category with the most sessions first.

    `values` has a row for each of `groups` and a column for each cell of the model. `reasons` are by group too.
    """
    contributions = []
    categories = np.array(model.work.categories)
    for name in dict.fromkeys(model.work.categories):
        cells = categories == name
        rows = inputs.table.where(cells[model.work.codes])
        category_values = values[:, cells].sum(axis=1)
        sessions = round(float(rows.sessions.sum()))
        parts = tuple(
            ChangePart(names=group, value=float(value), low=None, high=None, sessions=sessions, why=why)
            for group, value, why in zip(groups, category_values, reasons, strict=True)
        )
        contribution = CategoryContribution(
            name=name,
            before=mean_of(rows.during(inputs.before), inputs.measure),
            after=mean_of(rows.during(inputs.after), inputs.measure),
            parts=parts,
            difference=float(category_values.sum()),
        )
        contributions.append(contribution)
    return tuple(sorted(contributions, key=lambda category: -category.after.sessions - category.before.sessions))


def bound_within(model: PeriodModel) -> tuple[float, float]:
    """The part "within" if all missing values were 0, and if all were 1. The smaller result comes first."""
    coefficients = shapley_coefficients(model, [(name,) for name in FACTORS])
    weights = coefficients.on_level[FACTORS.index(PartName.WITHIN)]
    results = []
    for value in (0.0, 1.0):
        filled = model.at_source(model.graded * model.mean + (1 - model.graded) * value)
        results.append(float((weights * filled).sum()))
    return min(results), max(results)
