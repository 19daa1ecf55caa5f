"""The trajectory grade: computed from a session's log, its caller's facts and its patch, without a judge.

A low number needs evidence of failure: a session of which nothing could be seen, read or understood is unscored, with a
reason. Effort is not success: nothing here grows with the number of calls, turns or tokens.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grading.plain import counted
from grading.reward.grade import SourceGrade, scored, unscored
from grading.reward.production import Production
from grading.reward.trajectory_formula import LOWEST, TrajectoryScore, score
from grading.signals import EffectKind, Signals
from grading.signals.facts import ObservedFacts
from grading.vocabulary import Reason, Source

VERSION = "trajectory/3"
# The grade of a session that looked, found nothing to do and had no trouble, in a category where that is right (triage,
# monitoring, review). A starting value, until judges have graded such sessions.
LOOKED = 0.35
MIN_READS = 3
MAX_ERROR_RATE = 0.25
# The highest grade of a session without any effect that was seen to fail.
MAX_FAILED = 0.2
# The same for a session that did some work.
MAX_FAILED_WORK = 0.3
# From this many commit-equivalents on, or with evidence of failure, the journal has nothing to add.
CONCLUSIVE_UNITS = 1.0


class EvidenceView(StrEnum):
    """Which view of a session a grade rests on. Grades from different views are different measurements."""

    FULL = "full"
    PART = "part"
    FACTS = "facts"
    LOOKED = "looked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryInput:
    """The evidence that a session is graded by.

    `signals` is None if no transcript may be used; `absent` and `why` then say why not. `looking`: in the session's
    category, finding nothing to do is a right outcome.
    """

    signals: Signals | None = None
    production: Production
    facts: ObservedFacts
    absent: Reason = Reason.NO_TRANSCRIPT
    why: str = ""
    looking: bool = False


def grade(inputs: TrajectoryInput) -> SourceGrade:
    """Grade a session. The first of these that applies decides:

    - Its infrastructure cut the log: unscored.
    - Something was confirmed: a score, from the log, or from facts and patch alone if the log can't be used.
    - A failure was observed: a low score.
    - The log can't be used: unscored.
    - It looked and found nothing to do, in a category where that is right: 0.35.
    - Otherwise: unscored, nothing observable.
    """
    log = inputs.signals
    if log is not None and was_cut(log):
        detail = (
            f"An API error ended the log ({log.cut or ', '.join(sorted(log.api_errors))}), so its work is not graded"
        )
        return _abstain(inputs, Reason.INFRASTRUCTURE, detail)
    log_problem, why = _log_problem(inputs)
    usable = None if log_problem else log
    # An error that the session recovered from isn't a failure.
    failures = [f"the mandatory check {name} failed" for name in inputs.facts.failed_checks]
    failures += [] if usable is None else usable.failures
    if inputs.production.is_work:
        view = EvidenceView.FACTS
        if usable:
            view = EvidenceView.PART if usable.truncated or usable.unreadable_calls else EvidenceView.FULL
        detail = f"{inputs.production.summary}: {inputs.production.units:.1f} commit-equivalents"
        if why:
            detail += f", from facts and patch alone ({why[:1].lower()}{why[1:]})"
        # If looking is the work, doing something as well is worth no less than finding nothing to do.
        lowest = LOOKED if usable and inputs.looking and has_looked(usable) and not failures else LOWEST
        highest = MAX_FAILED_WORK if failures else 1.0
        return _scored(inputs, view, failures, _score(inputs, usable, lowest=lowest, highest=highest), detail)
    if failures:
        detail = f"No visible result: {'; '.join(failures)}"
        return _scored(inputs, EvidenceView.FAILED, failures, _score(inputs, usable, highest=MAX_FAILED), detail)
    if log_problem or usable is None:
        return _abstain(inputs, log_problem, why)
    if inputs.looking and has_looked(usable):
        detail = f"Looked at {usable.reads} things, found nothing to do, and said so"
        return _scored(inputs, EvidenceView.LOOKED, failures, TrajectoryScore(value=LOOKED), detail)
    # The formula's grade for conduct alone is stored with the abstention, so that it can be compared with verdicts.
    withheld = _score(inputs, usable)
    detail = "It answered without a tool call"
    if usable.calls:
        opaque = f", {usable.opaque_calls} of them of tools that the site does not know" if usable.opaque_calls else ""
        calls = counted(usable.calls, "tool call")
        detail = f"{calls}{opaque}, none with a visible result"
    return _abstain(inputs, Reason.NOTHING_OBSERVABLE, detail, withheld=round(withheld.value, 6))


def was_cut(log: Signals) -> bool:
    """Whether the log itself records that its infrastructure ended it: an API error after which nothing came, before
    the session had concluded, merged or seen its tests pass.
    """
    if not log.has_model_turn:
        return bool(log.api_errors)
    return bool(log.cut) and not has_finished(log)


def has_finished(log: Signals) -> bool:
    """Whether a session had finished its work: it has a final message, a merge, or its own last tests passed."""
    return log.concluded or log.count(EffectKind.PR_MERGED) > 0 or log.last_tests is True


def has_looked(log: Signals) -> bool:
    """Whether a session read several things without trouble and reported on them."""
    return log.reads >= MIN_READS and log.error_rate < MAX_ERROR_RATE and log.concluded


def _log_problem(inputs: TrajectoryInput) -> tuple[Reason, str]:
    """Why the log can't be used for grading, as a reason and as text; Reason.NONE if it can."""
    log = inputs.signals
    if log is None:
        return inputs.absent, inputs.why or inputs.absent.words
    if not log.has_model_turn:
        return Reason.STUB_NO_TOOL_CALLS, (
            "The log contains neither an answer nor a tool call; the whole transcript was expected"
        )
    if log.calls == 0 and (inputs.facts.show_work or inputs.production.is_work):
        return Reason.STUB_NO_TOOL_CALLS, f"{Reason.STUB_NO_TOOL_CALLS.words}; not graded from this log"
    if log.is_blind:
        return Reason.FORMAT_BLIND, blindness(log)
    return Reason.NONE, ""


