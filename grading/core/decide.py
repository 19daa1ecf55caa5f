"""From grade rows to one decision: judge, else trajectory, else journal, else floor; `max` with consumption; a failed
mandatory check caps what machines say; a person overrides. Pure and without a clock. This is the only place that knows
how grades become a reward.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grading.core.trajectory import View
from grading.core.vocabulary import NO_REWARD, Outcome, Reason, Source, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How much each source counts. `weights` in [0, 1] by source; `floor`, `threshold` and `veto_cap` in [0, 1]."""

    version: str
    floor: float
    threshold: float
    veto_cap: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeView:
    """One grade row as the chain sees it. `id` orders rows; a row that `withdraws` another undoes it.

    `stands`: a trajectory that the journal has nothing to add to, since it saw at least a commit's worth of work, or a
    failure; None where the grade does not say, and the policy's threshold decides. `view`: what of the session it saw.
    `stale`, of a judge's: before what it was given, that it has not read ("the transcript came"); empty where it is
    fresh.
    """

    id: int
    source: Source
    status: Status
    value: float | None = None
    reason: Reason = Reason.NONE
    detail: str = ""
    withdraws: int | None = None
    stands: bool | None = None
    view: str = ""
    stale: str = ""

    @property
    def is_verdict(self) -> bool:
        """A person's word: a value, or "exclude this session"."""
        return self.value is not None or self.reason is Reason.EXCLUDED


