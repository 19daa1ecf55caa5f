"""The reward chain: judge, else trajectory, else journal, else floor; `max` with consumption; a person overrides.

Pure and without a clock. `resolve` is the only place that knows how grades become a reward, and the `Step`s it returns
are the only explanation of it: a screen renders them and has no logic of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from grading.core.vocabulary import Outcome, Reason, Source, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How much each source counts. `weights` in [0, 1] by source; `floor` and `threshold` in [0, 1]."""

    version: str
    floor: float
    threshold: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeView:
    """One grade row as the chain sees it. `id` orders rows; a row that `withdraws` another undoes it."""

    id: int
    source: Source
    status: Status
    value: float | None = None
    reason: Reason = Reason.NONE
    detail: str = ""
    withdraws: int | None = None

    @property
    def is_scored(self) -> bool:
        return self.status is Status.SCORED

    @property
    def is_verdict(self) -> bool:
        """A person's word: a value, or "exclude this session"."""
        return self.is_scored or self.reason is Reason.EXCLUDED


class StepState(StrEnum):
    """What became of a source: it decides, was beaten or not needed, failed, was not reached, or may still come."""

    DECIDES = "decides"
    BEATEN = "beaten"
    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tile of the chain. `headline` stands where there is no value; `why` is one sentence; `join` is the rule
    that ties it to what came before (else, max, overrides, or empty for the first).
    """

    source: Source
    state: StepState
    join: str
    value: float | None = None
    headline: str = ""
    why: str = ""
    reason: Reason = Reason.NONE
    provisional: bool = False
    grade: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The reward of a session. `value` is None for "no reward"; `weight` in [0, 1]; `grade` is the deciding row."""

    value: float | None
    source: Source | None
    final: bool
    weight: float
    steps: tuple[Step, ...]
    sentence: str
    reason: Reason = Reason.NONE
    grade: int | None = None

    def steps_json(self) -> list[dict[str, Any]]:
        return [asdict(step) for step in self.steps]


def current(grades: Iterable[GradeView]) -> dict[Source, GradeView]:
    """The row that holds for each source, whatever order the rows came in.

    A machine source: its latest row, except that a judge's later failure never hides its verdict. A person: the latest
    verdict that was not withdrawn.
    """
    rows = sorted(grades, key=lambda grade: grade.id)
    withdrawn = {grade.withdraws for grade in rows if grade.withdraws is not None}
    holds: dict[Source, GradeView] = {}
    for grade in rows:
        if grade.source is Source.HUMAN and (grade.id in withdrawn or not grade.is_verdict):
            continue
        if grade.source is Source.JUDGE and not grade.is_scored and _has_value(holds.get(Source.JUDGE)):
            continue
        holds[grade.source] = grade
    return holds


def resolve(
    grades: Sequence[GradeView],
    policy: Policy,
    *,
    judge_open: bool,
    outcome: Outcome = Outcome.COMPLETED,
    outcome_reason: str = "",
) -> Resolution:
    """The reward of a session from all its grade rows (20-chain.md). `judge_open`: a judge job can still succeed."""
    holds = current(grades)
    human = holds.get(Source.HUMAN)
    production, production_by = _production(holds, policy)
    consumption = holds.get(Source.CONSUMPTION)
    value, decider = _joined(production, production_by, consumption)
    if human is not None:
        return _decided_by_human(human, holds, decider, policy)
    if outcome in (Outcome.INFRASTRUCTURE, Outcome.REFUSED):
        return _no_reward(holds, outcome, outcome_reason)
    if value is None or decider is None:
        return _at_the_floor(holds, policy, judge_open=judge_open)
    judged = _has_value(holds.get(Source.JUDGE))
    return Resolution(
        value=value,
        source=decider,
        final=judged,
        weight=policy.weights[decider],
        steps=_steps(holds, decider, policy, provisional=not judged),
        sentence=_sentence(holds, decider, value, policy, judged=judged, judge_open=judge_open),
        reason=Reason.NONE if judged else _pending_reason(holds, judge_open=judge_open),
        grade=holds[decider].id,
    )


def _has_value(grade: GradeView | None) -> bool:
    return grade is not None and grade.is_scored


def _production(holds: Mapping[Source, GradeView], policy: Policy) -> tuple[float | None, Source | None]:
    """Rule 2: the judge; else the trajectory above the threshold; else the better of trajectory and journal."""
    judge, trajectory, journal = (holds.get(s) for s in (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL))
    if judge is not None and judge.value is not None:
        return judge.value, Source.JUDGE
    if trajectory is not None and trajectory.value is not None and trajectory.value > policy.threshold:
        return trajectory.value, Source.TRAJECTORY
    candidates = [g for g in (trajectory, journal) if g is not None and g.value is not None]
    if not candidates:
        return None, None
    best = max(candidates, key=lambda grade: (grade.value or 0.0, grade.source is Source.TRAJECTORY))
    return best.value, best.source


