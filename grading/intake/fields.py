"""The fields of a submission: which columns of the session each sets, and what a later value does to an earlier one.

Anybody may set a field until the session's description is final, and a person or runner at any time. What the graded
agent submits later becomes a proposal if it would change anything (`first_word`). A log's harness and model replace
submitted ones; its title, times and cost, and the project that it shows, count only if none were submitted.
"""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from bandit import selection
from bandit.models import Arm, Bandit
from bandit.names import canonical
from grading import formats
from grading.evidence.receiving import COST, EvidenceReading
from grading.formats.reader import Recogniser
from grading.intake import lessons
from grading.intake.categories import provenance, rules
from grading.intake.submission import Problem, SubmittedSession, unknown_arm
from grading.models import CategoryWord, Project, Session
from grading.models.sessions import CategoryOrigin
from grading.models.submissions import ProposedField
from grading.signals.remotes import project_key
from grading.vocabulary import Outcome
from grading.witness import Witness

# How far a caller's clock may be off: a new session may end this much after now, and a later end counts only beyond it.
CLOCK_TOLERANCE = dt.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class SubmittedField:
    """A field of `SubmittedSession`, the columns of `Session` that it sets, and the proposal that it may become."""

    name: str
    columns: tuple[str, ...]
    proposal: ProposedField


# The comments say what a later value does to an earlier one.
FIELDS = (
    # Replaces the earlier outcome.
    SubmittedField("outcome", ("outcome_claimed",), ProposedField.OUTCOME),
    SubmittedField("outcome_reason", ("claim_reason",), ProposedField.OUTCOME),
    # The strongest origin's category counts, see `categories.provenance`.
    SubmittedField("category", ("category", "category_claimed"), ProposedField.CATEGORY),
    # Has no effect if there is a title.
    SubmittedField("title", ("title",), ProposedField.TITLE),
    # Moves the start back and the end forward; a person or runner may also move the end back.
    SubmittedField("started_at", ("started_at",), ProposedField.DATES),
    SubmittedField("ended_at", ("ended_at",), ProposedField.DATES),
    # These have no effect if there is a value, except that a log's cost is replaced, and see `takes_exit_code`.
    SubmittedField("harness", ("harness",), ProposedField.ENGINE),
    SubmittedField("model", ("model", "model_arm"), ProposedField.ENGINE),
    SubmittedField("exit_code", ("exit_code",), ProposedField.RUN),
    SubmittedField("cost_usd", ("cost_usd",), ProposedField.RUN),
    SubmittedField("project", ("project",), ProposedField.PROJECT),
    SubmittedField("task", ("task",), ProposedField.PROJECT),
    SubmittedField("selection_id", ("selection",), ProposedField.SELECTION),
    # Adds rows of their own.
    SubmittedField("lessons", (), ProposedField.LESSONS),
    SubmittedField("lessons_decision_id", (), ProposedField.LESSONS),
)
DEFAULTS: dict[str, Any] = {name: field.default for name, field in SubmittedSession.model_fields.items()}


def submitted_names(metadata: SubmittedSession, proposal: ProposedField) -> set[str]:
    """The fields of a proposal that were submitted."""
    names = [field.name for field in FIELDS if field.proposal == proposal]
    return {name for name in names if getattr(metadata, name) != DEFAULTS[name]}


def would_change(session: Session, metadata: SubmittedSession, proposal: ProposedField) -> bool:
    """Whether the session would change if the submitted fields of a proposal took effect."""
    match proposal:
        case ProposedField.OUTCOME:
            claim = (session.outcome_claimed, session.claim_reason)
            return metadata.outcome is not None and (metadata.outcome, _claim_reason(metadata)) != claim
        case ProposedField.DATES:
            starts = [moment for moment in (session.started_at, metadata.started_at) if moment]
            ends_later = metadata.ended_at is not None and metadata.ended_at > session.ended_at + CLOCK_TOLERANCE
            return ends_later or (bool(starts) and min(starts) != session.started_at)
        case ProposedField.CATEGORY:
            current_names = {session.category_claimed, "" if session.category is None else session.category.name}
            return canonical(metadata.category or "") not in set(map(canonical, current_names))
        case ProposedField.LESSONS:
            return lessons.would_change(session, metadata)
        case _:
            fields = [field for field in FIELDS if field.proposal == proposal]
            return any(_fills_blank(session, metadata, field) for field in fields)


