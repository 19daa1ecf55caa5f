"""A decision in words: one step a source (the tiles of the chain) and one sentence. The only explanation there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grading.reward.decide import ADDED_AT_MOST, Decision, GradeView, is_claimed, value_of
from grading.reward.standing import CLAIMED
from grading.vocabulary import Outcome, Reason, Source, Status


class StepState(StrEnum):
    """What became of a source: it decides, was not needed or beaten, has not read what there is now, abstained, failed,
    was not reached, or may still come.
    """

    DECIDES = "decides"
    BEATEN = "beaten"
    STALE = "stale"
    ABSTAINED = "abstained"
    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStep:
    """One tile of the chain.

    `headline` stands where there is no value; `why` is one sentence; `join` is the rule that ties it to what came
    before (else, max, overrides, or empty for the first); `grade` is the row's id.
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


ORDER = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.FLOOR, Source.CONSUMPTION, Source.HUMAN)
JOINS = {Source.JUDGE: "", Source.CONSUMPTION: "max", Source.HUMAN: "overrides"}

# Reasons that say "there was nothing to read here", as opposed to "reading it went wrong".
NOTHING_THERE = frozenset(
    {
        Reason.NO_JOURNAL,
        Reason.NO_SIGNAL,
        Reason.NO_ARTIFACTS,
        Reason.NOT_CONSUMPTION,
        Reason.NOT_CONFIGURED,
        Reason.NO_TRANSCRIPT,
    }
)
# Reasons that say "this was read, and says neither good nor bad".
ABSTAINS = frozenset({Reason.NOTHING_OBSERVABLE, Reason.CARRIED})
NAMED = 3
DECIDERS = {
    Source.JUDGE: "The judge",
    Source.TRAJECTORY: "The trajectory",
    Source.JOURNAL: "The journal",
    Source.CONSUMPTION: "What the session left behind",
}
HEADLINES = {
    Reason.EXCLUDED: "Excluded",
    Reason.AWAITING_JUDGE: "Waiting",
    Reason.NOT_CONFIGURED: "Not configured",
    Reason.DECLINED: "Not asked",
    Reason.NOTHING_OBSERVABLE: "Nothing observable",
    Reason.CARRIED: "Carried over",
    Reason.INFRASTRUCTURE: "Not asked",
}


def number(value: float | None) -> str:
    """A grade as people read it: two digits, no leading zero; a dash where it is missing."""
    if value is None:
        return "–"
    return "1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")  # noqa: PLR2004 - where .2f shows 1.00


def weight(value: float | None) -> str:
    """An evidence weight as the policy has it: .3, 1; a dash where it is missing."""
    return "–" if value is None else f"{value:g}".removeprefix("0") or "0"


def failed_checks(vetoes: Sequence[str]) -> str:
    """Failed mandatory checks in words, at least one of them; the first three by name.

    >>> failed_checks(["ci"]), failed_checks(["ci", "lint"])
    ('the mandatory check ci failed', 'the mandatory checks ci and lint failed')
    """
    more = [f"{len(vetoes) - NAMED} more"] if len(vetoes) > NAMED else []
    *most, last = [*vetoes[:NAMED], *more]
    if not most:
        return f"the mandatory check {last} failed"
    return f"the mandatory checks {', '.join(most)} and {last} failed"


def steps(decision: Decision) -> tuple[ChainStep, ...]:
    """One step a source, in the order of the chain."""
    return tuple(_step(source, decision) for source in ORDER)


def sentence(decision: Decision) -> str:
    """The reward, whether it is final, who decides, and what could still change it."""
    if decision.decider is None:
        what = "refused to start" if decision.outcome is Outcome.REFUSED else "infrastructure"
        return f"No reward: {what}. {decision.outcome_reason.rstrip('.')}. It neither rewards nor punishes an arm."
    if decision.decider is Source.HUMAN:
        if decision.value is None:
            return "No reward, final. A person excluded this session."
        told = f"Reward {number(decision.value)}, final. A person graded it."
        over = f" It overrides the {decision.production_by}'s {number(decision.production)}."
        return told if decision.production is None else told + over
    if decision.decider is Source.FLOOR:
        effect = "teaches the bandit nothing" if decision.weight == 0 else f"counts at weight {weight(decision.weight)}"
        trajectory = decision.holds.get(Source.TRAJECTORY)
        why = f"Not graded yet (floor {number(decision.value)}). No source could score it"
        if trajectory is not None and trajectory.reason in ABSTAINS:
            why = f"No reward yet: {HEADLINES[trajectory.reason].lower()}. {trajectory.detail.rstrip('.')}"
        return f"{why}; it {effect}.{_veto(decision)}{_hope(decision)}"
    finality = "contested" if decision.is_contested else "final" if decision.is_final else "provisional"
    told = f"Reward {number(decision.value)}, {finality}. {_decided(decision, decision.decider)}"
    if decision.stale:
        told += f" The judge's {number(value_of(decision.holds, Source.JUDGE))}"
        told += " was" if decision.production_by is Source.JUDGE else " does not count: it was"
        told += f" given before {decision.stale}."
    return f"{told}{_veto(decision)}{_claim(decision)}{_hope(decision)}"


