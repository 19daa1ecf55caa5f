"""How a session ended, as its log or its runner shows; never as only the agent claims.

An infrastructure outcome takes a session out of the bandits, so the graded agent must not be able to claim it: a claim
without evidence is stored and flagged, and the session is graded as usual.
"""

from grading.models import Session
from grading.plain import plain_text
from grading.reward import trajectory
from grading.signals import Signals
from grading.vocabulary import Outcome
from grading.witness import Witness

# An exit status of a shell from this on means that a signal ended the program.
KILLED = 128
MAX_REASON = 300


def conclude(session: Session, signals: Signals | None, witness: Witness) -> None:
    """Set the session's outcome from today's evidence. Later evidence may change it, for better or worse.

    `witness` is that of the log behind the signals. An infrastructure outcome takes a session out of the bandits, so it
    is not believed of a log that only the agent vouches for, nor of an exit code from the agent or its hook.
    """
    outcome, reason = Outcome.COMPLETED, ""
    exit_witness = Witness(session.exit_witness)
    exit_code_counts = exit_witness is Witness.UNKNOWN or exit_witness.is_runner
    infrastructure = cut_by(
        session.exit_code if exit_code_counts else None, signals if witness is not Witness.CLAIMED else None
    )
    if infrastructure:
        outcome, reason = Outcome.INFRASTRUCTURE, infrastructure
    elif session.outcome_claimed == Outcome.FAILED:
        outcome, reason = Outcome.FAILED, session.claim_reason
    if (session.outcome, session.outcome_reason) != (outcome, reason):
        session.outcome, session.outcome_reason = outcome, reason
        session.save(update_fields=["outcome", "outcome_reason"])


def cut_by(exit_code: int | None, signals: Signals | None) -> str:
    """What part of its infrastructure ended the session before its work was done, as text; empty if none did."""
    if signals is not None and trajectory.was_cut(signals):
        if signals.has_model_turn:
            error = f"The log ends in an API error: {signals.cut}"
        else:
            error = f"No model turn: {', '.join(sorted(signals.api_errors))}"
        return plain_text(error, MAX_REASON)
    if exit_code is not None and exit_code >= KILLED and not (signals and trajectory.has_finished(signals)):
        return f"Its runner was ended by a signal: exit status {exit_code}"
    return ""