def _joined(
    production: float | None, production_by: Source | None, consumption: GradeView | None
) -> tuple[float | None, Source | None]:
    """Rule 3: `max` over those that exist; production decides where they are equal (L6)."""
    if consumption is None or consumption.value is None:
        return production, production_by
    if production is None or consumption.value > production:
        return consumption.value, Source.CONSUMPTION
    return production, production_by


def _decided_by_human(
    human: GradeView, holds: Mapping[Source, GradeView], machine: Source | None, policy: Policy
) -> Resolution:
    excluded = human.value is None
    said = "A person excluded this session" if excluded else "A person graded it"
    overridden = f" It overrides the {machine}'s {_number(holds[machine].value)}." if machine and not excluded else ""
    head = "No reward" if excluded else f"Reward {_number(human.value)}"
    return Resolution(
        value=human.value,
        source=Source.HUMAN,
        final=True,
        weight=0.0 if excluded else policy.weights[Source.HUMAN],
        steps=_steps(holds, Source.HUMAN, policy, provisional=False),
        sentence=f"{head}, final. {said}.{overridden}",
        reason=human.reason,
        grade=human.id,
    )


def _no_reward(holds: Mapping[Source, GradeView], outcome: Outcome, outcome_reason: str) -> Resolution:
    what = "refused to start" if outcome is Outcome.REFUSED else "died of infrastructure"
    return Resolution(
        value=None,
        source=None,
        final=True,
        weight=0.0,
        steps=_steps(holds, None, None, provisional=False),
        sentence=f"No reward. The session {what}: {outcome_reason}. It neither rewards nor punishes an arm.",
        reason=Reason.INFRASTRUCTURE,
    )


def _at_the_floor(holds: Mapping[Source, GradeView], policy: Policy, *, judge_open: bool) -> Resolution:
    weight = policy.weights[Source.FLOOR]
    effect = "It teaches the bandit nothing" if weight == 0 else f"It counts at weight {_number(weight)}"
    return Resolution(
        value=policy.floor,
        source=Source.FLOOR,
        final=False,
        weight=weight,
        steps=_steps(holds, Source.FLOOR, policy, provisional=True),
        sentence=f"Not graded yet (floor {_number(policy.floor)}). No source could score it. {effect}."
        + _hope(judge_open=judge_open),
        reason=_pending_reason(holds, judge_open=judge_open) or Reason.NO_EVIDENCE,
    )


def _pending_reason(holds: Mapping[Source, GradeView], *, judge_open: bool) -> Reason:
    """Why the reward is not final: the judge's last reason, or that it is being waited for."""
    judge = holds.get(Source.JUDGE)
    if judge is not None and judge.reason is not Reason.NONE:
        return judge.reason
    return Reason.AWAITING_JUDGE if judge_open else Reason.NOT_CONFIGURED


def _hope(*, judge_open: bool) -> str:
    return " The judge's verdict replaces it exactly." if judge_open else " No judge is asked; a person can grade it."


def _sentence(
    holds: Mapping[Source, GradeView],
    decider: Source,
    value: float,
    policy: Policy,
    *,
    judged: bool,
    judge_open: bool,
) -> str:
    weight = _number(policy.weights[decider])
    head = f"Reward {_number(value)}, {'final' if judged else 'provisional'}."
    production, production_by = _production(holds, policy)
    if decider is Source.CONSUMPTION and production is not None:
        body = (
            " What the session left behind is worth more than what it produced: "
            f"max({_number(production)}, {_number(value)}) = {_number(value)}, at weight {weight}."
        )
    else:
        body = f" The {decider} decides, at weight {weight}."
        consumption = holds.get(Source.CONSUMPTION)
        if production_by is decider and consumption is not None and consumption.value is not None:
            body += f" max({_number(value)}, {_number(consumption.value)}) = {_number(value)}."
    return head + body + ("" if judged else _hope(judge_open=judge_open))


ORDER = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.FLOOR, Source.CONSUMPTION, Source.HUMAN)
JOINS = {Source.JUDGE: "", Source.CONSUMPTION: "max", Source.HUMAN: "overrides"}