Holds = Mapping[Source, GradeView]
MACHINES = frozenset({Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION})
# The views of a trajectory that rests on something confirmed.
CONFIRMED = frozenset({View.FULL, View.PART, View.FACTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the chain makes of the grades that hold.

    `value` in [0, 1], or None for "no reward"; `decider` None where an infrastructure outcome gives no reward.
    `production` and `production_by` are the outcome of the chain before `max`, `joined` after it and before a veto.
    `vetoes` names the mandatory checks that failed. `judge_open`: a verdict may still come.
    """

    holds: Holds
    policy: Policy
    production: float | None
    production_by: Source | None
    joined: float | None
    vetoes: Sequence[str]
    value: float | None
    decider: Source | None
    judge_open: bool
    outcome: Outcome
    outcome_reason: str

    @property
    def is_capped(self) -> bool:
        """Whether a veto took something from what the machines say, and no person overrides it."""
        return self.decider in MACHINES and self.value != self.joined

    @property
    def stale(self) -> str:
        """What the verdict was given before, in words; empty where it is fresh, or there is none."""
        judge = self.holds.get(Source.JUDGE)
        return "" if judge is None or judge.value is None else judge.stale

    @property
    def is_judged(self) -> bool:
        """Whether a judge has read what there is to read."""
        return value_of(self.holds, Source.JUDGE) is not None and not self.stale

    @property
    def is_final(self) -> bool:
        """A person or a judge that had read everything has spoken, or the session says nothing about an arm."""
        return self.decider in (Source.HUMAN, None) or self.is_judged

    @property
    def weight(self) -> float:
        """Evidence weight in [0, 1] by deciding source, a stale verdict's being a trajectory's; 0 where there is no
        reward.
        """
        if self.value is None or self.decider is None:
            return 0.0
        is_stale = self.decider is Source.JUDGE and self.stale
        return self.policy.weights[Source.TRAJECTORY if is_stale else self.decider]

    @property
    def grade(self) -> GradeView | None:
        return None if self.decider is None else self.holds.get(self.decider)

    @property
    def reason(self) -> Reason:
        """Why this is not a plain final reward; empty where it is one."""
        if self.decider is None:
            return Reason.INFRASTRUCTURE
        if self.decider is Source.HUMAN:
            return self.holds[Source.HUMAN].reason
        if self.is_final:
            return Reason.NONE
        judge = self.holds.get(Source.JUDGE)
        if judge is not None and not self.stale:
            return judge.reason
        if self.judge_open:
            return Reason.AWAITING_JUDGE
        return Reason.NONE if self.stale else Reason.NOT_CONFIGURED


def value_of(holds: Holds, source: Source) -> float | None:
    """The value in [0, 1] that holds for a source, or None where it has none."""
    grade = holds.get(source)
    return None if grade is None else grade.value


def current(grades: Iterable[GradeView]) -> dict[Source, GradeView]:
    """The row that holds for each source, in whatever order the rows are handed over.

    A machine source: its latest row, except that a judge's later failure never hides its verdict. A person: the latest
    verdict that was not withdrawn.
    """
    rows = sorted(grades, key=lambda grade: grade.id)
    withdrawn = {grade.withdraws for grade in rows if grade.withdraws is not None}
    holds: dict[Source, GradeView] = {}
    for grade in rows:
        if grade.source is Source.HUMAN and (grade.id in withdrawn or not grade.is_verdict):
            continue
        if grade.source is Source.JUDGE and grade.value is None and value_of(holds, Source.JUDGE) is not None:
            continue
        holds[grade.source] = grade
    return holds


def decide(
    grades: Iterable[GradeView],
    policy: Policy,
    *,
    judge_open: bool,
    outcome: Outcome = Outcome.COMPLETED,
    outcome_reason: str = "",
    vetoes: Sequence[str] = (),
) -> Decision:
    """What the chain makes of all grade rows of one session, in any order.

    `vetoes`: the mandatory checks that failed. With any, no machine's value is above `policy.veto_cap`.
    """
    holds = current(grades)
    production, production_by = _production(holds, policy)
    joined, decider = _joined(production, production_by, value_of(holds, Source.CONSUMPTION))
    value = min(joined, policy.veto_cap) if vetoes and joined is not None else joined
    human = holds.get(Source.HUMAN)
    if human is not None:
        value, decider = human.value, Source.HUMAN
    elif outcome in NO_REWARD:
        value, decider = None, None
    elif value is None:
        value, decider = policy.floor, Source.FLOOR
    return Decision(
        holds=holds,
        policy=policy,
        production=production,
        production_by=production_by,
        joined=joined,
        vetoes=vetoes,
        value=value,
        decider=decider,
        judge_open=judge_open,
        outcome=outcome,
        outcome_reason=outcome_reason,
    )


def fallback(grades: Iterable[GradeView], policy: Policy) -> GradeView | None:
    """The row that the chain would rest on without any verdict, before `max`: a trajectory or a journal; None where
    both abstain.
    """
    holds = dict(current(grades))
    holds.pop(Source.JUDGE, None)
    _, by = _production(holds, policy)
    return None if by is None else holds[by]


def _production(holds: Holds, policy: Policy) -> tuple[float | None, Source | None]:
    """The judge; else a trajectory that stands by itself; else the better of trajectory and journal.

    A stale verdict yields to a trajectory with a confirmed effect, and to nothing less.
    """
    judge, trajectory, journal = (holds.get(s) for s in (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL))
    if judge is not None and judge.value is not None and not (judge.stale and _is_confirmed(trajectory)):
        return judge.value, Source.JUDGE
    claimed = None if journal is None else journal.value
    if trajectory is not None and trajectory.value is not None:
        stands = trajectory.value > policy.threshold if trajectory.stands is None else trajectory.stands
        if stands or claimed is None or claimed <= trajectory.value:
            return trajectory.value, Source.TRAJECTORY
    return (None, None) if claimed is None else (claimed, Source.JOURNAL)


def _is_confirmed(trajectory: GradeView | None) -> bool:
    return trajectory is not None and trajectory.value is not None and trajectory.view in CONFIRMED


def _joined(
    production: float | None, production_by: Source | None, consumption: float | None
) -> tuple[float | None, Source | None]:
    """`max` over those that exist; production decides where they are equal."""
    if consumption is not None and (production is None or consumption > production):
        return consumption, Source.CONSUMPTION
    return production, production_by
