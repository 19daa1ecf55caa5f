"""From grade rows to one decision: judge, else trajectory, else journal, else floor; `max` with consumption; a failed
mandatory check caps what machines say; a person overrides. Pure and without a clock. This is the only place that knows
how grades become a reward.

What a session left behind can be worth far more than the judge says. Where the agent alone vouches for it, the verdict
stands. Else the reward is contested: it counts little or nothing until the judge has read the session three times, or a
person has. Three readings that agree hold, and then what was left behind adds at most .3 to them. So nobody gets a bad
verdict out of the way by inventing artifacts, one artifact more never lowers a reward, and a session whose artifacts
the judge underrates three times is not sent back to the judge's number either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grading.reward import standing
from grading.reward.standing import CONTESTED_ABOVE, standing_weight
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import NO_REWARD, Outcome, Reason, Source, Status
from grading.witness import Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPolicy:
    """How much each source counts. `weights` in [0, 1] by source; `floor`, `threshold` and `veto_cap` in [0, 1].

    `scale` maps a source to (shift, slope): its grade r is compared with those of other sources as shift + slope·r.
    What is settled is r all the same. It is a constant of the policy, so that the same grades end the same whenever
    they are settled: what judged sessions teach of a source's scale acts where a bandit reads its rewards.
    """

    version: str
    floor: float
    threshold: float
    veto_cap: float
    weights: Mapping[str, float]
    scale: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def compared(self, source: Source, value: float) -> float:
        """What a grade of `source` is taken for beside those of others, in [0, 1]."""
        shift, slope = self.scale.get(source, (0.0, 1.0))
        return round(min(max(shift + slope * value, 0.0), 1.0), 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeView:
    """One grade row as the chain sees it. `id` orders rows; a row that `withdraws` another undoes it.

    `stands`: a trajectory that the journal has nothing to add to, since it saw at least a commit's worth of work, or a
    failure; None where the grade does not say, and the policy's threshold decides. `view`: what of the session it saw.
    `stale`, of a judge's: before what it was given, that it has not read ("the transcript came"); empty where it is
    fresh. `witness`: who vouches for what it rests on. `sample_of`, of a judge's: the row of the first reading, where
    it is a further one of the same session; `samples` are the values of three readings, of which it is the median.
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
    witness: Witness = Witness.UNKNOWN
    sample_of: int | None = None
    samples: tuple[float, ...] = ()

    @property
    def spread(self) -> float:
        """How far apart three readings are, in [0, 1]; 0 where there are not three."""
        return round(max(self.samples) - min(self.samples), 6) if self.samples else 0.0

    @property
    def is_answered(self) -> bool:
        """Whether the judge has read the session three times and said nearly the same."""
        return bool(self.samples) and self.spread <= READINGS_AGREE

    @property
    def is_verdict(self) -> bool:
        """A person's word: a value, or "exclude this session"."""
        return self.value is not None or self.reason is Reason.EXCLUDED


Holds = Mapping[Source, GradeView]
MACHINES = frozenset({Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION})
# The views of a trajectory that rests on something confirmed.
CONFIRMED = frozenset({EvidenceView.FULL, EvidenceView.PART, EvidenceView.FACTS})
# How often a judge reads a session at most; how far these readings may be apart to agree; and what artifacts add to
# such readings at most: as much as they add to a single one without contesting it.
READINGS = 3
READINGS_AGREE = 0.3
ADDED_AT_MOST = CONTESTED_ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the chain makes of the grades that hold.

    `value` in [0, 1], or None for "no reward"; `decider` None where an infrastructure outcome gives no reward.
    `production` and `production_by` are the outcome of the chain before `max`, `joined` after it and before a veto.
    `vetoes` names the mandatory checks that failed. `judge_open`: a verdict may still come; `reading_open`: a further
    reading of the one that is there may.
    """

    holds: Holds
    policy: ChainPolicy
    production: float | None
    production_by: Source | None
    joined: float | None
    vetoes: Sequence[str]
    value: float | None
    decider: Source | None
    judge_open: bool
    outcome: Outcome
    outcome_reason: str
    reading_open: bool

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
    def gap(self) -> float:
        """How far what the session left behind is above a fresh verdict; 0 where it does not decide."""
        return gap(self.holds) if self.decider is Source.CONSUMPTION else 0.0

    @property
    def is_contested(self) -> bool:
        """Whether it is so far above that nobody knows which of the two is right."""
        return self.gap > CONTESTED_ABOVE and not self.holds[Source.JUDGE].is_answered

    @property
    def is_held(self) -> bool:
        """Whether it is so far above three readings that agree, and adds to them no more than it may."""
        return self.gap > CONTESTED_ABOVE and self.holds[Source.JUDGE].is_answered

    @property
    def is_final(self) -> bool:
        """A person or a judge that had read everything has spoken, or the session says nothing about an arm."""
        return self.decider in (Source.HUMAN, None) or (self.is_judged and not self.is_contested)

    @property
    def standing(self) -> str:
        """How the reward stands, as the ledger's keys say it."""
        if self.is_contested:
            return standing.contested(self.gap)
        if self.decider is Source.JUDGE and self.stale:
            return standing.STALE
        is_claim = self.decider in MACHINES and self.holds[self.decider].witness is Witness.CLAIMED
        return standing.CLAIMED if is_claim else standing.PLAIN

    @property
    def weight(self) -> float:
        """Evidence weight in [0, 1] by deciding source, and by what its standing leaves of it; a stale verdict's, and
        that of a claim, is a trajectory's at most. 0 where there is no reward.
        """
        if self.value is None or self.decider is None:
            return 0.0
        own = self.policy.weights[self.decider]
        if self.standing in {standing.STALE, standing.CLAIMED} and self.decider in {Source.JUDGE, Source.CONSUMPTION}:
            return min(own, self.policy.weights[Source.TRAJECTORY])
        return round(own * standing_weight(self.standing), 6)

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


