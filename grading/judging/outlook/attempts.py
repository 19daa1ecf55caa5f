"""The judge's attempts by outcome. One table of kinds is used for counting and for filtering."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Min, Q, QuerySet
from django.utils import timezone

from grading.days import tomorrow
from grading.judging.outlook.outages import TROUBLE
from grading.models import JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome, JobState
from grading.models.sessions import yours
from grading.vocabulary import Reason

CLASSED = (*TROUBLE, Reason.RATE_LIMITED, Reason.QUOTA_EXHAUSTED, Reason.AUTH, Reason.INPUT_TOO_LARGE)
ATTENTION = (Reason.NEEDS_ATTENTION, Reason.UNREADABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptKind:
    """A kind of attempt; `condition` selects its rows.

    `needs_attention`: a person may have to act. `is_always_shown`: shown even if there are no such attempts.
    """

    name: str
    label: str
    condition: Q
    needs_attention: bool = False
    is_always_shown: bool = False


def _deferred(*reasons: Reason) -> Q:
    return Q(outcome=AttemptOutcome.DEFERRED, reason__in=reasons)


# Every attempt is of exactly one kind.
KINDS = (
    AttemptKind(name="graded", label="Graded", condition=Q(outcome=AttemptOutcome.GRADED), is_always_shown=True),
    AttemptKind(
        name="limited", label="Rate limited, 429", condition=_deferred(Reason.RATE_LIMITED), is_always_shown=True
    ),
    AttemptKind(name="trouble", label="Overloaded or unreachable", condition=_deferred(*TROUBLE), is_always_shown=True),
    AttemptKind(
        name="exhausted",
        label="Quota exhausted",
        condition=_deferred(Reason.QUOTA_EXHAUSTED),
        needs_attention=True,
        is_always_shown=True,
    ),
    AttemptKind(
        name="refused-key", label="Key or model refused", condition=_deferred(Reason.AUTH), needs_attention=True
    ),
    AttemptKind(
        name="unusable",
        label="Declined, or no verdict",
        condition=Q(outcome__in=(AttemptOutcome.REFUSED, AttemptOutcome.INVALID)) | _deferred(Reason.INPUT_TOO_LARGE),
        is_always_shown=True,
    ),
    AttemptKind(name="attention", label="Not understood", condition=_deferred(*ATTENTION), needs_attention=True),
    AttemptKind(
        name="other",
        label="Put off for another reason",
        condition=Q(outcome=AttemptOutcome.DEFERRED) & ~Q(reason__in=(*CLASSED, *ATTENTION)),
    ),
    AttemptKind(name="lost", label="Lost with its worker", condition=Q(outcome=AttemptOutcome.LOST)),
    AttemptKind(name="batched", label="In a batch", condition=Q(outcome=AttemptOutcome.RUNNING, batch__isnull=False)),
    AttemptKind(name="running", label="Running now", condition=Q(outcome=AttemptOutcome.RUNNING, batch=None)),
)
BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTally:
    """How many attempts were of one kind, and how many of their jobs are done by now."""

    kind: AttemptKind
    attempts: int
    jobs: int
    jobs_done: int


def tallies(attempts: QuerySet[JudgeAttempt]) -> list[AttemptTally]:
    """A tally for each kind, in one query."""
    counts: dict[str, Any] = {}
    for index, kind in enumerate(KINDS):
        is_done = kind.condition & Q(job__state=JobState.DONE)
        counts[f"attempts_{index}"] = Count("pk", filter=kind.condition)
        counts[f"jobs_{index}"] = Count("job", filter=kind.condition, distinct=True)
        counts[f"done_{index}"] = Count("job", filter=is_done, distinct=True)
    counted = attempts.order_by().aggregate(**counts)
    return [
        AttemptTally(
            kind=kind,
            attempts=counted[f"attempts_{index}"],
            jobs=counted[f"jobs_{index}"],
            jobs_done=counted[f"done_{index}"],
        )
        for index, kind in enumerate(KINDS)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """How many jobs of `new` sessions and of the `backlog` wait. `next_due` is when the next job is due, None without
    jobs.

    Of these jobs, `reserved` are for sessions drawn to represent their arm's abstentions, and `over_quota` wait because
    their token's quota for the day is spent.
    """

    new: int
    backlog: int
    reserved: int
    over_quota: int
    next_due: dt.datetime | None

    @property
    def jobs(self) -> int:
        return self.new + self.backlog


def waiting_jobs() -> WaitingJobs:
    """The counts of waiting jobs, in one query."""
    midnight = tomorrow(timezone.now())
    counts = (
        JudgeJob.objects.queued()
        .filter(yours())
        .order_by()
        .aggregate(
            new=Count("pk", filter=Q(backlog=False)),
            backlog=Count("pk", filter=Q(backlog=True)),
            reserved=Count("pk", filter=Q(reserved=True)),
            over_quota=Count("pk", filter=Q(reason=Reason.BUDGET_SPENT, next_attempt_at=midnight)),
            next_due=Min("next_attempt_at"),
        )
    )
    return WaitingJobs(**counts)