def takes_exit_code(session: Session, witness: Witness) -> bool:
    """Whether an exit code from this witness takes effect: the first one does, and a runner's replaces any other's."""
    return session.exit_code is None or (witness.is_runner and not Witness(session.exit_witness).is_runner)


def _claim_reason(metadata: SubmittedSession) -> str:
    return "" if metadata.outcome is Outcome.COMPLETED else metadata.outcome_reason


def _fills_blank(session: Session, metadata: SubmittedSession, field: SubmittedField) -> bool:
    """Whether the field was submitted and would set its column, which is blank or has the cost that a log states."""
    value = getattr(metadata, field.name)
    current = getattr(session, field.columns[0])
    if value in (None, "", current):
        return False
    return current in (None, "") or (field.name == "cost_usd" and is_cost_from_log(session))


def is_cost_from_log(session: Session) -> bool:
    """Whether the session's cost is the one that a log of it states. A submitted cost outranks it; a longer log
    updates it.
    """
    return session.cost_usd is not None and any(
        row.report.get(COST) == session.cost_usd for row in session.evidence.all()
    )


def column_values(session: Session) -> dict[str, Any]:
    """The columns of the session's row that a submission may change, as JSON values."""
    values = {}
    for field in FIELDS:
        for name in field.columns:
            value = getattr(session, name)
            if isinstance(value, dt.datetime):
                value = value.isoformat()
            elif value is not None and not isinstance(value, str | int | float):
                value = str(value)
            values[name] = value
    return values


def apply(
    session: Session,
    metadata: SubmittedSession,
    log: EvidenceReading,
    *,
    witness: Witness,
    origin: CategoryOrigin,
    by: User | None = None,
) -> tuple[bool, list[Problem]]:
    """Set the session's columns from the submitted metadata and from its log, and save them.

    `witness` vouches for a submitted exit code. `origin` decides which category takes precedence; `by` is the person
    who adopted the metadata, if any. Returns whether anything changed, and a problem for each name that isn't an arm's
    (no arm is made from a submission).
    """
    is_trusted = by is not None or witness.is_runner
    before = _loaded_columns(session)
    session.title = session.title or metadata.title or log.title
    session.model = log.model or session.model or metadata.model or ""
    _set_dates(session, metadata, log, is_trusted=is_trusted)
    if metadata.exit_code is not None and takes_exit_code(session, witness):
        session.exit_code, session.exit_witness = metadata.exit_code, witness
    if session.project is None and (key := project_key(metadata.project)):
        session.project = Project.objects.for_key(key)
    session.task = session.task or metadata.task
    cost = log.cost_usd if metadata.cost_usd is None else metadata.cost_usd
    if cost is not None and (session.cost_usd is None or is_cost_from_log(session)):
        session.cost_usd = cost
    if metadata.outcome is not None:
        session.outcome_claimed = metadata.outcome
        session.claim_reason = _claim_reason(metadata)
    if metadata.category and (is_trusted or not session.category_claimed):
        session.category_claimed = metadata.category

    arms, problems = _resolve_arms(session, metadata, log)
    session.model_arm = arms.get("model")
    session.harness = arms.get("harness", session.harness)
    category = arms.get("category")

    # The category: as submitted (of the graded agent only the first one), by the rules, by the decision.
    category_words = list(session.category_words.select_related("category"))
    has_untracked_category = session.category is not None and not session.category_from
    has_own_category = has_untracked_category or any(word.origin == origin for word in category_words)
    if category is not None and (is_trusted or not has_own_category):
        why = "" if by is None else "adopted from what the agent said later"
        provenance.add_word(session, origin, category, category_words, by=by, why=why)
    if log.traits is not None:
        provenance.apply_rules(session, rules.store_traits(session, log.traits), category_words)
    if metadata.selection_id and session.selection is None:
        # The category that the decision chose doesn't replace an unknown one that a runner or person submitted.
        is_unknown = bool(metadata.category) and category is None and origin is not CategoryOrigin.AGENT
        problems += _complete_selection(session, metadata.selection_id, category_words, names_category=not is_unknown)

    changed = [name for name, value in _loaded_columns(session).items() if before[name] != value]
    if changed:
        session.save(update_fields=changed)
    return bool(changed), problems


