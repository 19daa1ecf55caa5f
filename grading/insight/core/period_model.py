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

# Mix and within are told apart only if at least this share of either period is work that the other has too, and as
# much has a category or a project at all.
MIN_COMMON = 0.5
# At most this share of the sessions may have gone to graders that nothing compares with those before. They count as if
# they read alike, and the interval says how much that may be off.
MAX_UNCONNECTED = 0.05
# If a larger share has no grade, and the shares differ by a third of this, which sessions of a kind are graded may
# explain the part "within".
MAX_MISSING = 0.3

NO_WORK = "most sessions have neither a category nor a project"
NO_COMMON_WORK = "hardly any work occurs in both periods"
NO_BRIDGE = "the graders changed, and too few sessions were graded by both"
MANY_MISSING = "many sessions have no grade"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodModel:
    """Two periods by cell of like work. Arrays have a row for each period and a column for each cell.

    `mean` is that of the readings, and `correction` how much people's corrections of them add on average.
    `source[p, k]`: the period whose level stands for that of period p, which is the other one where p has no value.
    `grader_share[p, k, g]`: the share of grader g in the values of a cell.
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
        """The weight of each cell in a mean with the work of period `mix` and the gaps of period `missing`."""
        product = self.share[mix] * self.graded[missing]
        if not product.any():  # none of this work was graded then
            product = self.share[mix]
        return np.asarray(product / product.sum(), dtype=np.float64)

    def at_source(self, values: Floats) -> Floats:
        """`values` of each period and cell, taken from the period that stands for it."""
        return np.asarray(values[self.source, np.arange(self.source.shape[1])], dtype=np.float64)


def model_periods(table: CellTable, after: Span, measure: str, graders: Sequence[GraderIdentity]) -> PeriodModel:
    """`table` has the rows of both periods, each with at least one value; those from the first day of `after` on are
    the second period. If projects come and go too fast to be compared, only categories are.
    """
    is_after = (table.days >= after.first.toordinal()).astype(np.float64)
    model = _model(table, is_after, measure, graders, by_project=True)
    if model.one_sided > 1 - MIN_COMMON:
        return _model(table, is_after, measure, graders, by_project=False)
    return model


def _model(
    table: CellTable, is_after: Floats, measure: str, graders: Sequence[GraderIdentity], *, by_project: bool
) -> PeriodModel:
    sums = table.sums[measure]
    sides = (sums.count * (1 - is_after), sums.count * is_after)
    work = group_work(table, sides, by_project=by_project)
    size = len(work.categories)

    def by_cell(values: Floats) -> Floats:
        return np.array([group_sums(work.codes, values * side, size) for side in (1 - is_after, is_after)])

    corrected = table.sums["correction"].total if "correction" in table.sums else np.zeros(len(table))
    sessions, count, total = by_cell(table.sessions), by_cell(sums.count), by_cell(sums.total - corrected)
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    correction = np.divide(by_cell(corrected), count, out=np.zeros_like(total), where=count > 0)
    own = np.array([[0], [1]]) * np.ones(size)
    source = np.where(count > 0, own, 1 - own).astype(int)
    is_grader = np.array([_is_grader(table, grader) for grader in graders], dtype=np.float64)
    grader_count = np.stack([by_cell(sums.count * rows) for rows in is_grader], axis=2)
    graded_share = np.divide(count, sessions, out=np.zeros_like(count), where=sessions > 0)
    # Where a period has no session of a cell, how many would be graded is taken from the other.
    graded = np.where(sessions > 0, graded_share, graded_share[::-1])
    common = (count > 0).all(axis=0)
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
        one_sided=float((1 - (count * common).sum(axis=1) / count.sum(axis=1)).max()),
        nameless=float((by_cell(sums.count * nameless).sum(axis=1) / count.sum(axis=1)).max()),
    )


def _is_grader(table: CellTable, grader: GraderIdentity) -> Floats:
    return table.columns["grader"].is_one_of({grader}).astype(np.float64)


def find_joint(model: PeriodModel, scale: GraderScale) -> tuple[dict[frozenset[PartName], str], float]:
    """Which parts cannot be told apart, with the reason, and the share of unconnected graders that is tolerated."""
    joint: dict[frozenset[PartName], str] = {}
    if model.nameless > 1 - MIN_COMMON:
        joint[frozenset({PartName.MIX, PartName.WITHIN})] = NO_WORK
    elif model.one_sided > 1 - MIN_COMMON:
        joint[frozenset({PartName.MIX, PartName.WITHIN})] = NO_COMMON_WORK
    unconnected = _unconnected_share(model, scale)
    if unconnected > MAX_UNCONNECTED:
        joint[frozenset({PartName.WITHIN, PartName.GRADERS})] = NO_BRIDGE
        unconnected = 0.0
    missing = 1 - (model.count.sum(axis=1) / model.sessions.sum(axis=1))
    if float(missing.max()) > MAX_MISSING and float(np.ptp(missing)) > MAX_MISSING / 3:
        joint[frozenset({PartName.WITHIN, PartName.MISSING})] = MANY_MISSING
    return joint, unconnected


def moves_between_graders(model: PeriodModel) -> Floats:
    """For each grader, which share of the values of like work went to it, below 0 if they went to others.

    Kinds of work with rubrics of their own don't count, as long as each keeps its rubric.
    """
    weights = (model.weights(0, 0) + model.weights(1, 1)) / 2 * (model.count > 0).all(axis=0)
    return np.asarray(weights @ (model.grader_share[1] - model.grader_share[0]), dtype=np.float64)


def _unconnected_share(model: PeriodModel, scale: GraderScale) -> float:
    """Which share of the values of like work went from graders of one component to those of another, which nothing
    compares.
    """
    return float(np.abs(np.bincount(scale.components, weights=moves_between_graders(model))).sum() / 2)


def find_uncompared(model: PeriodModel, scale: GraderScale) -> tuple[GraderIdentity, GraderIdentity] | None:
    """The judge that most values of like work went to, and the grader that most of them came from, of those that
    nothing compares.
    """
    moves = moves_between_graders(model)
    order = np.argsort(moves)
    for new in reversed(order):
        for old in order:
            is_judge = scale.graders[new].source == Source.JUDGE
            if is_judge and moves[old] < 0 < moves[new] and scale.components[old] != scale.components[new]:
                return scale.graders[old], scale.graders[new]
    return None
