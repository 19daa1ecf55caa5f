"""Facts: what the caller saw itself. A commit or pull request belongs to one session at most (L11); a mandatory check
that failed is a veto (I45).
"""

from collections.abc import Iterator
from typing import TypeVar

from django.db.models import Q
from pydantic import TypeAdapter, ValidationError

from grading import evidence
from grading.core.plain import plain_text
from grading.intake.submission import CHECK, COMMIT, PULL_REQUEST, CheckFact, Facts, Problem, refusals
from grading.models import Artifact, Evidence, Session
from grading.models.evidence import ArtifactKind, Origin

LINKS = (ArtifactKind.COMMIT, ArtifactKind.PULL_REQUEST)
SEEN_AT = 300
Fact = TypeVar("Fact")


def claim(session: Session, row: Evidence) -> Iterator[Problem]:
    """Make the facts of `row` artifacts of the session. What another session owns stays there, with a remark.

    Entries are checked one by one: a bad one is a problem and loses none of the others. A `row` that was not saved was
    received before, so that it is no new word on a check.
    """
    try:
        said = Facts.model_validate_json(evidence.text_of(row))
    except ValidationError as error:
        yield from refusals("facts", error, todo="send JSON as the API page describes it")
        return
    problems: list[Problem] = []
    commits = _good("commit", said.commits, COMMIT, problems)
    items = [_seen(session, ArtifactKind.COMMIT, fact.sha, f"{fact.by} {fact.repo}".strip()) for fact in commits]
    pull_requests = _good("pull_request", said.pull_requests, PULL_REQUEST, problems)
    items += [_seen(session, ArtifactKind.PULL_REQUEST, url) for url in pull_requests]
    checks = _good("check", said.checks, CHECK, problems)
    yield from problems
    if session.exit_code is None and said.exit_code is not None:
        session.exit_code = said.exit_code
        session.save(update_fields=["exit_code"])
    Artifact.objects.bulk_create(items, ignore_conflicts=True)
    if row.pk is not None:
        _keep_checks(session, checks)
    yield from _owned_elsewhere(session, items)


def _good(part: str, entries: list[object], adapter: TypeAdapter[Fact], problems: list[Problem]) -> list[Fact]:
    """The good entries; `problems` gains those of each bad one."""
    found: list[Fact] = []
    for number, entry in enumerate(entries):
        try:
            found.append(adapter.validate_python(entry))
        except ValidationError as error:
            problems += refusals(f"facts.{part}[{number}]", error)
    return found


def _seen(session: Session, kind: ArtifactKind, key: str, how: str = "") -> Artifact:
    return Artifact(session=session, kind=kind, key=key, origin=Origin.FACTS, seen_at=plain_text(how, SEEN_AT))


def _keep_checks(session: Session, checks: list[CheckFact]) -> None:
    """The latest file that names a check counts for it; where one file says both of a check, it failed."""
    known = session.artifacts.filter(origin=Origin.FACTS, kind=ArtifactKind.CHECK_FAILED)
    known.filter(key__in=[check.name for check in checks]).delete()
    failed = [check for check in checks if check.mandatory and not check.passed]
    Artifact.objects.bulk_create(
        [_seen(session, ArtifactKind.CHECK_FAILED, check.name, check.detail) for check in failed],
        ignore_conflicts=True,
    )


def _owned_elsewhere(session: Session, items: list[Artifact]) -> Iterator[Problem]:
    if not items:
        return
    wanted = Q(kind=LINKS[0], key__in=[item.key for item in items if item.kind == LINKS[0]])
    wanted |= Q(kind=LINKS[1], key__in=[item.key for item in items if item.kind == LINKS[1]])
    foreign = Artifact.objects.filter(wanted, origin=Origin.FACTS).exclude(session=session)
    for artifact in foreign.select_related("session__agent"):
        yield Problem(
            part=f"facts.{artifact.kind}",
            code="owned_by_another_session",
            expected="a commit or pull request that no other session claimed",
            got=f"{artifact.key}, which session {artifact.session.external_id} of {artifact.session.agent} claimed",
            todo="nothing, if that session made it; else have a person look at both",
            is_error=False,
        )
