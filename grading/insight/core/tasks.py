"""Tasks that recur: the same work before and after a change, so that harder work can't explain it."""

import math
from typing import cast

import numpy as np

from grading.insight.core.bridge import GraderScale
from grading.insight.core.cells import Booleans, CellTable, GraderIdentity, group_sums
from grading.insight.core.decomposition import ChangeInputs
from grading.insight.core.means import Z95
from grading.insight.core.results import TaskChange

# With fewer tasks or sessions on a side, tasks are no reference.
MIN_TASKS, MIN_TASK_SESSIONS = 3, 10


def compare_tasks(table: CellTable, inputs: ChangeInputs) -> TaskChange | None:
    """The mean change on the tasks that have sessions in both periods, each weighted by how well it is known.

    `table` has the sessions with a task of both periods. None if too few tasks recur.
    """
    graders = table.columns["grader"]
    labels = [cast("GraderIdentity", label) for label in graders.labels]
    table = table.where(_has_comparable_graders(table, inputs.scale, labels))
    sums, tasks = table.sums[inputs.measure], table.columns["task"]
    is_after = (table.days >= inputs.after.first.toordinal()).astype(np.float64)
    size = len(tasks.labels)
    # By task: the number of values before and after.
    count_before = group_sums(tasks.codes, sums.count * (1 - is_after), size)
    count_after = group_sums(tasks.codes, sums.count * is_after, size)
    recurs = (count_before > 0) & (count_after > 0)
    n0, n1 = count_before[recurs], count_after[recurs]
    if recurs.sum() < MIN_TASKS or min(n0.sum(), n1.sum()) < MIN_TASK_SESSIONS:
        return None
    # By recurring task: the sums of the readings on the scale of the reference grader.
    offsets = np.array([inputs.scale.offset_of(label) for label in labels])
    corrections = table.sums["correction"].total if "correction" in table.sums else 0.0
    total = sums.total - corrections - offsets[table.columns["grader"].codes] * sums.count
    total_before = group_sums(tasks.codes, total * (1 - is_after), size)[recurs]
    total_after = group_sums(tasks.codes, total * is_after, size)[recurs]
    # The weights with which the mean difference has the least variance.
    weight = n0 * n1 / (n0 + n1)
    weight /= weight.sum()
    value = float((weight * (total_after / n1 - total_before / n0)).sum())
    # The coefficient of each session, by period and task, and of the effect of each day.
    on_session = np.zeros((2, size))
    on_session[0, recurs] = -weight / n0
    on_session[1, recurs] = weight / n1
    first, last = int(table.days.min()), int(table.days.max())
    on_row = on_session[is_after.astype(int), tasks.codes] * sums.count
    on_day = group_sums(table.days - first, on_row, last - first + 1)
    variance = float((weight**2 * (1 / n0 + 1 / n1)).sum()) * inputs.day_effects.session_variance
    variance += float(on_day @ inputs.day_effects.covariance(last - first + 1) @ on_day)
    half = Z95 * math.sqrt(variance)
    sessions = round(float(n0.sum() + n1.sum()))
    return TaskChange(tasks=len(n0), sessions=sessions, value=value, low=value - half, high=value + half)


def _has_comparable_graders(table: CellTable, scale: GraderScale, labels: list[GraderIdentity]) -> Booleans:
    """For each row, whether all sessions of its task were read by graders that can be compared with one another.

    Rows whose grader isn't on the scale don't count, and are False.
    """
    component_of = dict(zip(scale.graders, scale.components, strict=True))
    component = np.array([component_of.get(label, -1) for label in labels])[table.columns["grader"].codes]
    has_grade = component >= 0
    pairs = np.unique(np.column_stack([table.columns["task"].codes, component])[has_grade], axis=0)
    counts = np.bincount(pairs[:, 0].astype(np.int64), minlength=len(table.columns["task"].labels))
    return np.asarray(has_grade & (counts[table.columns["task"].codes] == 1), dtype=bool)
