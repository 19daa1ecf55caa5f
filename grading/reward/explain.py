"""Explains a decision: one step per source (the tiles of the chain) and one sentence. Every page uses these texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grading.reward.decide import MAX_ADDED, Decision, GradeView, is_claimed, value_of
from grading.reward.standing import CLAIMED, FEW_SAMPLES
from grading.vocabulary import Outcome, Reason, Source, Status


class StepState(StrEnum):
    """The role of a source in a decision. STALE: it has not read the current evidence; BEATEN: scored, but another one
    decides; SKIPPED: not reached or not needed; WAITING: it may still come.
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

    `headline` is shown if there is no value; `why` explains the state; `join` is the rule that combines the source with
    those before it (else, max, overrides; empty for the first); `grade` is the grade's primary key.
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

# Reasons that mean "there was nothing to read", as opposed to "reading it failed".
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
# Reasons that mean "this was read, and shows neither good nor bad".
ABSTAINS = frozenset({Reason.NOTHING_OBSERVABLE, Reason.CARRIED})
# Failed checks beyond this many are counted, not named.
MAX_NAMED = 3
DECIDERS = {
    Source.JUDGE: "The judge",
    Source.TRAJECTORY: "The trajectory",
    Source.JOURNAL: "The journal",
    Source.CONSUMPTION: "The consumption grade",
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
    """A grade as text: two digits, no leading zero; a dash if it is missing."""
    if value is None:
        return "–"
    return "1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")  # noqa: PLR2004 - where .2f shows 1.00


def weight(value: float | None) -> str:
    """An evidence weight as text: .3, 1; a dash if it is missing."""
    return "–" if value is None else f"{value:g}".removeprefix("0") or "0"


def failed_checks(vetoes: Sequence[str]) -> str:
    """At least one failed mandatory check as text; the first three by name.

    >>> failed_checks(["ci"]), failed_checks(["ci", "lint"])
    ('the mandatory check ci failed', 'the mandatory checks ci and lint failed')
    """
    more = [f"{len(vetoes) - MAX_NAMED} more"] if len(vetoes) > MAX_NAMED else []
    *first, last = [*vetoes[:MAX_NAMED], *more]
    if not first:
        return f"the mandatory check {last} failed"
    return f"the mandatory checks {', '.join(first)} and {last} failed"


def steps(decision: Decision) -> list[ChainStep]:
    """One step for each source, in the order of the chain."""
    return [_step(source, decision) for source in ORDER]


def sentence(decision: Decision) -> str:
    """One to five sentences: the reward, whether it is final, which source decides, and what could still change it."""
    if decision.decider is None:
        what = "refused to start" if decision.outcome is Outcome.REFUSED else "infrastructure"
        return f"No reward: {what}. {decision.outcome_reason.rstrip('.')}. The session changes no arm."
    if decision.decider is Source.HUMAN:
        return _human_sentence(decision)
    if decision.decider is Source.FLOOR:
        return f"{_floor_sentence(decision)}{_veto_sentence(decision)}{_what_may_change(decision)}"
    finality = "contested" if decision.is_contested else "final" if decision.is_final else "provisional"
    text = f"Reward {number(decision.value)}, {finality}. {_decider_sentence(decision, decision.decider)}"
    limits = f"{_stale_sentence(decision)}{_veto_sentence(decision)}{_claim_sentence(decision)}"
    return f"{text}{limits}{_what_may_change(decision)}"


def _human_sentence(decision: Decision) -> str:
    if decision.value is None:
        return "No reward, final. A person excluded this session."
    text = f"Reward {number(decision.value)}, final. A person graded it."
    if decision.production is None:
        return text
    return f"{text} It overrides the {decision.production_by}'s {number(decision.production)}."


def _floor_sentence(decision: Decision) -> str:
    """Why no source has a score, and whether the floor counts as evidence."""
    effect = "teaches the bandit nothing" if decision.weight == 0 else f"counts at weight {weight(decision.weight)}"
    trajectory = decision.grades.get(Source.TRAJECTORY)
    if trajectory is not None and trajectory.reason in ABSTAINS:
        headline = HEADLINES[trajectory.reason].lower()
        return f"No reward yet: {headline}. {trajectory.detail.rstrip('.')}. The session {effect}."
    return f"Not graded yet (floor {number(decision.value)}). No source could score the session, so it {effect}."


