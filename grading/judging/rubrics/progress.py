"""The progress of a run, what it cost and what it changed, all derived from its jobs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from django.db.models import Count

from grading.judging.outlook import costs
from grading.judging.rubrics.plans import LeftOut
from grading.judging.rubrics.verdicts import verdicts
from grading.models import JudgeAttempt, JudgeJob, JudgeRun
from grading.models.judging import JobState
from grading.vocabulary import Reason

LARGEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How many of the `total` sessions of a run are in which state; `waiting`, `failed` and `left_out` by reason.

    `to_place` sessions have no job yet. `superseded` sessions have a job that a later run took over. In dollars,
    `spent` is the cost of the calls whose cost is known, and `unknown_cost` is the estimate for the other calls.
    """

    total: int
    done: int
    judging: int
    cancelled: int
    superseded: int
    to_place: int
    waiting: Mapping[Reason, int]
    failed: Mapping[Reason, int]
    left_out: Mapping[LeftOut, int]
    spent: float
    unknown_cost: float

    @property
    def ended(self) -> int:
        """How many sessions need nothing more."""
        return self.done + self.cancelled + self.superseded + sum(self.failed.values()) + sum(self.left_out.values())

    @property
    def is_over(self) -> bool:
        return not self.to_place and not self.judging and not self.waiting

    @property
    def percent(self) -> int:
        return 100 if not self.total else int(100 * self.ended / self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """A session's verdict before a run and by the run, both in [0, 1]."""

    session: int
    before: float
    after: float

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes by a run. `count` sessions had a verdict before and after it, `new` sessions had none before.

    The means and `differences` are over the former; without such sessions the means are None. `largest` are the largest
    changes.
    """

    count: int
    new: int
    mean_before: float | None
    mean_after: float | None
    differences: tuple[float, ...]
    largest: tuple[VerdictChange, ...]


def progress(run: JudgeRun) -> RunProgress:
    """The progress of a run, in three queries."""
    counts: dict[str, Counter[Reason]] = {}
    rows = JudgeJob.objects.filter(run=run).order_by().values_list("state", "reason").annotate(n=Count("pk"))
    for state, reason, n in rows:
        counts.setdefault(state, Counter())[Reason(reason)] += n
    states = {state: counts.get(state, Counter()) for state in JobState}
    left_out = {LeftOut(why): n for why, n in run.left_out.items()}
    spend = costs.spend(JudgeAttempt.objects.filter(job__run=run))
    job_count = sum(reasons.total() for reasons in states.values())
    unplaced = run.total - run.placed
    return RunProgress(
        total=run.total,
        done=states[JobState.DONE].total(),
        judging=states[JobState.LEASED].total() + states[JobState.SENT].total(),
        cancelled=states[JobState.CANCELLED].total() + (unplaced if run.cancelled_at else 0),
        superseded=run.placed - job_count - sum(left_out.values()),
        to_place=0 if run.cancelled_at else unplaced,
        waiting=states[JobState.QUEUED] + states[JobState.PARKED],
        failed=states[JobState.ABANDONED],
        left_out=left_out,
        spent=spend.usd or 0.0,
        unknown_cost=spend.expected_usd,
    )


def changes(run: JudgeRun) -> Changes:
    """How the run's verdicts differ from the latest ones before it."""
    judged = JudgeJob.objects.filter(run=run, state=JobState.DONE).order_by().values("session")
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    rows = verdicts().filter(session__in=judged).order_by("pk").values_list("session", "value", "created_at")
    for session, value, at in rows:
        if at < run.created_at:
            before[session] = value or 0.0
        else:
            after[session] = value or 0.0
    both = [VerdictChange(session=pk, before=before[pk], after=after[pk]) for pk in after if pk in before]
    return Changes(
        count=len(both),
        new=len(after) - len(both),
        mean_before=fmean(change.before for change in both) if both else None,
        mean_after=fmean(change.after for change in both) if both else None,
        differences=tuple(change.difference for change in both),
        largest=tuple(sorted(both, key=lambda change: (-abs(change.difference), change.session))[:LARGEST]),
    )
