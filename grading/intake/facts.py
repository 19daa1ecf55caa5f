"""Facts: commits and pull requests that the caller saw itself. Each belongs to one session at most (L11)."""

from collections.abc import Iterator

from django.db.models import Q
from pydantic import TypeAdapter, ValidationError

from grading import evidence
from grading.intake.submission import COMMIT, PULL_REQUEST, CommitFact, Facts, Problem, refusals
from grading.models import Artifact, Evidence, Session
from grading.models.evidence import ArtifactKind, Origin

LINKS = (ArtifactKind.COMMIT, ArtifactKind.PULL_REQUEST)


def claim(session: Session, row: Evidence) -> Iterator[Problem]:
    """Make the facts of `row` artifacts of the session. What another session owns stays there, with a remark.

    Entries are checked one by one: a bad one is a problem and loses none of the others.
    """
    try:
        said = Facts.model_validate_json(evidence.text_of(row))
    except ValidationError as error:
        yield from refusals("facts", error, todo="send JSON as the API page describes it")
        return
    items: list[Artifact] = []
    yield from _checked(session, items, ArtifactKind.COMMIT, said.commits, COMMIT)
    yield from _checked(session, items, ArtifactKind.PULL_REQUEST, said.pull_requests, PULL_REQUEST)
    if session.exit_code is None and said.exit_code is not None:
        session.exit_code = said.exit_code
        session.save(update_fields=["exit_code"])
    Artifact.objects.bulk_create(items, ignore_conflicts=True)
    yield from _owned_elsewhere(session, items)


def _checked(
    session: Session,
    items: list[Artifact],
    kind: ArtifactKind,
    entries: list[object],
    adapter: TypeAdapter[CommitFact] | TypeAdapter[str],
) -> Iterator[Problem]:
    """Adds an artifact for each good entry; yields a problem for each bad one."""
    for number, entry in enumerate(entries):
        try:
            fact = adapter.validate_python(entry)
        except ValidationError as error:
            yield from refusals(f"facts.{kind}[{number}]", error)
            continue
        key, how = (fact.sha, f"{fact.by} {fact.repo}".strip()) if isinstance(fact, CommitFact) else (fact, "")
        items.append(Artifact(session=session, kind=kind, key=key, origin=Origin.FACTS, seen_at=how[:300]))


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
