"""The evidence that a session is graded by: its files, what of them is its own, and the facts its caller observed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from grading.evidence import logs, ownership, store
from grading.formats.events import Event
from grading.formats.own import OwnLog, own_events
from grading.models import Artifact, BlobProblem, Evidence, Session, SessionLog
from grading.models.evidence import LINKS, ArtifactKind, EvidenceKind, Origin
from grading.signals.facts import Foreign, ObservedFacts
from grading.vocabulary import Reason
from grading.witness import Witness, weakest

JUDGED_KINDS = (EvidenceKind.TRANSCRIPT, EvidenceKind.JOURNAL, EvidenceKind.PATCH, EvidenceKind.FACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The session's own transcript, its patch and its journal, if they may be used.

    `absent` and `why` say why there is no transcript. `log` is the summary of its logs. `foreign`: commits and pull
    requests that other sessions own. `nothing_own`: the reason why nothing in the transcript is the session's own,
    else empty. `other_witness`: who vouches for the material besides the transcript, that is the weakest witness of the
    facts and the patch, or if there are none, that of the journal.
    """

    transcript: Evidence | None
    absent: Reason
    why: str
    log: SessionLog | None
    facts: ObservedFacts
    foreign: Foreign
    nothing_own: str
    patch: Evidence | None
    journal: Evidence | None
    other_witness: Witness

    @property
    def witness(self) -> Witness:
        """Who vouches for the material: whoever sent the transcript, or without one `other_witness.alone`."""
        return self.other_witness.alone if self.transcript is None else Witness(self.transcript.witness)


def load_material(session: Session) -> Material:
    """The session's material now. Reads rows only, no files."""
    transcript = next(iter(graded_logs(session)), None)
    absent, why = (Reason.NONE, "") if transcript else _why_no_transcript(session)
    log = store.log_of(session)
    patch, journal = store.usable(session, EvidenceKind.PATCH), store.usable(session, EvidenceKind.JOURNAL)
    facts = counted_facts(session, transcript)
    # For `other_witness`: the journal's witness counts only without facts and a patch.
    witnesses = [row.witness for row in facts]
    if patch is not None:
        witnesses.append(patch.witness)
    if not witnesses and journal is not None:
        witnesses = [journal.witness]
    keys = {kind: tuple(row.key for row in facts if row.kind == kind) for kind in ArtifactKind}
    return Material(
        transcript=transcript,
        absent=absent,
        why=why,
        log=log,
        facts=ObservedFacts(
            commits=keys[ArtifactKind.COMMIT],
            pull_requests=keys[ArtifactKind.PULL_REQUEST],
            failed_checks=keys[ArtifactKind.CHECK_FAILED],
        ),
        foreign=ownership.foreign(session),
        nothing_own=_why_nothing_own(session, log),
        patch=patch,
        journal=journal,
        other_witness=weakest(map(Witness, witnesses)),
    )


def _why_nothing_own(session: Session, log: SessionLog | None) -> str:
    """The reason why nothing in the session's logs is its own: its root session or the owners of copied records have
    all of it. Empty if something is.
    """
    if log is None:
        return ""
    if log.part_of is not None:
        return f"The log of a subagent of session {log.part_of.external_id}, which has its work"
    if not _is_copy(log):
        return ""
    owners = [each.session for each in carried_over(session)]
    names = [owner.external_id for owner in owners if owner.agent_id == session.agent_id]
    return f"All of it was carried over from {', '.join(names[:3]) or 'a session of another agent'}"


def judgeable(session: Session) -> dict[str, str]:
    """The hash of the evidence that a judge may read, by kind. Empty if there is nothing to judge.

    After a transcript's hash comes the digest of what counts of the session's logs, if it isn't empty.
    """
    hashes: dict[str, str] = {}
    for row in store.counting(session):
        if row.kind in JUDGED_KINDS and row.kind != EvidenceKind.TRANSCRIPT:
            hashes.setdefault(row.kind, row.sha256)
    log = store.log_of(session)
    own = next(iter(graded_logs(session)), None)
    if own is not None and (log is None or not _is_copy(log)):
        hashes[EvidenceKind.TRANSCRIPT] = f"{own.sha256} {'' if log is None else log.digest}".strip()
    return hashes


