"""Receiving files: they are stored and parsed outside of any transaction, then added to their session inside one.

A transcript is used only if it can be parsed and is the session's own.
"""

import datetime as dt
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import Any, BinaryIO

from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from grading import formats, signals
from grading.busy import StorageAway
from grading.evidence import logs, store, transcripts, usage
from grading.evidence.logs import Records
from grading.evidence.store import Readable, Stored
from grading.evidence.usage import LogUsage, UsageCollector
from grading.formats.events import ParseReport, TranscriptHeader
from grading.formats.scaffold import first_request_line
from grading.formats.values import usd_or_none
from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.plain import plain_row, plain_text
from grading.redaction import redact
from grading.signals import Signals, patch
from grading.signals.patch import Patch
from grading.signals.traits import Traits, TraitsReader
from grading.vocabulary import Reason
from grading.witness import Witness

logger = logging.getLogger(__name__)

# Thresholds of the founding incident: a smaller log of a longer session is another session's, or a stub.
MIN_LOG_BYTES = 5_000
MAX_SMALL_LOG_SECONDS = 120

# The maximal length of each column in characters.
MAX_LENGTHS = {"model": 120, "title": 300, "detail": 500}
MAX_FILENAME = 255

# The key of a log's cost in its row's report.
COST = "cost_usd"

EARLIEST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
CLOCK_SKEW = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClaim:
    """The id and times that the caller states for the session of a file."""

    session_id: str
    started_at: dt.datetime | None = None
    ended_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReading:
    """What was read from a file. `problem` says why it must not be used for grading, and `detail` describes it.

    For a transcript: `title` is the log's own title or else the beginning of the task; the cost is in dollars; the
    times are those of its first and last event, or None if they are implausible.
    """

    format: str = ""
    coverage: float | None = None
    report: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    title: str = ""
    cost_usd: float | None = None
    started_at: dt.datetime | None = None
    ended_at: dt.datetime | None = None
    signals: Signals | None = None
    traits: Traits | None = None
    changes: Patch | None = None
    problem: Reason = Reason.NONE
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLog:
    """A parsed log, independent of the session that it is submitted for."""

    format: str
    header: TranscriptHeader
    report: ParseReport
    signals: Signals
    traits: Traits
    records: Records
    usage: LogUsage
    is_compressed: bool


def parse(stream: BinaryIO, filename: str) -> ParsedLog:
    """Parse a whole log, in one pass over its events. Raises UnknownFormat and EmptyTranscript."""
    reader = formats.read(stream, filename)
    collector = logs.RecordCollector(reader)
    usage_collector = UsageCollector(collector.events())
    traits_reader = TraitsReader(usage_collector.events())
    extracted = signals.extract(traits_reader.events())
    return ParsedLog(
        format=reader.format,
        header=reader.header,
        report=reader.report,
        signals=extracted,
        traits=traits_reader.traits(reader.header, extracted),
        records=collector.records(extracted),
        usage=usage_collector.usage(),
        is_compressed=reader.is_compressed,
    )


def read(row: Evidence, claim: SessionClaim) -> EvidenceReading:
    """Read the stored bytes of `row`, which may be unsaved. Bad content never raises: it becomes a problem."""
    if row.kind == EvidenceKind.TRANSCRIPT:
        try:
            with store.open(row) as stream:
                log = parse(stream, row.filename)
        except formats.UnknownFormat as error:
            return EvidenceReading(
                problem=Reason.FORMAT_UNKNOWN, detail=plain_text(error.reason, MAX_LENGTHS["detail"])
            )
        except formats.EmptyTranscript:
            return EvidenceReading(problem=Reason.UNREADABLE, detail="An empty file")
        return read_log(row, log, claim)
    if row.kind != EvidenceKind.PATCH:
        return EvidenceReading()
    with store.open(row) as stream:
        text = stream.read(store.TEXT_LIMIT + 1)
    if len(text) > store.TEXT_LIMIT:
        return EvidenceReading(
            problem=Reason.UNREADABLE, detail=f"a patch over {store.TEXT_LIMIT:,} bytes; leave out generated files"
        )
    try:
        changes = patch.parse(text.decode(errors="replace"))
    except patch.MalformedPatch as error:
        return EvidenceReading(problem=Reason.UNREADABLE, detail=plain_text(str(error), MAX_LENGTHS["detail"]))
    return EvidenceReading(report={"files": len(changes.files)}, changes=changes)