def is_claimed(holds: Holds) -> bool:
    """Whether the graded agent alone vouches for what the session left behind."""
    consumption = holds.get(Source.CONSUMPTION)
    return consumption is not None and consumption.witness is Witness.CLAIMED


def gap(holds: Holds) -> float:
    """How far what the session left behind is above a fresh verdict, in [0, 1]; 0 where either is missing."""
    judge, left = holds.get(Source.JUDGE), value_of(holds, Source.CONSUMPTION)
    if judge is None or judge.value is None or judge.stale or left is None:
        return 0.0
    return round(max(left - judge.value, 0.0), 6)


def contests(holds: Holds) -> bool:
    """Whether what the session left behind speaks against a fresh verdict: it is far above, and not merely claimed."""
    return gap(holds) > CONTESTED_ABOVE and not is_claimed(holds)


def current(grades: Iterable[GradeView]) -> dict[Source, GradeView]:
    """The row that holds for each source, in whatever order the rows are handed over.

    A machine source: its latest row, except that a judge's later failure never hides its verdict; once the judge has
    read the session three times, the median of these. A person: the latest verdict that was not withdrawn.
    """
    rows = sorted(grades, key=lambda grade: grade.id)
    withdrawn = {grade.withdraws for grade in rows if grade.withdraws is not None}
    holds: dict[Source, GradeView] = {}
    for grade in rows:
        if grade.source is Source.HUMAN and (grade.id in withdrawn or not grade.is_verdict):
            continue
        if grade.source is Source.JUDGE and grade.value is None and value_of(holds, Source.JUDGE) is not None:
            continue
        if grade.sample_of is None:
            holds[grade.source] = grade
    if (first := holds.get(Source.JUDGE)) is not None:
        further = [row for row in rows if row.sample_of == first.id and row.value is not None]
        readings = [first, *further][:READINGS]
        values = tuple(row.value for row in readings if row.value is not None)
        if len(values) == READINGS:
            median = sorted(readings, key=lambda row: (row.value, row.id))[READINGS // 2]
            holds[Source.JUDGE] = replace(median, stale=first.stale, sample_of=None, samples=values)
    return holds


def decide(
    grades: Iterable[GradeView],
    policy: ChainPolicy,
    *,
    judge_open: bool,
    reading_open: bool = False,
    outcome: Outcome = Outcome.COMPLETED,
    outcome_reason: str = "",
    vetoes: Sequence[str] = (),
) -> Decision:
    """What the chain makes of all grade rows of one session, in any order.

    `vetoes`: the mandatory checks that failed. With any, no machine's value is above `policy.veto_cap`.
    """
    holds = current(grades)
    production, production_by = _production(holds, policy)
    joined, decider = _joined(production, production_by, holds, policy)
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
        reading_open=reading_open,
    )


def fallback(grades: Iterable[GradeView], policy: ChainPolicy) -> GradeView | None:
    """The row that the chain would rest on without any verdict, before `max`: a trajectory or a journal; None where
    both abstain.
    """
    holds = dict(current(grades))
    holds.pop(Source.JUDGE, None)
    _, by = _production(holds, policy)
    return None if by is None else holds[by]


def _production(holds: Holds, policy: ChainPolicy) -> tuple[float | None, Source | None]:
    """The judge; else a trajectory that stands by itself; else the better of trajectory and journal.

    A stale verdict yields to a trajectory with a confirmed effect, and to nothing less.
    """
    judge, trajectory, journal = (holds.get(s) for s in (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL))
    is_confirmed = trajectory is not None and trajectory.value is not None and trajectory.view in CONFIRMED
    if judge is not None and judge.value is not None and not (judge.stale and is_confirmed):
        return judge.value, Source.JUDGE
    claimed = None if journal is None else journal.value
    if trajectory is not None and trajectory.value is not None:
        stands = trajectory.value > policy.threshold if trajectory.stands is None else trajectory.stands
        own = policy.compared(Source.TRAJECTORY, trajectory.value)
        if stands or claimed is None or policy.compared(Source.JOURNAL, claimed) <= own:
            return trajectory.value, Source.TRAJECTORY
    return (None, None) if claimed is None else (claimed, Source.JOURNAL)


def _joined(
    production: float | None, production_by: Source | None, holds: Holds, policy: ChainPolicy
) -> tuple[float | None, Source | None]:
    """`max` over those that exist; production decides where they are equal.

    What the agent alone vouches for joins only where there is no verdict, be it stale; and to three readings that agree
    what was left behind adds no more than it may.
    """
    left, verdict = value_of(holds, Source.CONSUMPTION), holds.get(Source.JUDGE)
    if left is None or (is_claimed(holds) and verdict is not None and verdict.value is not None):
        return production, production_by
    if production is None or production_by is None:
        return left, Source.CONSUMPTION
    if left <= policy.compared(production_by, production):
        return production, production_by
    if production_by is Source.JUDGE and verdict is not None and verdict.is_answered and not verdict.stale:
        left = min(left, round(production + ADDED_AT_MOST, 6))
    return left, Source.CONSUMPTION