def blindness(log: Signals) -> str:
    """What could not be read of a blind log, as text."""
    if log.results > 0 and log.known_results == 0:
        return f"None of its {counted(log.results, 'result')} says whether its call worked"
    if 0 < log.shell_calls == log.bare_shell_calls:
        return f"None of its {counted(log.shell_calls, 'shell call')} shows its command"
    if 2 * log.unknown_calls > log.calls:
        return f"{log.unknown_calls:,} of its {counted(log.calls, 'call')} are of tools that the site does not know"
    return f"{log.unreadable_calls:,} of its {counted(log.calls, 'call')} could not be read"


def _score(
    inputs: TrajectoryInput, log: Signals | None, *, lowest: float = LOWEST, highest: float = 1.0
) -> TrajectoryScore:
    work = inputs.production
    return score(log, units=work.units, did_something=work.is_work, lowest=lowest, highest=highest)


def _scored(
    inputs: TrajectoryInput, view: EvidenceView, failures: list[str], result: TrajectoryScore, detail: str
) -> SourceGrade:
    """The grade, with the evidence that the session's page shows.

    `stands`: the journal has nothing to add, since there is enough work or a failure.
    """
    log_problem, _why = _log_problem(inputs)
    graded_log = None if view is EvidenceView.FACTS else inputs.signals
    return scored(
        Source.TRAJECTORY,
        result.value,
        version=VERSION,
        detail=detail,
        weighed=[row.as_dict() for row in result.contributions],
        view=view.value,
        log=log_problem.value,
        failures=failures,
        stands=inputs.production.units >= CONCLUSIVE_UNITS or bool(failures),
        **_production_evidence(inputs.production),
        **({} if graded_log is None else _conduct_evidence(graded_log)),
    )


def _abstain(inputs: TrajectoryInput, reason: Reason, detail: str, **more: Any) -> SourceGrade:
    log = inputs.signals
    evidence = _production_evidence(inputs.production) | ({} if log is None else _conduct_evidence(log)) | more
    return unscored(Source.TRAJECTORY, reason, version=VERSION, detail=detail, **evidence)


def _production_evidence(production: Production) -> dict[str, Any]:
    return {"terms": [term.as_dict() for term in production.terms], "units": round(production.units, 6)}


def _conduct_evidence(log: Signals) -> dict[str, Any]:
    return {"error_rate": round(log.error_rate, 6)}