def _decided(decision: Decision, decider: Source) -> str:
    weighs, consumption = weight(decision.weight), value_of(decision.holds, Source.CONSUMPTION)
    if consumption is None or decision.production is None or _is_claim_left_aside(decision):
        return f"{DECIDERS[decider]} decides, at weight {weighs}."
    if decision.is_contested:
        return (
            f"What the session left behind would be worth {number(consumption)}, {number(decision.gap)} more than the "
            f"judge's {number(decision.production)}. Nobody knows yet which is right, so it counts {weighs}."
        )
    if decision.is_held:
        *most, last = [number(value) for value in decision.holds[Source.JUDGE].samples]
        return (
            f"The judge read it three times and agrees with itself ({', '.join(most)} and {last}; median "
            f"{number(decision.production)}). What the session left behind, {number(consumption)} by its rules, adds "
            f"at most {number(ADDED_AT_MOST)} to that, at weight {weighs}."
        )
    # What was produced, and what that is taken for beside what was left behind, where it is another number.
    produced, by = number(decision.production), decision.production_by
    taken = decision.production if by is None else decision.policy.compared(by, decision.production)
    if taken != decision.production:
        produced += f" taken for {number(taken)}"
    joined = f"max({produced}, {number(consumption)}) = {number(decision.joined)}, at weight {weighs}."
    if decider is Source.CONSUMPTION:
        return f"What the session left behind is worth more than what it produced: {joined}"
    return f"{DECIDERS[decider]} decides: {joined}"


def _is_claim_left_aside(decision: Decision) -> bool:
    """Whether what was left behind is left aside, since only the agent vouches for it and a judge has spoken."""
    return is_claimed(decision.holds) and value_of(decision.holds, Source.JUDGE) is not None


def _claim(decision: Decision) -> str:
    """That the graded agent alone vouches for something, and what that does; where it makes a difference."""
    if decision.standing == CLAIMED:
        what = "it left behind" if decision.decider is Source.CONSUMPTION else "it was graded by"
        return f" Only the agent itself vouches for what {what}."
    left = value_of(decision.holds, Source.CONSUMPTION)
    if not _is_claim_left_aside(decision) or left is None or left <= (decision.production or 0):
        return ""
    return (
        f" What it left behind would be worth {number(left)}, but only the agent itself vouches for that, and a claim "
        "lifts no verdict."
    )


def _veto(decision: Decision) -> str:
    if not decision.vetoes:
        return ""
    cap, why = number(decision.policy.veto_cap), failed_checks(decision.vetoes)
    if decision.is_capped:
        return f" The {number(decision.joined)} is capped at {cap}: {why}."
    return f" Machines can give at most {cap}: {why}."


def _hope(decision: Decision) -> str:
    if decision.is_final:
        return ""
    if decision.is_contested:
        coming = " The judge is asked to read it again." if decision.reading_open else ""
        return f"{coming} A person's grade settles it."
    if decision.judge_open and decision.vetoes:
        return " The judge's verdict does not lift that cap."
    verdict = "next verdict" if decision.stale else "verdict"
    if decision.judge_open and decision.decider is Source.CONSUMPTION:
        return f" The judge's {verdict} can raise it, and does not lower it."
    if decision.judge_open:
        return f" The judge's {verdict} replaces it exactly."
    if decision.reason is Reason.DECLINED:
        return (
            " It was handed in without a verdict, so this stays provisional until someone asks for one or reviews it."
        )
    if decision.reason is Reason.NOT_CONFIGURED and Source.JUDGE in decision.holds:
        return (
            " There was no judge when it came in, so this stays provisional until someone asks for a verdict or reviews"
            " it."
        )
    return " The judge is off, so this stays provisional until someone reviews it."


def _step(source: Source, decision: Decision) -> ChainStep:
    if source is Source.FLOOR and decision.decider is not Source.FLOOR:
        why = "A source above it has a score" if decision.decider else "This session gets no reward"
        return ChainStep(source=source, state=StepState.SKIPPED, join="else", headline="Not reached", why=why)
    if source is Source.FLOOR:
        return ChainStep(
            source=source,
            state=StepState.DECIDES,
            join="else",
            value=decision.value,
            headline="Not graded yet",
            why="No source could score it" + ("; no evidence for the bandit" if decision.weight == 0 else ""),
            provisional=True,
        )
    grade = decision.holds.get(source)
    if grade is None:
        return _absent_step(source, decision)
    decides = source is decision.decider
    return ChainStep(
        source=source,
        state=_state(grade, decision),
        join=JOINS.get(source, "else"),
        value=grade.value,
        headline="" if grade.value is not None else _headline(grade),
        why=_why(grade, decision),
        reason=grade.reason,
        provisional=decides and not decision.is_final,
        grade=grade.id,
    )


