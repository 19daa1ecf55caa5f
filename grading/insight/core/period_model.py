"""Two periods by cell of like work, and which parts of their difference can be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grading.insight.core.bridge import GraderScale
from grading.insight.core.cells import CellTable, Floats, GraderIdentity, group_sums
from grading.insight.core.results import PartName, Span
from grading.insight.core.work import WorkCells, group_work
from grading.vocabulary import Source

# The parts "mix" and "within" are told apart only if at least this share of each period is work that the other has too,
# and as large a share has a category or a project.
MIN_COMMON = 0.5
# At most this share of the values may have moved to graders that nothing compares with the earlier ones. Such graders
# are assumed to read alike, and the interval is widened by how much they may differ.
MAX_UNCONNECTED = 0.05
# If a larger share than this has no grade, and the periods' shares differ by a third of this, the selection of sessions
# that are graded may explain the part "within".
MAX_MISSING = 0.3

NO_WORK = "most sessions have neither a category nor a project"
NO_COMMON_WORK = "hardly any work occurs in both periods"
NO_BRIDGE = "the graders changed, and too few sessions were graded by both"
MANY_MISSING = "many sessions have no grade"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodModel:
    """Two periods by cell of like work. Arrays have a row for each period (0, 1) and a column for each cell.

    `sessions` counts sessions, and `count` those with a value. `mean` is the mean of the readings, and `correction`
    what people's corrections add to it on average. `source[p, k]` is the period whose level is used for period p: the
    other period if p has no value in cell k. `grader_share[p, k, g]` is the share of grader g in the values of a cell.
    `share` and `graded` are as in `decomposition`.

    `one_sided` is the share of a period's values in cells that the other period lacks, and `nameless` the share of its
    values on work without category and project. Both are those of the period with the larger share.
    """

    work: WorkCells
    sessions: Floats
    count: Floats
    mean: Floats
    correction: Floats
    source: NDArray[np.int64]
    grader_share: Floats
    share: Floats
    graded: Floats
    one_sided: float
    nameless: float

    def weights(self, mix: int, missing: int) -> Floats:
        """The weight of each cell in a mean with the work of period `mix` and the gaps in grading of `missing`."""
        product = self.share[mix] * self.graded[missing]
        if not product.any():  # none of this work was graded in that period
            product = self.share[mix]
        return np.asarray(product / product.sum(), dtype=np.float64)

    def at_source(self, values: Floats) -> Floats:
        """`values` (periods, cells) with each value taken from the period that is used for it, `source`."""
        return np.asarray(values[self.source, np.arange(self.source.shape[1])], dtype=np.float64)


def model_periods(table: CellTable, after: Span, measure: str, graders: Sequence[GraderIdentity]) -> PeriodModel:
    """The model of the rows of `table`; those from the first day of `after` on are the second period.

    Each period has at least one value. If too few projects are in both periods, only categories are compared.
    """
    is_after = (table.days >= after.first.toordinal()).astype(np.float64)
    model = _model(table, is_after, measure, graders, by_project=True)
    if model.one_sided > 1 - MIN_COMMON:
        return _model(table, is_after, measure, graders, by_project=False)
    return model


def _model(
    table: CellTable, is_after: Floats, measure: str, graders: Sequence[GraderIdentity], *, by_project: bool
) -> PeriodModel:
    """The model of these rows, with cells by category and, if `by_project`, by project. `is_after` is 1 or 0 by row."""
    sums = table.sums[measure]
    sides = (sums.count * (1 - is_after), sums.count * is_after)
    work = group_work(table, sides, by_project=by_project)
    size = len(work.categories)

    def by_cell(values: Floats) -> Floats:
        """Sums of the rows' values, (periods, cells)."""
        return np.array([group_sums(work.codes, values * side, size) for side in (1 - is_after, is_after)])

    corrections = table.sums["correction"].total if "correction" in table.sums else np.zeros(len(table))
    sessions = by_cell(table.sessions)
    count = by_cell(sums.count)
    total = by_cell(sums.total - corrections)
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    correction = np.divide(by_cell(corrections), count, out=np.zeros_like(total), where=count > 0)
    period = np.array([[0], [1]])
    source = np.where(count > 0, period, 1 - period)
    is_grader = np.array([_is_grader(table, grader) for grader in graders], dtype=np.float64)
    grader_count = np.stack([by_cell(sums.count * rows) for rows in is_grader], axis=2)
    graded_share = np.divide(count, sessions, out=np.zeros_like(count), where=sessions > 0)
    # If a period has no session of a cell, the other period tells which share would be graded.
    graded = np.where(sessions > 0, graded_share, graded_share[::-1])
    in_both = (count > 0).all(axis=0)
    nameless = (table.columns["category"].is_one_of({""})) & table.columns["project"].is_one_of({""})
    return PeriodModel(
        work=work,
        sessions=sessions,
        count=count,
        mean=mean,
        correction=correction,
        source=source,
        grader_share=np.divide(
            grader_count, count[:, :, None], out=np.zeros_like(grader_count), where=count[:, :, None] > 0
        ),
        share=sessions / sessions.sum(axis=1, keepdims=True),
        graded=graded,
        one_sided=float((1 - (count * in_both).sum(axis=1) / count.sum(axis=1)).max()),
        nameless=float((by_cell(sums.count * nameless).sum(axis=1) / count.sum(axis=1)).max()),
    )