def _stale_sentence(decision: Decision) -> str:
    """That the verdict is older than some evidence, and whether it counts; empty if there is no stale verdict."""
    if not decision.stale:
        return ""
    verdict = number(value_of(decision.grades, Source.JUDGE))
    if decision.production_by is Source.JUDGE:
        return f" The judge's {verdict} was given before {decision.stale}."
    return f" The judge's {verdict} does not count: it was given before {decision.stale}."


def _decider_sentence(decision: Decision, decider: Source) -> str:
    """Which machine other than the floor decides, and how its number is computed."""
    used_weight = weight(decision.weight)
    at_weight = f"at weight {used_weight}"
    if decider in (Source.TRAJECTORY, Source.JOURNAL):  # verdicts about the arm reduce it further
        at_weight = f"with a weight of at most {used_weight}"
    consumption = value_of(decision.grades, Source.CONSUMPTION)
    by = decision.production_by  # None exactly if `production` is
    # Only one of production and consumption is there or counts: nothing to compare.
    if consumption is None or decision.production is None or by is None or _is_claim_ignored(decision):
        return f"{DECIDERS[decider]} decides, {at_weight}."
    if decision.is_contested:
        return (
            f"The session’s artifacts would earn {number(consumption)}, which is {number(decision.gap)} more than "
            f"the judge's {number(decision.production)}. Until it is clear which is right, the reward has weight "
            f"{used_weight}."
        )
    if decision.is_limited:
        *first, last = [number(value) for value in decision.grades[Source.JUDGE].samples]
        return (
            f"The judge’s three readings agree ({', '.join(first)} and {last}; median "
            f"{number(decision.production)}). The session’s artifacts, worth {number(consumption)} by their rules, "
            f"add at most {number(MAX_ADDED)} to that, {at_weight}."
        )
    # The grade of what was produced, and the number that stands for it in the comparison, if that is another one.
    produced = number(decision.production)
    compared_as = decision.policy.compared(by, decision.production)
    if compared_as != decision.production:
        produced += f" taken for {number(compared_as)}"
    joined = f"max({produced}, {number(consumption)}) = {number(decision.joined)}, {at_weight}."
    if decider is Source.CONSUMPTION:
        return f"The session’s artifacts are worth more than its other work: {joined}"
    return f"{DECIDERS[decider]} decides: {joined}"


def _is_claim_ignored(decision: Decision) -> bool:
    """Whether what was left behind doesn't count, because only the agent vouches for it and there is a verdict."""
    return is_claimed(decision.grades) and value_of(decision.grades, Source.JUDGE) is not None


def _claim_sentence(decision: Decision) -> str:
    """That the reward counts less, or that a higher consumption grade doesn't count, and why; empty otherwise."""
    if decision.standing == CLAIMED:
        what = "its artifacts" if decision.decider is Source.CONSUMPTION else "its evidence"
        return f" Only the agent itself vouches for {what}."
    if decision.standing == FEW_SAMPLES:
        return " The site has read few logs of this harness so far, so the reward counts half."
    consumption = value_of(decision.grades, Source.CONSUMPTION)
    verdict = decision.production or 0
    if _is_claim_ignored(decision) and consumption is not None and consumption > verdict:
        return (
            f" The session’s artifacts would earn {number(consumption)}, but only the agent itself vouches for "
            "them, so they can’t raise the verdict."
        )
    return ""


def _veto_sentence(decision: Decision) -> str:
    """The effect of failed mandatory checks on the reward; empty without any."""
    if not decision.vetoes:
        return ""
    cap, why = number(decision.policy.veto_cap), failed_checks(decision.vetoes)
    if decision.is_capped:
        return f" The grade of {number(decision.joined)} is capped at {cap}: {why}."
    return f" Automatic grades can give at most {cap}: {why}."


def _what_may_change(decision: Decision) -> str:
    """What could still change a reward that is not final; empty for one that is."""
    if decision.is_final:
        return ""
    if decision.is_contested:
        coming = " The judge will read the session again." if decision.reading_open else ""
        return f"{coming} A person's grade would settle it."
    if decision.judge_open and decision.vetoes:
        return " The judge's verdict can’t raise that cap."
    verdict = "next verdict" if decision.stale else "verdict"
    if decision.judge_open and decision.decider is Source.CONSUMPTION:
        return f" The judge's {verdict} can raise the reward but not lower it."
    if decision.judge_open:
        return f" The judge's {verdict} will replace it exactly."
    if decision.reason is Reason.DECLINED:
        return (
            " The session was submitted without a request for a verdict, so the reward stays provisional until "
            "someone requests a verdict or reviews the session."
        )
    if decision.reason is Reason.NOT_CONFIGURED and Source.JUDGE in decision.grades:
        return (
            " There was no judge when the session arrived, so the reward stays provisional until someone requests a "
            "verdict or reviews the session."
        )
    return " No verdict is coming, so the reward stays provisional until someone reviews the session."


