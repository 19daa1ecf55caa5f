"""Receiving files: they are stored and parsed outside of any transaction, then added to their session inside one."""

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

MAX_FILENAME = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedFile:
    """A file whose bytes are stored: its unsaved row, and what was read from it."""

    row: Evidence
    reading: EvidenceReading

    @property
    def usable(self) -> EvidenceReading:
        """The reading, or a blank one if the file must not be used."""
        return EvidenceReading() if self.reading.problem else self.reading


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEvidence:
    """What was added to a session: the kinds of the new files, and the other sessions that sent the same nameless log.

    `main_log`: the reading of the new transcript if it describes the session as a whole, else a blank reading.
    """

    kinds: tuple[EvidenceKind, ...]
    shared_with: tuple[str, ...]
    main_log: EvidenceReading


StoredEvidence = Mapping[tuple[str, str], Evidence]


def strongest_by_hash(rows: Iterable[Evidence]) -> StoredEvidence:
    """A session's evidence by kind and SHA-256; of rows with the same bytes the one from the strongest witness."""
    ordered = sorted(rows, key=lambda row: (Witness(row.witness).strength, -row.pk))
    return {(row.kind, row.sha256): row for row in ordered}


def find_stored(row: Evidence, stored: StoredEvidence) -> Evidence | None:
    """The session's row with the same bytes from a witness that is at least as strong, or None."""
    same = stored.get((row.kind, row.sha256))
    is_as_strong = same is not None and Witness(same.witness).strength >= Witness(row.witness).strength
    return same if is_as_strong else None


def receive(
    kind: EvidenceKind, stream: Readable, claim: SessionClaim, stored: StoredEvidence, witness: Witness
) -> ReceivedFile:
    """Store one file and read it. `stored` is the session's evidence before: a file that is in it is not read again,
    only its problem is repeated.

    Raises TooLarge. If a parser fails, the evidence stays usable, and the graders' rows will say what failed.
    """
    name = getattr(stream, "name", "")
    row = build_row(kind, store.store(stream), name if isinstance(name, str) else "", witness)
    same = find_stored(row, stored)
    if same is not None:
        return ReceivedFile(row=row, reading=EvidenceReading(problem=Reason(same.problem), detail=same.detail))
    try:
        return ReceivedFile(row=row, reading=reading.read(row, claim))
    except Exception:
        logger.exception("reading the %s of session %s failed", kind, claim.session_id)
        return ReceivedFile(row=row, reading=EvidenceReading())


def build_row(kind: EvidenceKind, stored: Stored, name: str, witness: Witness) -> Evidence:
    """The unsaved row of stored bytes that were received as a file of this name."""
    filename = plain_text(PurePath(name).name, MAX_FILENAME)
    return Evidence(kind=kind, sha256=stored.sha256, size=stored.size, filename=filename, witness=witness)


def add(session: Session, files: Collection[ReceivedFile], *, is_new: bool = False) -> AddedEvidence:
    """Add the files that the session does not have yet. Runs in the caller's transaction, after `ownership.lock`.

    `is_new`: the session was created in this transaction and has no evidence.
    """
    stored = strongest_by_hash(() if is_new else session.evidence.all())
    for file in files:
        file.row.pk = None  # may have a key from an attempt of the transaction that was rolled back
    new = [file for file in files if find_stored(file.row, stored) is None]
    for file in new:
        row = file.row
        row.session = session
        row.format, row.coverage, row.report = file.reading.format, file.reading.coverage, file.reading.report
        row.problem, row.detail = file.reading.problem, file.reading.detail
        transaction.on_commit(partial(transcripts.announce, row))
    Evidence.objects.bulk_create([file.row for file in new])
    prefetch_related_objects([session], "evidence")  # no more is added in this transaction
    shared_with, main_log = [], EvidenceReading()
    for file in new:
        if file.row.kind == EvidenceKind.TRANSCRIPT and not file.reading.problem:
            if store.is_shared(file.row):
                sharers = store.sharers(file.row).select_related("session")
                shared_with += [other.session.external_id for other in sharers]
            if logs.is_main_log(session, file.row):
                main_log = file.reading
    kinds = [EvidenceKind(file.row.kind) for file in new]
    return AddedEvidence(kinds=tuple(kinds), shared_with=tuple(shared_with), main_log=main_log)
