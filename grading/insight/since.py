"""What changed since the newest marks, on like work."""

import datetime as dt

from grading.insight.core.results import MarkEffect
from grading.insight.loading import CellFilter


def find_effects(
    now: dt.datetime, *, measures: tuple[str, ...] = (), filters: CellFilter | None = None
) -> tuple[MarkEffect, ...]:
    """The effects of the five newest marks on the reward and the vitals, or on these measures; the newest mark first,
    and of each mark the reward first.
    """
    raise NotImplementedError