def _steps(
    holds: Mapping[Source, GradeView], decider: Source | None, policy: Policy | None, *, provisional: bool
) -> tuple[Step, ...]:
    return tuple(_step(source, holds, decider, policy, provisional=provisional) for source in ORDER)


def _step(
    source: Source,
    holds: Mapping[Source, GradeView],
    decider: Source | None,
    policy: Policy | None,
    *,
    provisional: bool,
) -> Step:
    grade = holds.get(source)
    join = JOINS.get(source, "else")
    if source is Source.FLOOR:
        return _floor_step(decider, policy, join)
    if grade is None:
        return _absent_step(source, join)
    decides = source is decider
    return Step(
        source=source,
        state=_state(grade, decides=decides),
        join=join,
        value=grade.value,
        headline=_headline(grade),
        why=_why(grade, holds, decider, policy),
        reason=grade.reason,
        provisional=provisional and decides,
        grade=grade.id,
    )


def _floor_step(decider: Source | None, policy: Policy | None, join: str) -> Step:
    if decider is Source.FLOOR and policy is not None:
        return Step(
            source=Source.FLOOR,
            state=StepState.DECIDES,
            join=join,
            value=policy.floor,
            headline="Not graded yet",
            why="No source could score this session" + ("; no evidence" if policy.weights[Source.FLOOR] == 0 else ""),
            provisional=True,
        )
    why = "A source above it has a score" if decider else "This session gets no reward"
    return Step(source=Source.FLOOR, state=StepState.SKIPPED, join=join, headline="Not reached", why=why)


def _absent_step(source: Source, join: str) -> Step:
    if source is Source.HUMAN:
        return Step(source=source, state=StepState.SKIPPED, join=join, headline="None", why="Not reviewed")
    if source is Source.JUDGE:
        return Step(
            source=source,
            state=StepState.WAITING,
            join=join,
            headline="Waiting",
            why=Reason.AWAITING_JUDGE.words,
            reason=Reason.AWAITING_JUDGE,
        )
    return Step(source=source, state=StepState.SKIPPED, join=join, headline="None", why="Not asked")


# Reasons that say "there was nothing to read here", as opposed to "reading it went wrong".
NOTHING_THERE = frozenset(
    {
        Reason.NO_JOURNAL,
        Reason.NO_SIGNAL,
        Reason.NO_ARTIFACTS,
        Reason.NOT_CONSUMPTION,
        Reason.NOT_CONFIGURED,
        Reason.NO_TRANSCRIPT,
        Reason.WITHDRAWN,
    }
)


def _state(grade: GradeView, *, decides: bool) -> StepState:
    if decides:
        return StepState.DECIDES
    if grade.is_scored:
        return StepState.BEATEN
    if grade.reason is Reason.AWAITING_JUDGE:
        return StepState.WAITING
    return StepState.SKIPPED if grade.reason in NOTHING_THERE else StepState.FAILED


def _headline(grade: GradeView) -> str:
    if grade.is_scored:
        return ""
    if grade.reason is Reason.EXCLUDED:
        return "Excluded"
    if grade.reason is Reason.AWAITING_JUDGE:
        return "Waiting"
    if grade.reason is Reason.NOT_CONFIGURED:
        return "Not configured"
    if grade.reason in NOTHING_THERE:
        return "None"
    return "Failed" if grade.status is Status.FAILED else "No score"


def _why(grade: GradeView, holds: Mapping[Source, GradeView], decider: Source | None, policy: Policy | None) -> str:
    said = grade.detail or grade.reason.words
    if not grade.is_scored or grade.source is decider or policy is None:
        return said
    return (
        f"{_not_used(grade, holds, decider, policy)}. {said}".rstrip(". ")
        if said
        else _not_used(grade, holds, decider, policy)
    )


def _not_used(grade: GradeView, holds: Mapping[Source, GradeView], decider: Source | None, policy: Policy) -> str:
    """Why a scored source did not decide."""
    _production_value, production_by = _production(holds, policy)
    if decider is Source.HUMAN:
        return "Overridden by a person"
    if grade.source is Source.CONSUMPTION:
        return f"Beaten by max: the {production_by}'s is not lower"
    if grade.source is production_by:
        return "Beaten by max: consumption is higher"
    if _has_value(holds.get(Source.JUDGE)):
        return "Not used: the judge has scored"
    if production_by is Source.TRAJECTORY:
        return "Not used: the trajectory has scored"
    return "Not used: at the floor, and the journal says more"


def _number(value: float | None) -> str:
    """A grade as people read it: two digits, no leading zero."""
    if value is None:
        return "–"
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text.rstrip("0").rstrip(".")
