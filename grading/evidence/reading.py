"""Reading what was received, before anything is graded: is this transcript the session's own, and can it be read?"""

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
from grading.signals.traits import Traits, Watched
from grading.vocabulary import Reason

# The founding incident's threshold: a log this small of a session this long is another session's, or a stub.
SMALL_LOG_BYTES = 5_000
SMALL_LOG_SECONDS = 120

# The longest text of each column, in characters.
LIMITS = {"model": 120, "title": 300, "detail": 500}

# Where a log's cost stands in its row's report.
COST = "cost_usd"

OLDEST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
CLOCK_SKEW = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClaim:
    """What the caller says of the session whose evidence this is."""

    session_id: str
    started_at: dt.datetime | None = None
    ended_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReading:
    """What a file turned out to be. `problem` says why it must not be used for grading, `detail` in words.

    Of a transcript: `title` is a name for the session, the log's own or else the first words that a person wrote; its
    cost is in dollars; the times are those of its first and last moments, as far as a clock could have shown them.
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
    """What a log says, whoever's it is."""

    format: str
    header: TranscriptHeader
    report: ParseReport
    signals: Signals
    traits: Traits
    records: Records


def parse(stream: BinaryIO, filename: str) -> ParsedLog:
    """Read a log to its end. Raises UnknownFormat and EmptyTranscript."""
    reader = formats.read(stream, filename)
    noted = records.Noted(reader)
    watched = Watched(noted.events())
    found = signals.extract(watched.events())
    return ParsedLog(
        format=reader.format,
        header=reader.header,
        report=reader.report,
        signals=found,
        traits=watched.traits(reader.header, found),
        records=noted.records(found),
    )


def read(row: Evidence, claim: SessionClaim) -> EvidenceReading:
    """What the stored bytes of `row` (its kind, hash, size and file name) turn out to be. Never raises for content."""
    if row.kind == EvidenceKind.TRANSCRIPT:
        try:
            with store.open(row) as stream:
                log = parse(stream, row.filename)
        except formats.UnknownFormat as error:
            return EvidenceReading(problem=Reason.FORMAT_UNKNOWN, detail=plain_text(error.reason, LIMITS["detail"]))
        except formats.EmptyTranscript:
            return EvidenceReading(problem=Reason.UNREADABLE, detail="An empty file")
        return of_log(row, log, claim)
    if row.kind == EvidenceKind.PATCH:
        return _patch(row)
    return EvidenceReading()


def of_log(row: Evidence, log: ParsedLog, claim: SessionClaim) -> EvidenceReading:
    """What a log means for the session that it is said to be of. What says whose its records are is kept."""
    header, report = log.header, log.report
    problem, detail = _judged(row, claim, header, report)
    # An address may have a key in it; of the repository, rules have the name.
    header = replace(header, repository=None)
    records.keep(row, log.records)
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
            LIMITS,
            report=summary,
            model=header.model or "",
            # Redacted before it is cut: a cut may fall within a key.
            title=redact(first_request_line(header.title or "") or log.signals.task),
            detail=detail,
        ),
    )


def _judged(row: Evidence, claim: SessionClaim, header: TranscriptHeader, report: ParseReport) -> tuple[Reason, str]:
    """Whether the transcript may be used, by the three log faults of the founding incident and by being blind.

    A subagent's log may stand under an id of its own, or under that of the session that started it, whose part it is.
    """
    names = {header.session_id, header.parent_id} if header.is_subagent else {header.session_id}
    named = names - {None}
    is_own_name = header.is_subagent and named <= {header.parent_id}  # the log has no name but its parent's
    if named and claim.session_id not in named and not is_own_name:
        return Reason.LOG_OVERWRITTEN, f"The log belongs to session {header.session_id}, not to this one"
    if report.recognised == 0:
        return Reason.FORMAT_BLIND, f"None of {report.lines:,} lines of {header.harness} was recognised"
    start, end = claim.started_at or _plausible(header.started_at), claim.ended_at or _plausible(header.ended_at)
    seconds = 0.0 if start is None or end is None else (end - start).total_seconds()
    if not header.is_subagent and row.size < SMALL_LOG_BYTES and seconds > SMALL_LOG_SECONDS:
        return Reason.LOG_TOO_SMALL, f"Too small: {row.size:,} bytes for a session of {seconds / 60:.0f} minutes"
    return Reason.NONE, ""


def plausible(moment: dt.datetime) -> dt.datetime:
    """The moment itself. Raises ValueError before the year 2000 or more than a day ahead of the site's clock."""
    if not OLDEST <= moment <= timezone.now() + CLOCK_SKEW:
        raise ValueError("expected a time since the year 2000 and not in the future; check the clock and the time zone")
    return moment


def _plausible(moment: dt.datetime | None) -> dt.datetime | None:
    """A transcript's time, or None for one that no clock would show."""
    if moment is None:
        return None
    try:
        return plausible(moment)
    except ValueError:
        return None


def _patch(row: Evidence) -> EvidenceReading:
    with store.open(row) as stream:
        text = stream.read(store.TEXT_LIMIT + 1)
    if len(text) > store.TEXT_LIMIT:
        return EvidenceReading(
            problem=Reason.UNREADABLE, detail=f"a patch over {store.TEXT_LIMIT:,} bytes; leave out generated files"
        )
    try:
        changes = patch.parse(text.decode(errors="replace"))
    except patch.MalformedPatch as error:
        return EvidenceReading(problem=Reason.UNREADABLE, detail=plain_text(str(error), LIMITS["detail"]))
    return EvidenceReading(report={"files": len(changes.files)}, changes=changes)
