"""What the receipt says of whose is what. It names the agent's own sessions, never another agent's."""

from collections.abc import Iterator

from grading import ownership
from grading.intake.facts import Said, owned_elsewhere
from grading.intake.submission import Problem
from grading.models import Session
from grading.models.evidence import EvidenceKind


def remarks(session: Session, facts: Said, *, has_log: bool) -> Iterator[Problem]:
    """What of the submission belongs to another session, or adds nothing. Remarks, no errors."""
    yield from owned_elsewhere(session, facts)
    if has_log:
        yield from _of_the_log(session)


def _of_the_log(session: Session) -> Iterator[Problem]:
    for each in ownership.carried(session):
        is_own = each.session.agent_id == session.agent_id
        whose = f"session {each.session.external_id}" if is_own else "another agent's session"
        yield _remark(
            "carried",
            expected="a log of what this session did",
            got=f"{each.records:,} of its {each.total:,} records belong to {whose}, which is credited for them",
            todo="nothing, if it was resumed, forked or copied from there; else have a person look at both",
        )
    parent = ownership.part_of(session)
    if parent is not None:
        yield _remark(
            "part_of_another_session",
            expected="a session of its own",
            got=f"the log of a subagent of session {parent.external_id}, which has its work and its reward",
            todo="nothing",
        )
    if ownership.is_torn(session):
        yield _remark(
            "log_in_parts",
            expected="a log that contains those sent before",
            got="several logs, none of which contains the others: the one with the most records counts",
            todo="send the whole log",
        )


def _remark(code: str, *, expected: str, got: str, todo: str) -> Problem:
    return Problem(part=EvidenceKind.TRANSCRIPT, code=code, expected=expected, got=got, todo=todo, is_error=False)
