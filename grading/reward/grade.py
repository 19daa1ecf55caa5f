"""The value that every grader returns: a source's grade of a session, before it becomes a row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grading.vocabulary import Reason, Source, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGrade:
    """One source's grade of one session.

    `value` is in [0, 1], rounded to micro-units (6 decimals), and present iff `status` is scored. `detail` is one
    readable sentence. `evidence` is JSON: the terms of the sum, so that a page can show them. `version` names the rules
    that computed the grade. Raises ValueError for a value out of range or without its status, and for no reason.
    """

    source: Source
    status: Status
    value: float | None = None
    reason: Reason = Reason.NONE
    detail: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    def __post_init__(self) -> None:
        if (self.status is Status.SCORED) != (self.value is not None):
            raise ValueError(f"a grade has a value iff it is scored; got status={self.status}, value={self.value}")
        if self.status is not Status.SCORED and self.reason is Reason.NONE:
            raise ValueError(f"a grade without a value needs a reason; source={self.source}, status={self.status}")
        if self.value is not None:
            object.__setattr__(self, "value", checked_value(self.value))


def checked_value(value: float) -> float:
    """A grade in [0, 1] rounded to micro-units. Raises ValueError for anything else, NaN and infinities included."""
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError(f"a grade must be a number from 0 to 1; got {value!r}")
    return round(value, 6)


def scored(source: Source, value: float, *, version: str, detail: str = "", **evidence: Any) -> SourceGrade:
    return SourceGrade(
        source=source, status=Status.SCORED, value=value, detail=detail, evidence=evidence, version=version
    )


def unscored(
    source: Source,
    reason: Reason,
    *,
    version: str,
    detail: str = "",
    status: Status = Status.UNSCORED,
    **evidence: Any,
) -> SourceGrade:
    return SourceGrade(source=source, status=status, reason=reason, detail=detail, evidence=evidence, version=version)
