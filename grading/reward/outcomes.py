"""How a session ended: what its log or its runner shows, never what the agent says of itself.

Infrastructure takes a session out of the bandits, so whoever is graded must not be able to claim it: a claim that
nothing supports is kept, flagged, and the session is graded as usual.
"""

from grading.models import Session
from grading.plain import plain_text
from grading.reward import trajectory
from grading.signals import Signals
from grading.vocabulary import Outcome
from grading.witness import Witness

# A shell's exit status from here on means that a signal ended the program.
KILLED = 128
REASON = 300


def conclude(session: Session, signals: Signals | None, witness: Witness) -> None:
    """Set the session's outcome from what is known of it now; fuller evidence may change it either way.

    `witness` vouches for the log that the signals are of. Neither a log of which there is only the agent's own word nor
    an exit code that nobody outside of the agent saw takes a session out.
    """
    outcome, reason = Outcome.COMPLETED, ""
    told = Witness(session.exit_witness)
    is_seen = told is Witness.UNKNOWN or told.is_runner
    cut = cut_by(session.exit_code if is_seen else None, signals if witness is not Witness.CLAIMED else None)
    if cut:
        outcome, reason = Outcome.INFRASTRUCTURE, cut
    elif session.outcome_claimed == Outcome.FAILED:
        outcome, reason = Outcome.FAILED, session.claim_reason
    if (session.outcome, session.outcome_reason) != (outcome, reason):
        session.outcome, session.outcome_reason = outcome, reason
        session.save(update_fields=["outcome", "outcome_reason"])


def cut_by(exit_code: int | None, signals: Signals | None) -> str:
    """What of its infrastructure ended the session before its work was done, in words; empty where nothing did."""
    if signals is not None and trajectory.was_cut(signals):
        errors = ", ".join(sorted(signals.api_errors))
        said = f"The log ends in an API error: {signals.cut}" if signals.has_model_turn else f"No model turn: {errors}"
        return plain_text(said, REASON)
    if exit_code is not None and exit_code >= KILLED and not (signals and trajectory.has_finished(signals)):
        return f"Its runner was ended by a signal: exit status {exit_code}"
    return ""
