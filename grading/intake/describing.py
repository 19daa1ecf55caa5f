"""Fill a session's row from the submitted metadata and from the header of its transcript."""

import datetime as dt
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from bandit import selection
from bandit.models import Arm, UnknownArm
from grading.evidence.reading import COST, EvidenceReading
from grading.intake import naming
from grading.intake.categories import provenance
from grading.intake.submission import Problem, SubmittedSession
from grading.models import CategoryWord, Session
from grading.models.sessions import CategoryOrigin
from grading.vocabulary import Outcome
from grading.witness import Witness


def describe(
    session: Session,
    metadata: SubmittedSession,
    transcript: EvidenceReading,
    *,
    witness: Witness,
    origin: CategoryOrigin,
    by: User | None = None,
) -> tuple[bool, list[Problem]]:
    """Fill the blank fields of the session's row and save it. Returns whether anything changed, and a problem for each
    name of an arm that isn't known (L13).

    `witness` vouches for a submitted exit code. `origin` decides which category takes precedence; `by` is the person
    who adopted the metadata, if any.
    """
    outranks = by is not None or witness.is_runner
    before = _state(session)
    session.title = session.title or metadata.title or transcript.title
    session.model = transcript.model or session.model or metadata.model or ""
    # The widest span submitted: a later submission of a session that went on moves its end.
    starts = [moment for moment in (session.started_at, metadata.started_at or transcript.started_at) if moment]
    ended_at = metadata.ended_at or session.ended_at
    session.ended_at = ended_at if outranks else max(session.ended_at, ended_at)
    session.started_at = min(*starts, session.ended_at) if starts else None
    if session.exit_code is None and metadata.exit_code is not None:
        session.exit_code, session.exit_witness = metadata.exit_code, witness
    if session.cost_usd is None or is_cost_from_log(session):
        stated = metadata.cost_usd if metadata.cost_usd is not None else transcript.cost_usd
        session.cost_usd = session.cost_usd if stated is None else stated
    if metadata.outcome is not None:
        session.outcome_claimed = metadata.outcome
        session.claim_reason = "" if metadata.outcome is Outcome.COMPLETED else metadata.outcome_reason
    if metadata.category and (outranks or not session.category_claimed):
        session.category_claimed = metadata.category
    # The submitted harness counts only if no transcript shows it.
    submitted_names = {
        naming.BANDIT: session.model,
        "harness": transcript.format or (metadata.harness if session.harness is None else None),
        "category": metadata.category,
    }
    names = {bandit: name for bandit, name in submitted_names.items() if name}
    resolved, refused = Arm.objects.resolve_all(names.items())
    arms = {bandit: arm for (bandit, _name), arm in resolved.items()}
    session.model_arm = arms.get(naming.BANDIT)
    session.harness = arms.get("harness", session.harness)
    category, category_words = arms.get("category"), list(session.category_words.select_related("category"))
    if category is not None and _accepts_category(session, origin, category_words, outranks=outranks):
        why = "" if by is None else "adopted from what the agent said later"
        provenance.add_word(session, origin, category, category_words, by=by, why=why)
    provenance.store_traits(session, transcript.traits, category_words)
    problems = [
        unknown(bandit, name, Arm.objects.unknown(bandit, name), is_error=name != transcript.format)
        for bandit, name in refused
        if bandit != naming.BANDIT
    ]
    if metadata.selection_id and session.selection is None:
        unknown_to_runner = bool(metadata.category) and category is None and origin is not CategoryOrigin.AGENT
        problems += _complete_selection(session, metadata, category_words, is_known=not unknown_to_runner)
    changed = [name for name, value in _state(session).items() if before[name] != value]
    if changed:
        session.save(update_fields=changed)
    return bool(changed), problems


def is_cost_from_log(session: Session) -> bool:
    """Whether the session's cost is the one that a log of it states. A submitted cost outranks it; a longer log
    updates it.
    """
    return session.cost_usd is not None and any(
        row.report.get(COST) == session.cost_usd for row in session.evidence.all()
    )


def columns(session: Session) -> dict[str, Any]:
    """The columns of a session's row that a submission may change, as JSON values."""
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
    values = {}
    for name in names:
        value = getattr(session, name)
        if isinstance(value, dt.datetime):
            value = value.isoformat()
        elif value is not None and not isinstance(value, str | int | float):
            value = str(value)
        values[name] = value
    return values


def _state(session: Session) -> dict[str, Any]:
    return {name: value for name, value in vars(session).items() if not name.startswith("_")}


def _accepts_category(
    session: Session, origin: CategoryOrigin, category_words: list[CategoryWord], *, outranks: bool
) -> bool:
    """Whether a submitted category counts: a person's or runner's always, the graded agent's only the first one."""
    if outranks:
        return True
    has_untracked_category = session.category is not None and not session.category_from
    return not has_untracked_category and not any(word.origin == origin for word in category_words)


def _complete_selection(
    session: Session, metadata: SubmittedSession, category_words: list[CategoryWord], *, is_known: bool
) -> list[Problem]:
    """Complete the decision with the arm that ran: the session's category, or else the chosen arm.

    `is_known`: False if a runner or person submitted an unknown category, which isn't replaced by the chosen one.
    """
    decision = selection.find_decision("category", session.agent.name, metadata.selection_id or "")
    if decision is None:
        return [
            Problem(
                part="selection_id",
                code="unknown_selection",
                expected="the decision_id of a selection made for this agent",
                got=repr(metadata.selection_id),
                todo="send the decision_id that POST /api/v1/selections was called with, or leave it out",
            )
        ]
    # A decision that another session completed doesn't name this session's category.
    is_open = decision.completed_at is None or decision.observation == session.observation
    if is_open and is_known:
        why = f"decision {decision.decision_id}"
        provenance.add_word(session, CategoryOrigin.DECISION, decision.arm, category_words, why=why)
    if is_open and session.category is None:
        return []
    executed = decision.arm if session.category is None else session.category
    try:
        session.selection = selection.complete(
            decision, observation=session.observation, executed_arm=executed.name, now=timezone.now()
        )
    except selection.AlreadyCompleted as error:
        return [
            Problem(
                part="selection_id",
                code="selection_completed",
                expected="a selection that no other session completed",
                got=str(error),
                todo="ask for a selection of its own for each session",
            )
        ]
    return []


def unknown(part: str, name: str, error: UnknownArm, *, is_error: bool = True) -> Problem:
    """The problem that no arm has this name, with the nearest one. A remark if the name is from the log."""
    return Problem(
        part=part,
        code=f"unknown_{part}",
        expected=f"the name of a known {part}",
        got=repr(name),
        todo=f"the session is stored without one: {error}",
        is_error=is_error,
    )
