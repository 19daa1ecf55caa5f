"""The receipt's remarks on ownership. They name the agent's own sessions, never another agent's."""

from collections.abc import Iterator

from grading.evidence import ownership
from grading.intake.facts import FactsFile
from grading.intake.submission import Problem
from grading.models import Session
from grading.models.evidence import LINKS, EvidenceKind, Origin
from grading.redaction import redact
from grading.vocabulary import NO_REWARD

# Artifacts that don't count and are listed one by one.
MAX_LISTED = 10


def remarks(session: Session, facts: FactsFile, *, has_log: bool) -> Iterator[Problem]:
    """Remarks on what of the submission belongs to another session or doesn't count."""
    if session.category is None and not session.category_claimed and session.outcome not in NO_REWARD:
        yield _remark(
            "no_category",
            part="category",
            expected="a category: from the runner, the decision that it answers to, a rule of the site, or the agent",
            got="none",
            todo="nothing, if a person sets it; else send `category`, or have an operator add a rule for such sessions",
        )
    keys = [*(fact.sha for fact in facts.commits), *facts.pull_requests]
    claims = session.artifacts.filter(origin=Origin.FACTS, kind__in=LINKS, key__in=keys).exclude(owned_by=None)
    for row in claims.exclude(owned_by=session).select_related("owned_by") if keys else ():
        assert row.owned_by is not None  # noqa: S101 - the query's own condition
        yield _remark(
            "owned_by_another_session",
            part=f"facts.{row.kind}",
            expected="a commit or pull request that no other session claimed",
            got=f"{row.key}, which belongs to {_named(row.owned_by, session)}",
            todo="nothing, if that session made it; else have a person look at both",
        )
    left_out = list(session.artifacts.exclude(left_out=""))
    rest = len(left_out) - MAX_LISTED
    for place, row in enumerate(left_out[:MAX_LISTED], start=1):
        more = f" ({rest:,} more are on the session's page)" if place == MAX_LISTED and rest > 0 else ""
        yield _remark(
            "left_out",
            part=row.origin,
            expected=f"a {row.get_kind_display()} with text of its own",
            got=f"{redact(row.key[:200])}, left out: {row.left_out}{more}",
            todo="nothing, if that is all there was to say; else write more of it",
        )
    if not has_log:
        return
    shares = ownership.shares(session)
    for each in shares.carried:
        whose = _named(each.session, session)
        yield _remark(
            "carried",
            expected="a log of what this session did",
            got=f"{each.records:,} of its {each.total:,} records belong to {whose}, which is credited for them",
            todo="nothing, if it was resumed, forked or copied from there; else have a person look at both",
        )
    if shares.part_of is not None:
        yield _remark(
            "part_of_another_session",
            expected="a session of its own",
            got=f"the log of a subagent of session {shares.part_of.external_id}, which has its work and its reward",
            todo="nothing",
        )
    if shares.is_torn:
        yield _remark(
            "log_in_parts",
            expected="a log that contains those sent before",
            got="several logs, none of which contains the others: the one with the most records counts",
            todo="send the whole log",
        )


def _named(other: Session, session: Session) -> str:
    return f"session {other.external_id}" if other.agent_id == session.agent_id else "another agent's session"


def _remark(code: str, *, part: str = EvidenceKind.TRANSCRIPT, expected: str, got: str, todo: str) -> Problem:
    return Problem(part=part, code=code, expected=expected, got=got, todo=todo, is_error=False)
