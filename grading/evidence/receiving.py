"""Files on their way in: kept, looked at outside of any transaction, and then given to their session inside of one."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from django.db import transaction
from django.db.models import prefetch_related_objects

from grading.evidence import logs, reading, store, transcripts
from grading.evidence.reading import EvidenceReading, SessionClaim
from grading.evidence.store import Readable, Stored
from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.plain import plain_text
from grading.vocabulary import Reason
from grading.witness import Witness

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEvidence:
    """What was added to a session: the kinds that were new; the other sessions that sent the same nameless log; and the
    reading of the transcript, where that tells of the session as a whole (else a blank one).
    """

    kinds: tuple[EvidenceKind, ...]
    shared_with: tuple[str, ...]
    telling: EvidenceReading


KnownEvidence = Mapping[tuple[str, str], Evidence]


def strongest_by_hash(rows: Iterable[Evidence]) -> KnownEvidence:
    """The evidence that a session has, by kind and hash; of the same bytes what the strongest witness sent."""
    ordered = sorted(rows, key=lambda row: (Witness(row.witness).strength, -row.pk))
    return {(row.kind, row.sha256): row for row in ordered}


def is_known(row: Evidence, known: KnownEvidence) -> bool:
    """Whether the session has these bytes already, from a witness that is as strong."""
    before = known.get((row.kind, row.sha256))
    return before is not None and Witness(before.witness).strength >= Witness(row.witness).strength


def receive(
    kind: EvidenceKind, stream: Readable, claim: SessionClaim, known: KnownEvidence, witness: Witness
) -> ReceivedFile:
    """Store one file and read it; of one that is `known` only the problem is repeated.

    Raises TooLarge. A parser that breaks is no fault of the evidence: it stays usable, and the graders' rows will say
    what broke.
    """
    name = getattr(stream, "name", "")
    row = row_of(kind, store.store(stream), name if isinstance(name, str) else "", witness)
    before = known.get((kind, row.sha256))
    if before is not None and is_known(row, known):
        return ReceivedFile(row=row, reading=EvidenceReading(problem=Reason(before.problem), detail=before.detail))
    try:
        return ReceivedFile(row=row, reading=reading.read(row, claim))
    except Exception:
        logger.exception("reading the %s of session %s failed", kind, claim.session_id)
        return ReceivedFile(row=row, reading=EvidenceReading())


def row_of(kind: EvidenceKind, stored: Stored, name: str, witness: Witness) -> Evidence:
    """The row, not saved yet, of stored bytes that came as a file of this name."""
    filename = plain_text(PurePath(name).name, FILENAME)
    return Evidence(kind=kind, sha256=stored.sha256, size=stored.size, filename=filename, witness=witness)


def add(session: Session, files: Collection[ReceivedFile], *, is_new: bool = False) -> AddedEvidence:
    """Add the files that the session does not have yet, in the caller's transaction, after `ownership.alone`.

    Its own log tells of it as a whole, unless it has one that holds more. A subagent's never does. `is_new`: the
    session was created in this transaction and has no evidence.
    """
    known = strongest_by_hash(() if is_new else session.evidence.all())
    for file in files:
        file.row.pk = None  # where the transaction begins anew, it had one
    new = [file for file in files if not is_known(file.row, known)]
    for row, read in ((file.row, file.reading) for file in new):
        row.session, row.format, row.coverage, row.report = session, read.format, read.coverage, read.report
        row.problem, row.detail = read.problem, read.detail
        transaction.on_commit(partial(transcripts.announce, row))
    Evidence.objects.bulk_create([file.row for file in new])
    prefetch_related_objects([session], "evidence")  # from here on nothing is added
    shared_with, telling = [], EvidenceReading()
    for row, read in ((file.row, file.reading) for file in new):
        if row.kind == EvidenceKind.TRANSCRIPT and not read.problem:
            if store.is_shared(row):
                shared_with += [other.session.external_id for other in store.sharers(row).select_related("session")]
            if logs.tells(session, row):
                telling = read
    kinds = [EvidenceKind(file.row.kind) for file in new]
    return AddedEvidence(kinds=tuple(kinds), shared_with=tuple(shared_with), telling=telling)
