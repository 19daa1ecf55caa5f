"""From grade rows to one decision: judge, else trajectory, else journal, else floor; `max` with consumption; a failed
mandatory check caps the grades of machines; a person overrides. Pure and without a clock. This is the only place that
knows how grades become a reward.

What a session left behind can be worth far more than the judge says. If only the agent vouches for it, the verdict
counts. Otherwise the reward is contested: it counts little or nothing until the judge has read the session three times,
or a person has graded it. Three readings that agree are accepted, and what was left behind adds at most .3 to them. So
nobody gets rid of a bad verdict by inventing artifacts, one more artifact never lowers a reward, and a session whose
artifacts the judge underrates three times still gets more than the judge's number.
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

    `scale` maps a source to (shift, slope): its grade r is compared with those of other sources as shift + slope·r, but
    r is what is settled. The scale is a constant of the policy, so that the same grades give the same reward whenever
    they are settled. Scales learnt from judged sessions are applied where a bandit reads its rewards instead.
    """

    version: str
    floor: float
    threshold: float
    veto_cap: float
    weights: Mapping[str, float]
    scale: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def compared(self, source: Source, value: float) -> float:
        """The value in [0, 1] as which a grade of `source` is compared with those of other sources."""
        shift, slope = self.scale.get(source, (0.0, 1.0))
        return round(min(max(shift + slope * value, 0.0), 1.0), 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeView:
    """One grade row as the chain sees it. `id` orders rows; a row that `withdraws` another undoes it.

    `stands`: a trajectory to which the journal has nothing to add, since it saw at least a commit's worth of work, or a
    failure; if None, the policy's threshold decides. `view`: which part of the session it saw. `witness`: who vouches
    for its evidence. `has_few_samples`: it rests on a log of a harness of which too few logs were read.

    For the judge's grades: `stale` says what came after the verdict and is unread ("the transcript came"), empty if it
    is fresh; `sample_of` is the row of the first reading, if this is a further one; `samples` are the values of three
    readings, of which this is the median.
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
    has_few_samples: bool = False

    @property
    def spread(self) -> float:
        """How far apart three readings are, in [0, 1]; 0 if there are not three."""
        return round(max(self.samples) - min(self.samples), 6) if self.samples else 0.0

    @property
    def readings_agree(self) -> bool:
        """Whether the judge has read the session three times with nearly the same result."""
        return bool(self.samples) and self.spread <= MAX_SPREAD

    @property
    def is_verdict(self) -> bool:
        """Whether a person's row is a decision: a value, or the exclusion of the session."""
        return self.value is not None or self.reason is Reason.EXCLUDED


CurrentGrades = Mapping[Source, GradeView]
MACHINES = frozenset({Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION})
# The views of a trajectory that rests on something confirmed.
CONFIRMED = frozenset({EvidenceView.FULL, EvidenceView.PART, EvidenceView.FACTS})
# The judge reads a session at most this often; the readings agree if they are at most this far apart.
MAX_READINGS = 3
MAX_SPREAD = 0.3
# Artifacts add at most this to readings that agree: as much as they add to a single one without contesting it.
MAX_ADDED = CONTESTED_ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The reward that the current `grades` give.

    `value` in [0, 1], or None for "no reward"; `decider` is None if an infrastructure outcome gives no reward.
    `production` and `production_by` are the result of the chain before `max`, `joined` is that after it and before a
    veto. `vetoes` names the mandatory checks that failed. `judge_open`: a verdict may still come; `reading_open`: a
    further reading may still come for the verdict that is there.
    """

    grades: CurrentGrades
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
        """Whether a veto lowered a machine's value, and no person overrides it."""
        return self.decider in MACHINES and self.value != self.joined

    @property
    def stale(self) -> str:
        """What came after the verdict and is unread, in words; empty if it is fresh, or there is none."""
        judge = self.grades.get(Source.JUDGE)
        return "" if judge is None or judge.value is None else judge.stale

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict that has read all evidence."""
        return value_of(self.grades, Source.JUDGE) is not None and not self.stale

    @property
    def gap(self) -> float:
        """How far what the session left behind is above a fresh verdict; 0 if it does not decide."""
        return gap(self.grades) if self.decider is Source.CONSUMPTION else 0.0

    @property
    def is_contested(self) -> bool:
        """Whether the gap is so large that it is unknown which of the two is right."""
        return self.gap > CONTESTED_ABOVE and not self.grades[Source.JUDGE].readings_agree

    @property
    def is_limited(self) -> bool:
        """Whether the gap is that large above three readings that agree, so that it is cut to `MAX_ADDED`."""
        return self.gap > CONTESTED_ABOVE and self.grades[Source.JUDGE].readings_agree

    @property
    def is_final(self) -> bool:
        """Whether a person or a judge that had read everything decided, or the session says nothing about an arm."""
        return self.decider in (Source.HUMAN, None) or (self.is_judged and not self.is_contested)

    @property
    def standing(self) -> str:
        """The standing as in the ledger's keys (`standing.py`): contested, stale, claimed, of few samples, or plain."""
        if self.is_contested:
            return standing.contested(self.gap)
        if self.decider is Source.JUDGE and self.stale:
            return standing.STALE
        is_claim = self.decider in MACHINES and self.grades[self.decider].witness is Witness.CLAIMED
        if is_claim:
            return standing.CLAIMED
        has_few = self.decider in MACHINES and self.grades[self.decider].has_few_samples
        return standing.FEW_SAMPLES if has_few else standing.PLAIN

    @property
    def weight(self) -> float:
        """The evidence weight in [0, 1]: the deciding source's weight, reduced by the standing. 0 without a reward.

        If the judge or consumption decides and the reward is stale or claimed, the source's weight is not reduced but
        limited to a trajectory's.
        """
        if self.value is None or self.decider is None:
            return 0.0
        source_weight = self.policy.weights[self.decider]
        if self.standing in {standing.STALE, standing.CLAIMED} and self.decider in {Source.JUDGE, Source.CONSUMPTION}:
            return min(source_weight, self.policy.weights[Source.TRAJECTORY])
        return round(source_weight * standing_weight(self.standing), 6)

    @property
    def grade(self) -> GradeView | None:
        return None if self.decider is None else self.grades.get(self.decider)

    @property
    def reason(self) -> Reason:
        """Why the reward is missing, excluded or not final.

        NONE for a final reward, for a contested one, and for a stale verdict if no further one may come.
        """
        if self.decider is None:
            return Reason.INFRASTRUCTURE
        if self.decider is Source.HUMAN:
            return self.grades[Source.HUMAN].reason
        if self.is_final:
            return Reason.NONE
        judge = self.grades.get(Source.JUDGE)
        if judge is not None and not self.stale:
            return judge.reason
        if self.judge_open:
            return Reason.AWAITING_JUDGE
        return Reason.NONE if self.stale else Reason.NOT_CONFIGURED


def value_of(grades: CurrentGrades, source: Source) -> float | None:
    """The current value of a source in [0, 1], None if it has none."""
    grade = grades.get(source)
    return None if grade is None else grade.value


def is_claimed(grades: CurrentGrades) -> bool:
    """Whether only the graded agent vouches for what the session left behind."""
    consumption = grades.get(Source.CONSUMPTION)
    return consumption is not None and consumption.witness is Witness.CLAIMED


def gap(grades: CurrentGrades) -> float:
    """By how much the consumption grade exceeds the judge's verdict, in [0, 1]; 0 if it doesn't, or if there is no
    consumption grade or no fresh verdict.
    """
    judge, consumption = grades.get(Source.JUDGE), value_of(grades, Source.CONSUMPTION)
    if judge is None or judge.value is None or judge.stale or consumption is None:
        return 0.0
    return round(max(consumption - judge.value, 0.0), 6)


def contests(grades: CurrentGrades) -> bool:
    """Whether what the session left behind contests a fresh verdict: it is far above, and not merely claimed."""
    return gap(grades) > CONTESTED_ABOVE and not is_claimed(grades)


def current(grades: Iterable[GradeView]) -> dict[Source, GradeView]:
    """The current row of each source, from rows in any order.

    Of a machine: its latest row, except that a judge's later failure never replaces its verdict; once the judge has
    read the session three times, the median of these. Of a person: the latest decision that was not withdrawn.
    """
    rows = sorted(grades, key=lambda grade: grade.id)
    withdrawn = {grade.withdraws for grade in rows if grade.withdraws is not None}
    latest: dict[Source, GradeView] = {}
    for grade in rows:
        if grade.source is Source.HUMAN and (grade.id in withdrawn or not grade.is_verdict):
            continue
        if grade.source is Source.JUDGE and grade.value is None and value_of(latest, Source.JUDGE) is not None:
            continue
        if grade.sample_of is None:  # else a further reading, which counts below
            latest[grade.source] = grade
    if (first := latest.get(Source.JUDGE)) is not None:
        further = [row for row in rows if row.sample_of == first.id and row.value is not None]
        readings = [first, *further][:MAX_READINGS]
        values = tuple(row.value for row in readings if row.value is not None)
        if len(values) == MAX_READINGS:
            median = sorted(readings, key=lambda row: (row.value, row.id))[MAX_READINGS // 2]
            latest[Source.JUDGE] = replace(median, stale=first.stale, sample_of=None, samples=values)
    return latest


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
    """Decide the reward of a session from all its grade rows, in any order.

    A person's grade counts before all others. Otherwise an infrastructure `outcome` gives no reward, and the floor is
    given if there is no grade. `vetoes`: the mandatory checks that failed; with any, no machine's grade counts for more
    than `policy.veto_cap`. `judge_open` and `reading_open` (see `Decision`) don't change the value, only its reason.
    """
    current_grades = current(grades)
    production, production_by = _choose_production(current_grades, policy)
    joined, decider = _join_consumption(production, production_by, current_grades, policy)
    value = min(joined, policy.veto_cap) if vetoes and joined is not None else joined
    human = current_grades.get(Source.HUMAN)
    if human is not None:
        value, decider = human.value, Source.HUMAN
    elif outcome in NO_REWARD:
        value, decider = None, None
    elif value is None:
        value, decider = policy.floor, Source.FLOOR
    return Decision(
        grades=current_grades,
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
    """The row that the chain would rest on without any verdict, before `max`: a trajectory or a journal; None if both
    abstain.
    """
    without_judge = current(grades)
    without_judge.pop(Source.JUDGE, None)
    _, source = _choose_production(without_judge, policy)
    return None if source is None else without_judge[source]


def _choose_production(grades: CurrentGrades, policy: ChainPolicy) -> tuple[float | None, Source | None]:
    """The value and source of the grade before consumption and people: the judge's; else that of a trajectory that
    stands by itself (`GradeView.stands`); else the better of trajectory and journal. None for both if all abstain.

    A stale verdict counts too, unless there is a trajectory with a confirmed effect.
    """
    judge, trajectory, journal = (grades.get(s) for s in (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL))
    is_confirmed = trajectory is not None and trajectory.value is not None and trajectory.view in CONFIRMED
    if judge is not None and judge.value is not None and not (judge.stale and is_confirmed):
        return judge.value, Source.JUDGE
    journal_value = None if journal is None else journal.value
    if trajectory is not None and trajectory.value is not None:
        stands = trajectory.value > policy.threshold if trajectory.stands is None else trajectory.stands
        if stands or journal_value is None:
            return trajectory.value, Source.TRAJECTORY
        compared = policy.compared(Source.TRAJECTORY, trajectory.value)
        if policy.compared(Source.JOURNAL, journal_value) <= compared:
            return trajectory.value, Source.TRAJECTORY
    return (None, None) if journal_value is None else (journal_value, Source.JOURNAL)


def _join_consumption(
    production: float | None, production_by: Source | None, grades: CurrentGrades, policy: ChainPolicy
) -> tuple[float | None, Source | None]:
    """The higher of production and consumption, and its source; production decides if they are equal.

    A mere claim of the agent counts only if there is no verdict, not even a stale one. To three readings that agree,
    consumption adds at most `MAX_ADDED`.
    """
    consumption, verdict = value_of(grades, Source.CONSUMPTION), grades.get(Source.JUDGE)
    if consumption is None or (is_claimed(grades) and verdict is not None and verdict.value is not None):
        return production, production_by
    if production is None or production_by is None:
        return consumption, Source.CONSUMPTION
    if consumption <= policy.compared(production_by, production):
        return production, production_by
    if production_by is Source.JUDGE and verdict is not None and verdict.readings_agree and not verdict.stale:
        consumption = min(consumption, round(production + MAX_ADDED, 6))
    return consumption, Source.CONSUMPTION
