"""What is known of a session besides its evidence: the caller's metadata and the transcript's header, into its row."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from bandit import selection
from bandit.models import Arm, UnknownArm
from grading.evidence.reading import EvidenceReading
from grading.intake import naming
from grading.intake.submission import Problem, SubmittedSession
from grading.models import Session
from grading.vocabulary import Outcome
from grading.witness import Witness


def describe(
    session: Session, said: SubmittedSession, transcript: EvidenceReading, *, witness: Witness, outranks: bool = False
) -> tuple[bool, list[Problem]]:
    """Fill what is blank in the session's row; whether anything changed, and what was not known by its name (L13).

    `witness` vouches for an exit code. `outranks`: a runner or a person says it, and a category that the graded had
    said first gives way.
    """
    before = _state(session)
    session.title = session.title or said.title or transcript.title
    session.model = transcript.model or session.model or said.model or ""
    # The widest span that was seen: a later submission of a session that went on moves its end.
    starts = [moment for moment in (session.started_at, said.started_at or transcript.started_at) if moment]
    ended_at = said.ended_at or session.ended_at
    session.ended_at = ended_at if outranks else max(session.ended_at, ended_at)
    session.started_at = min(*starts, session.ended_at) if starts else None
    if session.exit_code is None and said.exit_code is not None:
        session.exit_code, session.exit_witness = said.exit_code, witness
    if session.cost_usd is None:
        session.cost_usd = said.cost_usd
    if said.outcome is not None:
        session.outcome_claimed = said.outcome
        session.claim_reason = "" if said.outcome is Outcome.COMPLETED else said.outcome_reason
    if said.category and (outranks or not session.category_claimed):
        session.category_claimed = said.category
    # The caller's word on the harness counts only where no transcript shows it.
    told = {
        naming.BANDIT: session.model,
        "harness": transcript.format or (said.harness if session.harness is None else None),
        "category": said.category if session.category is None or outranks else None,
    }
    names = {bandit: name for bandit, name in told.items() if name}
    arms, refused = Arm.objects.resolve_all(names.items())
    found = {bandit: arm for (bandit, _name), arm in arms.items()}
    session.model_arm = found.get(naming.BANDIT)
    session.harness = found.get("harness", session.harness)
    session.category = found.get("category", session.category)
    problems = [
        unknown(bandit, name, Arm.objects.unknown(bandit, name)) for bandit, name in refused if bandit != naming.BANDIT
    ]
    if said.selection_id and session.selection is None:
        problems += _selection(session, said)
    changed = before != _state(session)
    if changed:
        session.save()
    return changed, problems


def columns(session: Session) -> dict[str, Any]:
    """What a submission may change of a session's row, as JSON."""
    names = [
        "title",
        "model",
        "category",
        "harness",
        "model_arm",
        "selection",
        "started_at",
        "ended_at",
        "exit_code",
        "cost_usd",
    ]
    names += ["outcome_claimed", "claim_reason", "category_claimed"]
    said = {}
    for name in names:
        value = getattr(session, name)
        is_plain = value is None or isinstance(value, str | int | float)
        said[name] = value if is_plain else value.isoformat() if isinstance(value, dt.datetime) else str(value)
    return said


def _state(session: Session) -> dict[str, Any]:
    return {name: value for name, value in vars(session).items() if not name.startswith("_")}


def _selection(session: Session, said: SubmittedSession) -> Iterator[Problem]:
    """Close the decision with the arm that ran. A category that nobody knows is not taken for the one chosen."""
    chosen = selection.asked("category", session.agent.name, said.selection_id or "")
    if chosen is None:
        yield Problem(
            part="selection_id",
            code="unknown_selection",
            expected="the decision_id of a selection made for this agent",
            got=repr(said.selection_id),
            todo="send the decision_id that POST /api/v1/selections was called with, or leave it out",
        )
        return
    if session.category is None and not said.category:
        session.category = chosen.arm
    if session.category is None:
        return
    try:
        session.selection = selection.complete(
            chosen, observation=session.observation, executed_arm=session.category.name, now=timezone.now()
        )
    except selection.AlreadyCompleted as error:
        yield Problem(
            part="selection_id",
            code="selection_completed",
            expected="a selection that no other session completed",
            got=str(error),
            todo="ask for a selection of its own for each session",
        )


def unknown(part: str, name: str, error: UnknownArm) -> Problem:
    """That a name the caller gave is nobody's, and which is nearest."""
    return Problem(
        part=part,
        code=f"unknown_{part}",
        expected=f"the name of a known {part}",
        got=repr(name),
        todo=f"the session is stored without one: {error}",
    )