def read_log(row: Evidence, log: ParsedLog, claim: SessionClaim) -> EvidenceReading:
    """The reading of a parsed log as evidence of the claimed session. Stores the log's records and usage."""
    header, report = log.header, log.report
    problem, detail = _find_fault(row, claim, log)
    # A repository's URL may contain a key. Category rules use its name, which the traits have.
    header = replace(header, repository=None)
    logs.save_records(row, log.records)
    usage.save_usage(row, log.usage)
    summary = {
        name: value.isoformat() if isinstance(value, dt.datetime) else value
        for name, value in {**asdict(header), **asdict(report)}.items()
        if value is not None
    }
    cost = usd_or_none(log.signals.cost_usd)
    if cost is not None:
        summary[COST] = cost
    return EvidenceReading(
        format=log.format,
        coverage=report.coverage,
        cost_usd=cost,
        started_at=_plausible(header.started_at),
        ended_at=_plausible(header.ended_at),
        signals=log.signals,
        traits=log.traits,
        problem=problem,
        **plain_row(
            MAX_LENGTHS,
            report=summary,
            model=header.model or "",
            # Redacted before it is truncated, which might cut a key in two.
            title=redact(first_request_line(header.title or "") or log.signals.task),
            detail=detail,
        ),
    )


def _find_fault(row: Evidence, claim: SessionClaim, log: ParsedLog) -> tuple[Reason, str]:
    """The reason why the transcript must not be used, and its description; (NONE, "") if it may be used.

    Checks that it is this session's own, that something in it is recognised, and that it isn't too small. A log without
    an id is taken for the session's own. A subagent's log may be submitted under its own id or its parent's, and under
    any id if it names only its parent.
    """
    header, report = log.header, log.report
    ids = {header.session_id, header.parent_id} if header.is_subagent else {header.session_id}
    ids -= {None}
    names_only_parent = header.is_subagent and ids <= {header.parent_id}
    if ids and claim.session_id not in ids and not names_only_parent:
        return Reason.LOG_OVERWRITTEN, f"The log belongs to session {header.session_id}, not to this one"
    if report.recognised == 0:
        return Reason.FORMAT_BLIND, f"None of {report.lines:,} lines of {header.harness} was recognised"
    start = claim.started_at or _plausible(header.started_at)
    end = claim.ended_at or _plausible(header.ended_at)
    seconds = 0.0 if start is None or end is None else (end - start).total_seconds()
    is_small = row.size < MIN_LOG_BYTES and not log.is_compressed
    if not header.is_subagent and is_small and seconds > MAX_SMALL_LOG_SECONDS:
        return Reason.LOG_TOO_SMALL, f"Too small: {row.size:,} bytes for a session of {seconds / 60:.0f} minutes"
    return Reason.NONE, ""


def plausible(moment: dt.datetime) -> dt.datetime:
    """`moment` unchanged. Raises ValueError if it is before 2000 or more than a day after the site's clock."""
    if not EARLIEST <= moment <= timezone.now() + CLOCK_SKEW:
        raise ValueError("expected a time since the year 2000 and not in the future; check the clock and the time zone")
    return moment


def _plausible(moment: dt.datetime | None) -> dt.datetime | None:
    """A transcript's time, or None if it is implausible."""
    if moment is None:
        return None
    try:
        return plausible(moment)
    except ValueError:
        return None


# --- receiving files and adding them to their session ----------------------------------------------------------------


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

    Raises TooLarge or StorageAway. If a parser fails, the evidence stays usable, and the graders' rows will say what
    failed.
    """
    name = getattr(stream, "name", "")
    row = build_row(kind, store.store(stream), name if isinstance(name, str) else "", witness)
    same = find_stored(row, stored)
    if same is not None:
        return ReceivedFile(row=row, reading=EvidenceReading(problem=Reason(same.problem), detail=same.detail))
    try:
        return ReceivedFile(row=row, reading=read(row, claim))
    except StorageAway:
        raise  # the caller sends the file again
    except Exception:
        logger.exception("reading the %s of session %s failed", kind, claim.session_id)
        return ReceivedFile(row=row, reading=EvidenceReading())


def build_row(kind: EvidenceKind, stored: Stored, name: str, witness: Witness) -> Evidence:
    """The unsaved row of stored bytes that were received as a file of this name."""
    filename = plain_text(PurePath(name).name, MAX_FILENAME)
    return Evidence(kind=kind, sha256=stored.sha256, size=stored.size, filename=filename, witness=witness)


def add(session: Session, files: Collection[ReceivedFile], stored: StoredEvidence) -> AddedEvidence:
    """Add the files that are not among the session's `stored` ones. Runs in the caller's transaction, after
    `ownership.lock`.
    """
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