def _loaded_columns(session: Session) -> dict[str, Any]:
    return {name: value for name, value in vars(session).items() if not name.startswith("_")}


def _set_dates(session: Session, metadata: SubmittedSession, log: EvidenceReading, *, is_trusted: bool) -> None:
    """Set the widest span submitted: a later submission of a session that went on moves its end, as does a longer log
    without a submitted end. If `is_trusted`, the end is set as submitted, also to an earlier time.
    """
    starts = [moment for moment in (session.started_at, metadata.started_at or log.started_at) if moment]
    ended_at = metadata.ended_at or session.ended_at
    session.ended_at = ended_at if is_trusted else max(session.ended_at, ended_at)
    if metadata.ended_at is None and log.ended_at is not None:
        session.ended_at = max(session.ended_at, min(log.ended_at, timezone.now() + CLOCK_TOLERANCE))
    session.started_at = min(*starts, session.ended_at) if starts else None


def _resolve_arms(
    session: Session, metadata: SubmittedSession, log: EvidenceReading
) -> tuple[dict[str, Arm], list[Problem]]:
    """The arms of the model, the harness and the submitted category, by bandit; and a problem for each unknown name.

    The harness is the log's; without a log it is the submitted one, unless the session has one already. A model that
    isn't known yet is no problem: people name it later. A harness whose logs the site reads gets an arm on probation
    with its first session; of others, an unknown name in the log is only a remark.
    """
    submitted_harness = metadata.harness if session.harness is None else None
    names = {
        "model": session.model,
        "harness": log.format or submitted_harness,
        "category": metadata.category,
    }
    resolved, unresolved = Arm.objects.resolve_all((bandit, name) for bandit, name in names.items() if name)
    for bandit, name in list(unresolved):
        harness = formats.BY_FORMAT.get(canonical(name)) if bandit == "harness" else None
        if harness is not None:
            resolved[bandit, name] = _create_arm(harness)
            unresolved.remove((bandit, name))
    problems = [
        unknown_arm(bandit, name, Arm.objects.unknown(bandit, name), is_error=name != log.format)
        for bandit, name in unresolved
        if bandit != "model"
    ]
    return {bandit: arm for (bandit, _name), arm in resolved.items()}, problems


def _create_arm(harness: type[Recogniser]) -> Arm:
    """The arm of a harness whose first session came just now. It starts on probation."""
    bandit = Bandit.objects.get(name="harness")
    arm, _ = Arm.objects.get_or_create(
        bandit=bandit, name=harness.format, defaults={"title": harness.title, "probation": True}
    )
    return arm.current


def _complete_selection(
    session: Session, decision_id: str, category_words: list[CategoryWord], *, names_category: bool
) -> list[Problem]:
    """Complete the decision with the arm that ran: the session's category. Without a category it stays open.

    `names_category`: the chosen arm is the session's category unless a stronger origin names another.
    """
    decision = selection.find_decision("category", session.agent.name, decision_id)
    if decision is None:
        return [
            Problem(
                part="selection_id",
                code="unknown_selection",
                expected="the decision_id of a selection made for this agent",
                got=repr(decision_id),
                todo="send the decision_id that POST /api/v1/selections was called with, or leave it out",
            )
        ]
    # A decision that another session completed doesn't name this session's category.
    is_open = decision.completed_at is None or decision.observation == session.observation
    if is_open and names_category:
        why = f"decision {decision.decision_id}"
        provenance.add_word(session, CategoryOrigin.DECISION, decision.arm, category_words, why=why)
    if is_open and session.category is None:
        return []
    # Without a category, another session completed the decision: `complete` then raises, whatever the arm.
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
