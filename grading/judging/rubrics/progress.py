"""How far a run of judging again is, what it cost, and what it changed: all derived from its jobs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

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
    """Where the `total` sessions of a run are. `waiting` and `failed` by reason, `left_out` by why.

    `to_place` have no job yet; `moved` have one that a later run took over. Dollars: `spent` on calls whose cost is
    known, `unknown_cost` what the others were expected to cost.
    """

    total: int
    done: int
    judging: int
    cancelled: int
    moved: int
    to_place: int
    waiting: Mapping[Reason, int]
    failed: Mapping[Reason, int]
    left_out: Mapping[LeftOut, int]
    spent: float
    unknown_cost: float

    @property
    def ended(self) -> int:
        """How many need nothing more."""
        return self.done + self.cancelled + self.moved + sum(self.failed.values()) + sum(self.left_out.values())

    @property
    def is_over(self) -> bool:
        return not self.to_place and not self.judging and not self.waiting

    @property
    def percent(self) -> int:
        return 100 if not self.total else int(100 * self.ended / self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """The verdict that a session had before a run, and the one that the run gave it, both in [0, 1]."""

    session: int
    before: float
    after: float

    @property
    def moved(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """`largest` moves first. Means over the `count` sessions that have both verdicts; None where there is none."""

    count: int
    new: int
    mean_before: float | None
    mean_after: float | None
    moves: tuple[float, ...]
    largest: tuple[VerdictChange, ...]


def progress(run: JudgeRun) -> RunProgress:
    """Three queries, however large the run."""
    counts: dict[str, Counter[Reason]] = {}
    rows = JudgeJob.objects.filter(run=run).order_by().values_list("state", "reason").annotate(n=Count("pk"))
    for state, reason, n in rows:
        counts.setdefault(state, Counter())[Reason(reason)] += n
    states = {state: counts.get(state, Counter()) for state in JobState}
    left_out = {LeftOut(why): n for why, n in run.left_out.items()}
    spend = costs.spend(JudgeAttempt.objects.filter(job__run=run))
    with_jobs = sum(each.total() for each in states.values())
    # Called off before their jobs were made: as good as cancelled ones.
    never = run.total - run.placed if run.cancelled_at else 0
    return RunProgress(
        total=run.total,
        done=states[JobState.DONE].total(),
        judging=states[JobState.LEASED].total() + states[JobState.SENT].total(),
        cancelled=states[JobState.CANCELLED].total() + never,
        moved=run.placed - with_jobs - sum(left_out.values()),
        to_place=0 if run.cancelled_at else run.total - run.placed,
        waiting=states[JobState.QUEUED] + states[JobState.PARKED],
        failed=states[JobState.ABANDONED],
        left_out=left_out,
        spent=spend.usd or 0.0,
        unknown_cost=spend.expected_usd,
    )


def changes(run: JudgeRun) -> Changes:
    """What the run's verdicts are, beside those that held when it was started."""
    asked = JudgeJob.objects.filter(run=run, state=JobState.DONE).order_by().values("session")
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    rows = verdicts().filter(session__in=asked).order_by("pk").values_list("session", "value", "created_at")
    for session, value, at in rows:
        (before if at < run.created_at else after)[session] = value or 0.0
    both = [VerdictChange(session=pk, before=before[pk], after=after[pk]) for pk in after if pk in before]
    return Changes(
        count=len(both),
        new=len(after) - len(both),
        mean_before=_mean([change.before for change in both]),
        mean_after=_mean([change.after for change in both]),
        moves=tuple(change.moved for change in both),
        largest=tuple(sorted(both, key=lambda change: (-abs(change.moved), change.session))[:LARGEST]),
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
