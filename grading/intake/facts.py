"""Facts: what the caller saw itself. A commit or pull request that it names is claimed for the session; a mandatory
check that failed is a veto.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from grading.evidence import ownership, store
from grading.intake.submission import CHECK, COMMIT, PULL_REQUEST, CheckFact, CommitFact, Facts, Problem, refusals
from grading.models import Artifact, Evidence, Session
from grading.models.evidence import ArtifactKind, Origin
from grading.plain import plain_text
from grading.witness import Witness

SEEN_AT = 300
Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsFile:
    """What a file of facts says, entry by entry: a bad one is a problem and loses none of the others."""

    commits: Sequence[CommitFact] = ()
    pull_requests: Sequence[str] = ()
    checks: Sequence[CheckFact] = ()
    exit_code: int | None = None
    problems: Sequence[Problem] = ()


def read(row: Evidence) -> FactsFile:
    """What a file of facts says."""
    try:
        said = Facts.model_validate_json(store.text_of(row))
    except ValidationError as error:
        return FactsFile(problems=tuple(refusals("facts", error, todo="send JSON as the API page describes it")))
    problems: list[Problem] = []
    return FactsFile(
        commits=_good("commit", said.commits, COMMIT, problems),
        pull_requests=_good("pull_request", said.pull_requests, PULL_REQUEST, problems),
        checks=_good("check", said.checks, CHECK, problems),
        exit_code=said.exit_code,
        problems=problems,
    )


def keep(session: Session, row: Evidence, said: FactsFile) -> list[Artifact]:
    """Keep the checks and the exit code; the claims of commits and pull requests that the session had not made before.

    A `row` that was not saved was received before: it claims nothing, and is no new word on a check.
    """
    if session.exit_code is None and said.exit_code is not None:
        session.exit_code, session.exit_witness = said.exit_code, row.witness
        session.save(update_fields=["exit_code", "exit_witness"])
    if row.pk is None:
        return []
    _keep_checks(session, said.checks, Witness(row.witness))
    held = {(each.kind, each.key) for each in session.artifacts.all() if each.origin == Origin.FACTS}
    found: dict[tuple[str, str], Artifact] = {}
    for fact in said.commits:
        how = f"{fact.by} {fact.repo}".strip()
        found[ArtifactKind.COMMIT, fact.sha] = _claim(
            session, row, ArtifactKind.COMMIT, fact.sha, subject=fact.subject.split("\n")[0], seen_at=how
        )
    for url in said.pull_requests:
        found[ArtifactKind.PULL_REQUEST, url] = _claim(session, row, ArtifactKind.PULL_REQUEST, url)
    return [each for key, each in found.items() if key not in held]


def _claim(session: Session, row: Evidence, kind: ArtifactKind, key: str, **said: str) -> Artifact:
    return ownership.claim(session, kind, key, origin=Origin.FACTS, receipt=row, **said)


def _good(part: str, entries: list[object], adapter: TypeAdapter[Fact], problems: list[Problem]) -> list[Fact]:
    """The good entries; `problems` gains those of each bad one."""
    found: list[Fact] = []
    for number, entry in enumerate(entries):
        try:
            found.append(adapter.validate_python(entry))
        except ValidationError as error:
            problems += refusals(f"facts.{part}[{number}]", error)
    return found


def _keep_checks(session: Session, checks: Sequence[CheckFact], witness: Witness) -> None:
    """The latest file that names a check counts for it, unless a stronger witness saw it fail; where one file says both
    of a check, it failed.
    """
    known = session.artifacts.filter(
        origin=Origin.FACTS, kind=ArtifactKind.CHECK_FAILED, key__in=[check.name for check in checks]
    )
    weaker = [row.pk for row in known if Witness(row.witness).strength <= witness.strength]
    known.filter(pk__in=weaker).delete()
    failed = [check for check in checks if check.mandatory and not check.passed]
    Artifact.objects.bulk_create(
        [
            Artifact(
                session=session,
                kind=ArtifactKind.CHECK_FAILED,
                key=check.name,
                origin=Origin.FACTS,
                seen_at=plain_text(check.detail, SEEN_AT),
                witness=witness,
            )
            for check in failed
        ],
        ignore_conflicts=True,
    )