def _step(source: Source, decision: Decision) -> ChainStep:
    """The tile of one source."""
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
    grade = decision.grades.get(source)
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
    """The step of a source without a grade. A contested reward waits for a person once no reading may come any more."""
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
    """The role of a source that has a grade row, scored or not."""
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
    is_skipped = grade.reason is Reason.INFRASTRUCTURE or grade.status is Status.SKIPPED or _has_nothing_to_read(grade)
    return StepState.SKIPPED if is_skipped else StepState.FAILED


def _has_nothing_to_read(grade: GradeView) -> bool:
    """Whether the source had nothing to read, as opposed to failing to read it.

    For consumption, unreadable evidence counts as nothing to read, unless the search for artifacts itself failed.
    """
    return grade.reason in NOTHING_THERE or (
        grade.source is Source.CONSUMPTION and grade.status is Status.UNSCORED and grade.reason is Reason.UNREADABLE
    )


def _is_passed_over(grade: GradeView, decision: Decision) -> bool:
    """Whether a stale verdict does not count: the reward comes from evidence that the judge has not read."""
    return bool(grade.stale) and decision.production_by is not grade.source


def _headline(grade: GradeView) -> str:
    """The text that a tile shows in place of a value."""
    if grade.reason in HEADLINES:
        return HEADLINES[grade.reason]
    if grade.status is Status.SKIPPED:
        return "Not asked"
    if _has_nothing_to_read(grade):
        return "None"
    return "Failed" if grade.status is Status.FAILED else "No score"


def _why(grade: GradeView, decision: Decision) -> str:
    """The text of a source's tile: why it counts as it does, then its grader's own detail."""
    sentences = []
    is_decider = grade.source is decision.decider
    if decision.is_capped and is_decider:
        sentences.append(f"Capped at {number(decision.value)}: {failed_checks(decision.vetoes)}")
    elif grade.value is not None and decision.decider and not is_decider and not _is_passed_over(grade, decision):
        sentences.append(_not_used(grade, decision))
    if grade.source is Source.CONSUMPTION and (note := _consumption_note(decision)):
        sentences.append(note)
    if grade.stale:
        asked_again = ", and asked again" if decision.judge_open else ""
        sentences.append(f"Judged before {grade.stale}{asked_again}")
    if grade.samples:
        spread = f", {number(grade.spread)} apart" if not grade.readings_agree else ""
        sentences.append(f"The median of {', '.join(map(number, grade.samples))}{spread}")
    sentences.append(grade.detail or grade.reason.words or "It has a score")
    return ". ".join(sentences)


def _consumption_note(decision: Decision) -> str:
    """A note on the grade of what the session left behind if it is contested, limited or claimed; else empty."""
    if decision.is_contested:
        return (
            f"Contested: {number(decision.gap)} above the judge’s verdict, so the reward has weight "
            f"{weight(decision.weight)}"
        )
    if decision.is_limited:
        limit = f"it adds at most {number(MAX_ADDED)}"
        return f"Held at {number(decision.joined)}: three readings agree, and {limit}"
    return "Only the agent itself vouches for it" if decision.standing == CLAIMED else ""


def _not_used(grade: GradeView, decision: Decision) -> str:
    """Why a scored source did not decide."""
    if decision.decider is Source.HUMAN:
        return "Overridden by a person"
    if grade.source is Source.CONSUMPTION:
        claim = "Only the agent itself vouches for it, so it can’t raise the verdict"
        return claim if _is_claim_ignored(decision) else "Not higher, so it doesn’t count"
    if grade.source is decision.production_by:  # beaten by consumption
        contested = f"Lower than consumption by {number(decision.gap)}, which contests it"
        return contested if decision.is_contested else "Lower than consumption, so consumption counts"
    if decision.production_by is Source.JUDGE:
        return "Not used: the judge has scored"
    if decision.production_by is Source.TRAJECTORY:
        return "Not used: the trajectory has scored"
    # A trajectory that doesn't stand by itself, beaten by the journal.
    return "At the floor, and the journal’s grade is higher"
