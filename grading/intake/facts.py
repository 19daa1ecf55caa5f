"""Facts that the caller observed itself. Commits and pull requests in them are claimed for the session; a mandatory
check that failed is a veto.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from grading.evidence import ownership, store
from grading.intake.fields import takes_exit_code
from grading.intake.submission import CHECK, COMMIT, PULL_REQUEST, CheckFact, CommitFact, Facts, Problem, refusals
from grading.models import Artifact, Evidence, Session
from grading.models.evidence import MAX_SEEN_AT, ArtifactKind, Origin
from grading.plain import plain_text
from grading.witness import Witness

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsFile:
    """The valid entries of a file of facts, and a problem for each invalid one."""

    commits: Sequence[CommitFact] = ()
    pull_requests: Sequence[str] = ()
    checks: Sequence[CheckFact] = ()
    exit_code: int | None = None
    problems: Sequence[Problem] = ()


def read(row: Evidence) -> FactsFile:
    """Parse a file of facts."""
    try:
        submitted = Facts.model_validate_json(store.text_of(row))
    except ValidationError as error:
        return FactsFile(problems=tuple(refusals("facts", error, todo="send JSON as the API page describes it")))
    problems: list[Problem] = []
    return FactsFile(
        commits=_valid("commit", submitted.commits, COMMIT, problems),
        pull_requests=_valid("pull_request", submitted.pull_requests, PULL_REQUEST, problems),
        checks=_valid("check", submitted.checks, CHECK, problems),
        exit_code=submitted.exit_code,
        problems=problems,
    )


def store_facts(session: Session, row: Evidence, facts: FactsFile) -> list[Artifact]:
    """Store the checks and the exit code. Returns the new claims of commits and pull requests, which are unsaved.

    If `row` is unsaved, the session had the same file already: then only the exit code may take effect.
    """
    if facts.exit_code is not None and takes_exit_code(session, Witness(row.witness)):
        session.exit_code, session.exit_witness = facts.exit_code, row.witness
        session.save(update_fields=["exit_code", "exit_witness"])
    if row.pk is None:
        return []
    _store_checks(session, facts.checks, Witness(row.witness))
    existing = {(each.kind, each.key) for each in session.artifacts.all() if each.origin == Origin.FACTS}
    claims: dict[tuple[str, str], Artifact] = {}
    for fact in facts.commits:
        claims[ArtifactKind.COMMIT, fact.sha] = ownership.claim(
            session,
            ArtifactKind.COMMIT,
            fact.sha,
            origin=Origin.FACTS,
            receipt=row,
            subject=fact.subject.split("\n")[0],
            seen_at=f"{fact.by} {fact.repo}".strip(),
        )
    for url in facts.pull_requests:
        claims[ArtifactKind.PULL_REQUEST, url] = ownership.claim(
            session, ArtifactKind.PULL_REQUEST, url, origin=Origin.FACTS, receipt=row
        )
    return [claim for key, claim in claims.items() if key not in existing]


def _valid(part: str, entries: list[object], adapter: TypeAdapter[Fact], problems: list[Problem]) -> list[Fact]:
    """The valid entries. Adds the problems of the others to `problems`."""
    valid: list[Fact] = []
    for number, entry in enumerate(entries):
        try:
            valid.append(adapter.validate_python(entry))
        except ValidationError as error:
            problems += refusals(f"facts.{part}[{number}]", error)
    return valid


def _store_checks(session: Session, checks: Sequence[CheckFact], witness: Witness) -> None:
    """Store the failed mandatory checks. The latest file that names a check decides, unless a stronger witness reported
    its failure. A check that is both passed and failed in one file failed.
    """
    stored = session.artifacts.filter(
        origin=Origin.FACTS, kind=ArtifactKind.CHECK_FAILED, key__in=[check.name for check in checks]
    )
    weaker = [row.pk for row in stored if Witness(row.witness).strength <= witness.strength]
    stored.filter(pk__in=weaker).delete()
    failed = [check for check in checks if check.mandatory and not check.passed]
    Artifact.objects.bulk_create(
        [
            Artifact(
                session=session,
                kind=ArtifactKind.CHECK_FAILED,
                key=check.name,
                origin=Origin.FACTS,
                seen_at=plain_text(check.detail, MAX_SEEN_AT),
                witness=witness,
            )
            for check in failed
        ],
        ignore_conflicts=True,
    )
