"""What of a session's evidence there is to grade by: which files, what of them is its own, and what its caller saw."""

from collections.abc import Mapping
from dataclasses import dataclass

from grading.evidence import claims, shown, store
from grading.models import Artifact, Evidence, ExpiredBlob, Session, SessionLog
from grading.models.evidence import ArtifactKind, EvidenceKind, Origin
from grading.signals.facts import Foreign, ObservedFacts
from grading.vocabulary import Reason
from grading.witness import Witness, weakest

JUDGED_KINDS = (EvidenceKind.TRANSCRIPT, EvidenceKind.JOURNAL, EvidenceKind.PATCH, EvidenceKind.FACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The session's own transcript, its patch and its journal, as far as they may be used.

    Where there is no transcript, `absent` and `why` say so. `log` is what its logs amount to. `foreign` belongs to
    other sessions. `carried`: why nothing in the transcript is the session's own, in words; empty where something is.
    `witness` vouches for it: whoever sent the log. What comes without a log is no more than the word of whoever could
    have written it.
    """

    transcript: Evidence | None
    absent: Reason
    why: str
    log: SessionLog | None
    facts: ObservedFacts
    foreign: Foreign
    carried: str
    patch: Evidence | None
    journal: Evidence | None
    beside: Witness

    @property
    def witness(self) -> Witness:
        return self.beside.alone if self.transcript is None else Witness(self.transcript.witness)


def of(session: Session) -> Material:
    """What there is of a session now. Nothing is read but rows."""
    transcript = next(iter(shown.files(session)), None)
    absent, why = (Reason.NONE, "") if transcript else _why_no_transcript(session)
    log = store.log_of(session)
    carried = ""
    if log is not None and log.part_of is not None:
        carried = f"The log of a subagent of session {log.part_of.external_id}, which has its work"
    elif log is not None and shown.is_copy(log):
        own = [each.session.external_id for each in shown.carried(session) if each.session.agent_id == session.agent_id]
        carried = f"All of it was carried over from {', '.join(own[:3]) or 'a session of another agent'}"
    patch, journal = store.usable(session, EvidenceKind.PATCH), store.usable(session, EvidenceKind.JOURNAL)
    facts = counted_facts(session, transcript)
    said = [*(row.witness for row in facts), *(row.witness for row in [patch] if row is not None)]
    if not said and journal is not None:
        said = [journal.witness]
    return Material(
        transcript=transcript,
        absent=absent,
        why=why,
        log=log,
        facts=_observed(facts),
        foreign=claims.foreign(session),
        carried=carried,
        patch=patch,
        journal=journal,
        beside=weakest(map(Witness, said)),
    )


def witness_of(session: Session) -> Witness:
    """Who vouches for what there is of a session now: `Material.witness`."""
    own = next(iter(shown.files(session)), None)
    return of(session).witness if own is None else Witness(own.witness)


def judgeable(session: Session) -> dict[str, str]:
    """The hash of the evidence of each kind that a judge may read; empty where there is nothing to judge."""
    held: dict[str, str] = {}
    for row in store.counting(session):
        if row.kind in JUDGED_KINDS and row.kind != EvidenceKind.TRANSCRIPT:
            held.setdefault(row.kind, row.sha256)
    log = store.log_of(session)
    own = next(iter(shown.files(session)), None)
    if own is not None and (log is None or not shown.is_copy(log)):
        held[EvidenceKind.TRANSCRIPT] = f"{own.sha256} {'' if log is None else log.digest}".strip()
    return held


def gone(held: Mapping[str, str]) -> str:
    """Of which kinds of these hashes (each maybe with more behind it) retention deleted the bytes, in words; empty
    where all can be read.
    """
    lost = {kind: said.split()[0] for kind, said in held.items() if said and not store.is_kept(said.split()[0])}
    expired = ExpiredBlob.objects.in_bulk(list(lost.values())) if lost else {}
    kinds = sorted(kind for kind, sha256 in lost.items() if sha256 in expired)
    return f"Gone by retention: {', '.join(kinds)}" if kinds else ""


def facts_of(session: Session) -> ObservedFacts:
    """What the caller saw itself, as far as it is this session's."""
    return _observed(counted_facts(session, next(iter(shown.files(session)), None)))


def counted_facts(session: Session, transcript: Evidence | None) -> list[Artifact]:
    """The session's own facts that it is graded by: none from a weaker witness than its log's."""
    least = 0 if transcript is None else Witness(transcript.witness).strength
    if not any(row.origin == Origin.FACTS for row in session.artifacts.all()):
        return []
    rows = session.artifacts.owned().filter(origin=Origin.FACTS).order_by("key")
    return [row for row in rows if row.kind == ArtifactKind.CHECK_FAILED or Witness(row.witness).strength >= least]


def _observed(rows: list[Artifact]) -> ObservedFacts:
    keys = {kind: tuple(row.key for row in rows if row.kind == kind) for kind in ArtifactKind}
    return ObservedFacts(
        commits=keys[ArtifactKind.COMMIT],
        pull_requests=keys[ArtifactKind.PULL_REQUEST],
        failed_checks=keys[ArtifactKind.CHECK_FAILED],
    )


def _why_no_transcript(session: Session) -> tuple[Reason, str]:
    """The fault of the latest transcript, or that none came."""
    received = [row for row in session.evidence.all() if row.kind == EvidenceKind.TRANSCRIPT]
    latest = max(received, key=lambda row: row.pk, default=None)
    if latest is None:
        return Reason.NO_TRANSCRIPT, "No transcript was submitted"
    if latest.problem:
        return Reason(latest.problem), latest.detail
    others = ", ".join(row.session.external_id for row in store.sharers(latest).select_related("session")[:3])
    return Reason.LOG_SHARED, f"The log was also submitted for {others}, and does not say whose it is"
