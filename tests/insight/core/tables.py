"""Tables of cells for tests, from lists of sessions."""

import datetime as dt

import numpy as np

from grading.insight.core.cells import CellColumn, CellTable, GraderIdentity, MeasureSums

MONDAY = dt.date(2026, 3, 2)
JUDGE = GraderIdentity("judge", "j", "r1", "v")
NEW_JUDGE = GraderIdentity("judge", "j", "r2", "v")


def table(rows):
    """A table with a cell for each session: dicts with a day from 0, a reward or None, and columns."""
    rewards = [row.get("reward") for row in rows]
    known = np.array([reward is not None for reward in rewards], dtype=float)
    values = np.array([0.0 if reward is None else reward for reward in rewards])
    names = ("category", "project", "harness", "version", "model", "agent", "task")
    columns = {name: CellColumn.from_values([row.get(name, "") for row in rows]) for name in names}
    graders = [
        GraderIdentity() if reward is None else row.get("grader", JUDGE)
        for row, reward in zip(rows, rewards, strict=True)
    ]
    columns["grader"] = CellColumn.from_values(graders)
    return CellTable(
        days=np.array([MONDAY.toordinal() + row["day"] for row in rows], dtype=np.int64),
        columns=columns,
        sessions=np.ones(len(rows)),
        provisional=np.zeros(len(rows)),
        sums={"reward": MeasureSums(count=known, total=values, squares=values**2)},
    )


def day(number):
    return MONDAY + dt.timedelta(days=number)
