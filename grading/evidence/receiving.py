"""Files on their way in: kept, looked at outside of any transaction, and then given to their session inside of one."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from django.db import transaction

from grading.evidence import logs, reading, store, transcripts
from grading.evidence.reading import EvidenceReading, SessionClaim
from grading.evidence.store import Readable
from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.plain import plain_text
from grading.signals import Signals
from grading.vocabulary import Reason

logger = logging.getLogger(__name__)

FILENAME = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedFile:
    """A file whose bytes are kept: its row, not saved yet, and what it turned out to be."""

    row: Evidence
    reading: EvidenceReading

    @property
    def usable(self) -> EvidenceReading:
        """What it turned out to be; a blank one where it may not be used."""
        return EvidenceReading() if self.reading.problem else self.reading

    @property
    def signals(self) -> dict[str, Signals]:
        """The transcript's signals by its hash, where they could be read."""
        return {} if self.reading.signals is None else {self.row.sha256: self.reading.signals}


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEvidence:
    """What a session was given: the kinds that were new; the other sessions that sent the same nameless log; and the
    transcript, where it tells of the session as a whole (else a blank one).
    """

    kinds: tuple[EvidenceKind, ...]
    shared_with: tuple[str, ...]
    telling: EvidenceReading


Held = Mapping[tuple[str, str], Evidence]


def held(rows: Iterable[Evidence]) -> Held:
    """The evidence that a session has, by kind and hash."""
    return {(row.kind, row.sha256): row for row in rows}


def receive(kind: EvidenceKind, stream: Readable, claim: SessionClaim, known: Held) -> ReceivedFile:
    """Keep one file and find out what it is; of one that is `known` only its fault is told again.

    Raises TooLarge. A parser that breaks is no fault of the evidence: it stays usable, and the graders' rows will say
    what broke.
    """
    stored = store.store(stream)
    name = getattr(stream, "name", "")
    filename = plain_text(PurePath(name).name, FILENAME) if isinstance(name, str) else ""
    row = Evidence(kind=kind, sha256=stored.sha256, size=stored.size, filename=filename)
    before = known.get((kind, row.sha256))
    if before is not None:
        return ReceivedFile(row=row, reading=EvidenceReading(problem=Reason(before.problem), detail=before.detail))
    try:
        return ReceivedFile(row=row, reading=reading.read(row, claim))
    except Exception:
        logger.exception("reading the %s of session %s failed", kind, claim.session_id)
        return ReceivedFile(row=row, reading=EvidenceReading())


def add(session: Session, files: Iterable[ReceivedFile]) -> AddedEvidence:
    """Give the session what it does not have yet, in the caller's transaction, after `ownership.alone`.

    Its own log tells of it as a whole, unless it has one that holds more. A subagent's never does.
    """
    kinds, shared_with, telling = [], [], EvidenceReading()
    known = held(session.evidence.all())
    for file in files:
        row, read = file.row, file.reading
        kind, is_log = EvidenceKind(row.kind), row.kind == EvidenceKind.TRANSCRIPT and not read.problem
        if (kind, row.sha256) in known:
            continue
        row.session, row.format, row.coverage, row.report = session, read.format, read.coverage, read.report
        row.problem, row.detail = read.problem, read.detail
        row.save(force_insert=True)
        kinds.append(kind)
        transaction.on_commit(partial(transcripts.announce, row))
        if is_log and store.is_shared(row):
            shared_with += [other.session.external_id for other in store.sharers(row).select_related("session")]
        if is_log and logs.tells(session, row):
            telling = read
    return AddedEvidence(kinds=tuple(kinds), shared_with=tuple(shared_with), telling=telling)
