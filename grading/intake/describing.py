"""What is known of a session besides its evidence: the caller's metadata and the transcript's header, into its row."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from bandit import selection
from bandit.models import Arm, UnknownArm
from grading.evidence.reading import COST, EvidenceReading
from grading.intake import naming
from grading.intake.categories import given
from grading.intake.submission import Problem, SubmittedSession
from grading.models import CategoryWord, Session
from grading.models.sessions import CategoryOrigin
from grading.vocabulary import Outcome
from grading.witness import Witness


def describe(
    session: Session,
    said: SubmittedSession,
    transcript: EvidenceReading,
    *,
    witness: Witness,
    origin: CategoryOrigin,
    by: User | None = None,
) -> tuple[bool, list[Problem]]:
    """Fill what is blank in the session's row, and save it; whether anything changed, and what was not known by its
    name (L13).

    `witness` vouches for an exit code. `origin` is whose word it is, by which the category is weighed against others';
    `by` the person, where it is one's.
    """
    outranks = by is not None or witness.is_runner
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
    if session.cost_usd is None or is_cost_from_log(session):
        stated = said.cost_usd if said.cost_usd is not None else transcript.cost_usd
        session.cost_usd = session.cost_usd if stated is None else stated
    if said.outcome is not None:
        session.outcome_claimed = said.outcome
        session.claim_reason = "" if said.outcome is Outcome.COMPLETED else said.outcome_reason
    if said.category and (outranks or not session.category_claimed):
        session.category_claimed = said.category
    # The caller's word on the harness counts only where no transcript shows it.
    told = {
        naming.BANDIT: session.model,
        "harness": transcript.format or (said.harness if session.harness is None else None),
        "category": said.category,
    }
    names = {bandit: name for bandit, name in told.items() if name}
    arms, refused = Arm.objects.resolve_all(names.items())
    found = {bandit: arm for (bandit, _name), arm in arms.items()}
    session.model_arm = found.get(naming.BANDIT)
    session.harness = found.get("harness", session.harness)
    words = list(session.category_words.select_related("category"))
    if (category := found.get("category")) is not None and _is_first(session, origin, words, outranks=outranks):
        given.say(
            session, origin, category, words, by=by, why="" if by is None else "adopted from what the agent said later"
        )
    given.take_in(session, transcript.traits, words)
    problems = [
        unknown(bandit, name, Arm.objects.unknown(bandit, name), is_error=name != transcript.format)
        for bandit, name in refused
        if bandit != naming.BANDIT
    ]
    if said.selection_id and session.selection is None:
        unknown_to_runner = bool(said.category) and category is None and origin is not CategoryOrigin.AGENT
        problems += _selection(session, said, words, is_known=not unknown_to_runner)
    changed = [name for name, value in _state(session).items() if before[name] != value]
    if changed:
        session.save(update_fields=changed)
    return bool(changed), problems


def is_cost_from_log(session: Session) -> bool:
    """Whether the session's cost is what a log of it states. A caller's word outranks that; a longer log updates it."""
    return session.cost_usd is not None and any(
        row.report.get(COST) == session.cost_usd for row in session.evidence.all()
    )


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


def _is_first(session: Session, origin: CategoryOrigin, words: list[CategoryWord], *, outranks: bool) -> bool:
    """Whether a word on the category is heard: a person's and a runner's always, the graded's own the first time."""
    if outranks:
        return True
    is_from_before = session.category is not None and not session.category_from
    return not is_from_before and not any(word.origin == origin for word in words)


def _selection(
    session: Session, said: SubmittedSession, words: list[CategoryWord], *, is_known: bool
) -> Iterator[Problem]:
    """Close the decision with the arm that ran: the one chosen, unless a runner or a person said another.

    A category of theirs that nobody knows is not taken for the one chosen.
    """
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
    # One that another session closed says nothing of this one.
    is_free = chosen.completed_at is None or chosen.observation == session.observation
    if is_free and is_known:
        given.say(session, CategoryOrigin.DECISION, chosen.arm, words, why=f"decision {chosen.decision_id}")
    if is_free and session.category is None:
        return
    executed = chosen.arm if session.category is None else session.category
    try:
        session.selection = selection.complete(
            chosen, observation=session.observation, executed_arm=executed.name, now=timezone.now()
        )
    except selection.AlreadyCompleted as error:
        yield Problem(
            part="selection_id",
            code="selection_completed",
            expected="a selection that no other session completed",
            got=str(error),
            todo="ask for a selection of its own for each session",
        )


def unknown(part: str, name: str, error: UnknownArm, *, is_error: bool = True) -> Problem:
    """That a name is nobody's, and which is nearest. A remark where the caller didn't give it, but its log did."""
    return Problem(
        part=part,
        code=f"unknown_{part}",
        expected=f"the name of a known {part}",
        got=repr(name),
        todo=f"the session is stored without one: {error}",
        is_error=is_error,
    )
