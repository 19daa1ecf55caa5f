"""Stores outcomes of sessions, from callers, forges and the site's own look-ups."""

from typing import Annotated, Literal

from django.db import transaction
from django.utils import timezone
from pydantic import Field, StringConstraints

from grading.intake.submission import Line, Moment, Strict
from grading.models import OutcomeRecord, Session
from grading.models.outcomes import MAX_KIND, OutcomeResult
from grading.outcomes import contradictions
from grading.witness import Witness


class ReportedOutcome(Strict):
    """What became of a session's work, as somebody reports it."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=MAX_KIND)] = Field(
        description="landed, merged, closed, reverted, ci, tests, deployed, resolved, or a name of your own."
    )
    value: Literal["pass", "fail", "unknown"] | Annotated[float, Field(ge=0, le=1, strict=True)] = Field(
        description="pass, fail, unknown, or a number from 0 to 1."
    )
    observed_at: Moment | None = Field(default=None, description="By default now.")
    url: Line = Field(default="", max_length=500)
    detail: Line = Field(default="", max_length=300)


def record(session: Session, outcome: ReportedOutcome, *, source: str, witness: Witness) -> tuple[OutcomeRecord, bool]:
    """Append an outcome as `append` does, and put the session into the review queue if it contradicts the verdict."""
    with transaction.atomic():
        row, is_new = append(session, outcome, source=source, witness=witness)
        contradictions.check(session, timezone.now())
    return row, is_new


def append(session: Session, outcome: ReportedOutcome, *, source: str, witness: Witness) -> tuple[OutcomeRecord, bool]:
    """Append an outcome. Returns the row, and whether it is new: an outcome of the same kind, source and time is stored
    once.

    Nothing is graded or settled again.
    """
    number = outcome.value if isinstance(outcome.value, float) else None
    result = OutcomeResult(outcome.value) if isinstance(outcome.value, str) else OutcomeResult.NUMBER
    return OutcomeRecord.objects.get_or_create(
        session=session,
        kind=outcome.kind,
        observed_at=outcome.observed_at or timezone.now(),
        source=source,
        defaults={
            "result": result,
            "number": number,
            "url": outcome.url,
            "detail": outcome.detail,
            "witness": witness,
        },
    )