def _is_grader(table: CellTable, grader: GraderIdentity) -> Floats:
    return table.columns["grader"].is_one_of({grader}).astype(np.float64)


def find_inseparable(model: PeriodModel, scale: GraderScale) -> tuple[dict[frozenset[PartName], str], float]:
    """The sets of parts that can't be told apart, each with the reason.

    Also the share of values that moved to graders which nothing compares with the earlier ones; 0 if that is one of the
    reasons.
    """
    inseparable: dict[frozenset[PartName], str] = {}
    if model.nameless > 1 - MIN_COMMON:
        inseparable[frozenset({PartName.MIX, PartName.WITHIN})] = NO_WORK
    elif model.one_sided > 1 - MIN_COMMON:
        inseparable[frozenset({PartName.MIX, PartName.WITHIN})] = NO_COMMON_WORK
    unconnected = _unconnected_share(model, scale)
    if unconnected > MAX_UNCONNECTED:
        inseparable[frozenset({PartName.WITHIN, PartName.GRADERS})] = NO_BRIDGE
        unconnected = 0.0
    missing = 1 - (model.count.sum(axis=1) / model.sessions.sum(axis=1))
    if float(missing.max()) > MAX_MISSING and float(np.ptp(missing)) > MAX_MISSING / 3:
        inseparable[frozenset({PartName.WITHIN, PartName.MISSING})] = MANY_MISSING
    return inseparable, unconnected


def share_changes(model: PeriodModel) -> Floats:
    """For each grader, the change of its share of the values from period 0 to period 1, as an array (graders,).

    Only cells with values in both periods count. A cell whose graders have the same shares in both adds 0, so it does
    not matter whether different work has different graders. A grader that lost values is below 0.
    """
    in_both = (model.count > 0).all(axis=0)
    cell_weight = (model.weights(0, 0) + model.weights(1, 1)) / 2 * in_both
    change = model.grader_share[1] - model.grader_share[0]  # (cells, graders)
    return np.asarray(cell_weight @ change, dtype=np.float64)


def _unconnected_share(model: PeriodModel, scale: GraderScale) -> float:
    """The share of values that moved from graders of one component to graders of another, as in `share_changes`.

    The earlier and the later graders of these values can't be compared.
    """
    return float(np.abs(np.bincount(scale.components, weights=share_changes(model))).sum() / 2)


def find_uncompared(model: PeriodModel, scale: GraderScale) -> tuple[GraderIdentity, GraderIdentity] | None:
    """Two graders (old, new) that can't be compared: a grader that lost values, and a judge that gained values.

    The judge with the largest gain goes first, and for it the grader with the largest loss. None if all such graders
    can be compared.
    """
    changes = share_changes(model)
    order = np.argsort(changes)
    losing = [grader for grader in order if changes[grader] < 0]
    gaining = [grader for grader in reversed(order) if changes[grader] > 0]
    for new in gaining:
        if scale.graders[new].source != Source.JUDGE:
            continue
        for old in losing:
            if scale.components[old] != scale.components[new]:
                return scale.graders[old], scale.graders[new]
    return None