def _absent_step(source: Source, decision: Decision) -> ChainStep:
    join = JOINS.get(source, "else")
    if source is Source.HUMAN and decision.is_contested and not decision.reading_open:
        why = "A person's grade settles it"
        return ChainStep(source=source, state=StepState.WAITING, join=join, headline="Awaiting review", why=why)
    if source is Source.HUMAN:
        return ChainStep(source=source, state=StepState.SKIPPED, join=join, headline="None", why="Not reviewed")
    if source is Source.JUDGE and decision.judge_open:
        reason = Reason.AWAITING_JUDGE
        return ChainStep(
            source=source, state=StepState.WAITING, join=join, headline="Waiting", why=reason.words, reason=reason
        )
    return ChainStep(source=source, state=StepState.SKIPPED, join=join, headline="None", why="Not asked")


def _state(grade: GradeView, decision: Decision) -> StepState:
    if grade.source is decision.decider:
        return StepState.DECIDES
    if _is_passed_over(grade, decision):
        return StepState.STALE
    if grade.value is not None:
        return StepState.BEATEN
    if grade.reason is Reason.AWAITING_JUDGE:
        return StepState.WAITING
    if grade.reason in ABSTAINS:
        return StepState.ABSTAINED
    nothing_wrong = grade.reason is Reason.INFRASTRUCTURE or grade.status is Status.SKIPPED or _nothing_there(grade)
    return StepState.SKIPPED if nothing_wrong else StepState.FAILED


def _nothing_there(grade: GradeView) -> bool:
    """Whether there was nothing to read. What a session left behind is looked for in evidence of which others tell the
    trouble, so that its own answer is none, unless the looking broke.
    """
    return grade.reason in NOTHING_THERE or (
        grade.source is Source.CONSUMPTION and grade.status is Status.UNSCORED and grade.reason is Reason.UNREADABLE
    )


def _is_passed_over(grade: GradeView, decision: Decision) -> bool:
    """Whether a stale verdict is no part of the reward, since something that it has not read is."""
    return bool(grade.stale) and decision.production_by is not grade.source


def _headline(grade: GradeView) -> str:
    if grade.reason in HEADLINES:
        return HEADLINES[grade.reason]
    if grade.status is Status.SKIPPED:
        return "Not asked"
    if _nothing_there(grade):
        return "None"
    return "Failed" if grade.status is Status.FAILED else "No score"


def _why(grade: GradeView, decision: Decision) -> str:
    said = grade.detail or grade.reason.words or "It has a score"
    if grade.samples:
        apart = f", {number(grade.spread)} apart" if not grade.is_answered else ""
        said = f"The median of {', '.join(map(number, grade.samples))}{apart}. {said}"
    if grade.stale:
        again = ", and asked again" if decision.judge_open else ""
        said = f"Judged before {grade.stale}{again}. {said}"
    if grade.source is Source.CONSUMPTION and decision.is_contested:
        said = f"Contested: {number(decision.gap)} above the judge, so it counts {weight(decision.weight)}. {said}"
    elif grade.source is Source.CONSUMPTION and decision.is_held:
        most = f"it adds at most {number(ADDED_AT_MOST)}"
        said = f"Held at {number(decision.joined)}: three readings agree, and {most}. {said}"
    elif grade.source is Source.CONSUMPTION and decision.standing == CLAIMED:
        said = f"Only the agent itself vouches for it. {said}"
    if decision.is_capped and grade.source is decision.decider:
        return f"Capped at {number(decision.value)}: {failed_checks(decision.vetoes)}. {said}"
    plain = grade.value is None or grade.source is decision.decider or decision.decider is None
    if plain or _is_passed_over(grade, decision):
        return said
    return ". ".join(part for part in (_not_used(grade, decision), said) if part)


def _not_used(grade: GradeView, decision: Decision) -> str:
    """Why a scored source did not decide."""
    if decision.decider is Source.HUMAN:
        return "Overridden by a person"
    if grade.source is Source.CONSUMPTION:
        claim = "Only the agent itself vouches for it, and a claim lifts no verdict"
        return claim if _is_claim_left_aside(decision) else "Not higher, so max leaves it"
    if grade.source is decision.production_by:
        contested = f"Lower than consumption by {number(decision.gap)}, which contests it"
        return contested if decision.is_contested else "Lower than consumption, so max takes that"
    if decision.production_by is Source.JUDGE:
        return "Not used: the judge has scored"
    if decision.production_by is Source.TRAJECTORY:
        return "Not used: the trajectory has scored"
    return "At the floor, and the journal says more"