def describe_expired(hashes: Mapping[str, str]) -> str:
    """A sentence with the kinds of evidence whose bytes retention deleted; empty if there are none.

    `hashes` are the values of `judgeable`: only the first word of each is the hash.
    """
    lost: dict[str, str] = {}
    for kind, value in hashes.items():
        if value and not store.is_kept(value.split()[0]):
            lost[kind] = value.split()[0]
    expired = BlobProblem.objects.expired().in_bulk(list(lost.values())) if lost else {}
    kinds = sorted(kind for kind, sha256 in lost.items() if sha256 in expired)
    return f"Gone by retention: {', '.join(kinds)}" if kinds else ""


def counted_facts(session: Session, transcript: Evidence | None) -> list[Artifact]:
    """The session's own facts that count for its grades: failed checks, and those whose witness isn't weaker than the
    transcript's.
    """
    min_strength = 0 if transcript is None else Witness(transcript.witness).strength
    if not any(row.origin == Origin.FACTS for row in session.artifacts.all()):
        return []
    rows = session.artifacts.owned().filter(origin=Origin.FACTS).order_by("key")
    return [
        row for row in rows if row.kind == ArtifactKind.CHECK_FAILED or Witness(row.witness).strength >= min_strength
    ]


def _why_no_transcript(session: Session) -> tuple[Reason, str]:
    """The reason why no transcript is usable: the fault of the latest one, or that none was submitted."""
    received = [row for row in session.evidence.all() if row.kind == EvidenceKind.TRANSCRIPT]
    latest = max(received, key=lambda row: row.pk, default=None)
    if latest is None:
        return Reason.NO_TRANSCRIPT, "No transcript was submitted"
    if latest.problem:
        return Reason(latest.problem), latest.detail
    others = ", ".join(row.session.external_id for row in store.sharers(latest).select_related("session")[:3])
    return Reason.LOG_SHARED, f"The log was also submitted for {others}, and does not say whose it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """How many of a session's `total` records belong to another session, which has them in its own log."""

    session: Session
    records: int
    total: int


def carried_over(session: Session) -> list[Carried]:
    """What of the session's log was carried over from other sessions, most records first."""
    log = store.log_of(session)
    if log is None or not log.carried:
        return []
    owners = Session.objects.select_related("agent").in_bulk([int(key) for key in log.carried])
    shares = [
        Carried(session=owners[int(key)], records=count, total=log.total)
        for key, count in log.carried.items()
        if int(key) in owners
    ]
    return sorted(shares, key=lambda each: (-each.records, each.session.pk))


def owned_by_other_agents(session: Session) -> list[str]:
    """Descriptions of the session's claims and log records that sessions of other agents own. People should look at
    both sessions.
    """
    descriptions = []
    if any(row.owned_by_id is not None for row in session.artifacts.all()):
        foreign = session.artifacts.filter(kind__in=LINKS, owned_by__isnull=False)
        foreign = foreign.exclude(owned_by__agent=session.agent_id).select_related("owned_by__agent").order_by("pk")
        for row in foreign:
            owner = row.owned_by
            assert owner is not None  # noqa: S101 - the query's own condition
            descriptions.append(f"{row.get_kind_display()} {row.key}: session {owner.external_id} of {owner.agent}")
    for each in carried_over(session):
        if each.session.agent_id != session.agent_id:
            owner = each.session
            descriptions.append(
                f"{each.records:,} of {each.total:,} records: session {owner.external_id} of {owner.agent}"
            )
    return descriptions


def _is_copy(log: SessionLog) -> bool:
    """Whether everything in a session's logs belongs to other sessions."""
    return bool(0 < log.total <= sum(log.carried.values()))


def graded_logs(session: Session) -> list[Evidence]:
    """The logs that the session is graded by: its own, then those of its subagents."""
    rows = store.logs(session)
    for part in ownership.parts(session):
        rows += store.logs(part.session)
    return rows


def session_events(session: Session) -> Iterator[Event] | None:
    """The session's own events in order, as a one-shot iterator; None if it has no usable log.

    Records that another session owns are left out. The events of its subagents' logs follow, marked as beside the main
    thread, each record once, and numbered on from the last event.
    """
    rows = graded_logs(session)
    if not rows:
        return None
    own_logs = [
        OwnLog(open=partial(store.open, row), filename=row.filename, ids=lambda row=row: logs.load_records(row).ids)  # type: ignore[misc]
        for row in rows
    ]
    return own_events(own_logs, ownership.foreign_records(session))
