"""Taking in a finished session: bytes first, then one transaction for everything that follows from them.

Nothing that a session contains can stop it from being stored: what cannot be used is kept with the reason, and the
receipt says what was expected, what came and what to do.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from grading.evidence import near_copies, ownership, reading, store, transcripts
from grading.evidence.reading import EvidenceReading, SessionClaim
from grading.evidence.store import Readable, TooLarge
from grading.intake import describing, facts, lessons
from grading.intake.assessment import assess
from grading.intake.facts import FactsFile
from grading.intake.remarks import remarks
from grading.intake.submission import Problem, Receipt, SubmittedSession, evidence_problem, too_large
from grading.models import Agent, Artifact, Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.plain import plain_text
from grading.vocabulary import Reason

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Received:
    """One submission on its way in: the parts that were stored, what they turned out to be, and what was wrong."""

    agent: Agent
    metadata: SubmittedSession
    parts: dict[EvidenceKind, tuple[Evidence, EvidenceReading]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    facts: FactsFile = field(default_factory=FactsFile)

    @property
    def transcript(self) -> EvidenceReading:
        """What the transcript turned out to be, where it may be used."""
        _row, read = self.parts.get(EvidenceKind.TRANSCRIPT, (None, EvidenceReading()))
        return EvidenceReading() if read.problem else read


Held = Mapping[tuple[str, str], Evidence]


def submit(
    *,
    agent: Agent,
    metadata: SubmittedSession,
    transcript: Readable | None = None,
    journal: Readable | None = None,
    patch: Readable | None = None,
    facts: Readable | None = None,
    is_sample: bool = False,
) -> Receipt:
    """Store a session with what it left behind, grade it, settle it. The same again changes nothing.

    More evidence for a known session is added, and the session is graded and settled again; metadata fill what was
    blank. Raises nothing for bad content: the receipt's problems name it, and everything storable was stored.
    """
    received = Received(agent=agent, metadata=metadata)
    files = {"transcript": transcript, "journal": journal, "patch": patch, "facts": facts}
    held = _held(Evidence.objects.filter(session__agent=agent, session__external_id=metadata.session_id))
    for name, stream in files.items():
        if stream is not None:
            _receive(received, EvidenceKind(name), stream, held)
    with transaction.atomic():
        ownership.alone()
        session, created = _session(received, is_sample=is_sample)
        added = _add_evidence(received, session)
        claims = _keep_facts(received, session)
        # The session's own log tells of it as a whole, unless it has one that holds more. A subagent's never does.
        log, _read = received.parts.get(EvidenceKind.TRANSCRIPT, (None, None))
        is_telling = log is None or log.pk is None or ownership.tells(session, log)
        telling = received.transcript if is_telling else EvidenceReading()
        changed, problems = describing.describe(session, metadata, telling)
        lessons_changed, lesson_problems = lessons.record(session, metadata)
        received.problems += [*problems, *lesson_problems]
        if created or added or changed or lessons_changed:
            others = ownership.update([session], claims) - {session.pk}
            _grade(received, session, ownership.locked(others))
        received.problems += remarks(session, received.facts, has_log=EvidenceKind.TRANSCRIPT in received.parts)
    return Receipt(session=session, created=created, added=added, problems=tuple(received.problems))


def _receive(received: Received, kind: EvidenceKind, stream: Readable, held: Held) -> None:
    """Store one part and find out what it is, outside of any transaction."""
    try:
        stored = store.store(stream)
    except TooLarge as error:
        received.problems.append(too_large(kind, error.limit))
        return
    name = getattr(stream, "name", "")
    filename = plain_text(PurePath(name).name, 255) if isinstance(name, str) else ""
    row = Evidence(kind=kind, sha256=stored.sha256, size=stored.size, filename=filename)
    known = held.get((kind, row.sha256))
    read = EvidenceReading(problem=Reason(known.problem), detail=known.detail) if known else _read(received, row)
    if read.problem:
        received.problems.append(evidence_problem(kind, read.problem, read.detail))
    received.parts[kind] = row, read


def _held(rows: QuerySet[Evidence]) -> Held:
    """The evidence that a session has, by kind and hash."""
    return {(row.kind, row.sha256): row for row in rows}


def _read(received: Received, row: Evidence) -> EvidenceReading:
    """A parser that breaks is no fault of the evidence: it stays usable, and the graders' rows will say what broke."""
    said = received.metadata
    claim = SessionClaim(session_id=said.session_id, started_at=said.started_at, ended_at=said.ended_at)
    try:
        return reading.read(row, claim)
    except Exception:
        logger.exception("reading the %s of session %s failed", row.kind, said.session_id)
        return EvidenceReading()


def _session(received: Received, *, is_sample: bool) -> tuple[Session, bool]:
    """The session's row, made or locked."""
    said = received.metadata
    session, created = Session.objects.get_or_create(
        agent=received.agent,
        external_id=said.session_id,
        defaults={
            "ended_at": said.ended_at or received.transcript.ended_at or timezone.now(),
            "is_sample": is_sample,
        },
    )
    if not created:
        session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)
    return session, created


def _add_evidence(received: Received, session: Session) -> tuple[str, ...]:
    """A row for each part that is new; the names of those."""
    added, held = [], _held(session.evidence.all())
    for kind, (row, read) in received.parts.items():
        if (kind, row.sha256) in held:
            continue
        row.session, row.format, row.coverage, row.report = session, read.format, read.coverage, read.report
        row.problem, row.detail = read.problem, read.detail
        row.save(force_insert=True)
        added.append(kind.value)
        transaction.on_commit(partial(transcripts.announce, row))
        if kind is EvidenceKind.TRANSCRIPT and not read.problem and store.is_shared(row):
            others = ", ".join(other.session.external_id for other in store.sharers(row).select_related("session"))
            detail = f"the same bytes as the log of {others[:200]}"
            received.problems.append(evidence_problem(kind, Reason.LOG_SHARED, detail))
    return tuple(added)


def _keep_facts(received: Received, session: Session) -> list[Artifact]:
    """The session's new claims from facts."""
    if EvidenceKind.FACTS not in received.parts:
        return []
    row = received.parts[EvidenceKind.FACTS][0]
    received.facts = facts.read(row)
    received.problems += received.facts.problems
    return facts.keep(session, row, received.facts)


def _grade(received: Received, session: Session, others: list[Session]) -> None:
    """Grade, settle and inspect the session, and those that won or lost something by it: a log, a claim, a text.

    `others` are those whose logs or claims moved; they are locked.
    """
    row, read = received.parts.get(EvidenceKind.TRANSCRIPT, (None, EvidenceReading()))
    parsed = {row.sha256: read.signals} if row is not None and read.signals is not None else {}
    said = near_copies.of(session)
    assess(session, parsed)
    for other in others:
        assess(other)
    moved = {other.pk for other in others}
    for loser in near_copies.losers(session, said):
        if loser.pk not in moved:
            assess(loser)
