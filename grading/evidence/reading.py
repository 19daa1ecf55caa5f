"""Reading received files before grading: whether a transcript can be parsed and is the session's own."""

import datetime as dt
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO

from django.utils import timezone

from grading import formats, signals
from grading.evidence import records, store
from grading.evidence.records import Records
from grading.formats.events import ParseReport, TranscriptHeader
from grading.formats.scaffold import first_request_line
from grading.formats.values import usd_or_none
from grading.models import Evidence
from grading.models.evidence import EvidenceKind
from grading.plain import plain_row, plain_text
from grading.redaction import redact
from grading.signals import Signals, patch
from grading.signals.patch import Patch
from grading.signals.traits import Traits, TraitsReader
from grading.vocabulary import Reason

# Thresholds of the founding incident: a smaller log of a longer session is another session's, or a stub.
MIN_LOG_BYTES = 5_000
MAX_SMALL_LOG_SECONDS = 120

# The maximal length of each column in characters.
MAX_LENGTHS = {"model": 120, "title": 300, "detail": 500}

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


def parse(stream: BinaryIO, filename: str) -> ParsedLog:
    """Parse a whole log, in one pass over its events. Raises UnknownFormat and EmptyTranscript."""
    reader = formats.read(stream, filename)
    collector = records.RecordCollector(reader)
    traits_reader = TraitsReader(collector.events())
    extracted = signals.extract(traits_reader.events())
    return ParsedLog(
        format=reader.format,
        header=reader.header,
        report=reader.report,
        signals=extracted,
        traits=traits_reader.traits(reader.header, extracted),
        records=collector.records(extracted),
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
    if row.kind == EvidenceKind.PATCH:
        return _read_patch(row)
    return EvidenceReading()


def read_log(row: Evidence, log: ParsedLog, claim: SessionClaim) -> EvidenceReading:
    """The reading of a parsed log as evidence of the claimed session. Stores the log's records."""
    header, report = log.header, log.report
    problem, detail = _find_fault(row, claim, header, report)
    # A repository's URL may contain a key. Category rules use its name, which the traits have.
    header = replace(header, repository=None)
    records.save(row, log.records)
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


def _find_fault(
    row: Evidence, claim: SessionClaim, header: TranscriptHeader, report: ParseReport
) -> tuple[Reason, str]:
    """The reason why the transcript must not be used, and its description; (NONE, "") if it may be used.

    Checks that it is this session's own, that something in it is recognised, and that it isn't too small. A log without
    an id is taken for the session's own. A subagent's log may be submitted under its own id or its parent's, and under
    any id if it names only its parent.
    """
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
    if not header.is_subagent and row.size < MIN_LOG_BYTES and seconds > MAX_SMALL_LOG_SECONDS:
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


def _read_patch(row: Evidence) -> EvidenceReading:
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
