"""The logs of a session: which of them count, and the records in each, by which copies are recognised.

Records, and the commits and pull requests that a log claims, are derived from its bytes and stored beside them, because
they are needed again whenever a copy comes.
"""

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from msgspec import Struct, convert
from msgspec.structs import asdict

from grading import formats, signals
from grading.evidence import owner_rule, store
from grading.formats.events import Boundary, Event
from grading.formats.own import hash_record_id
from grading.models import Evidence, RecordAnchor, Session, SessionLog
from grading.signals import Signals
from grading.signals.links import pull_request

MAX_RECORDS: Final = 1_000_000
"""Records of a log that are compared; all later ones count as the log's own."""
MAX_ANCHORS: Final = 64
MAX_CLAIMS: Final = 1_000
CACHE_ATTRIBUTE: Final = "_records"
DIGEST: Final = re.compile(r"[0-9a-f]{16}")


class Records(Struct, frozen=True, kw_only=True):
    """A log's records without those that the log itself attributes to another session.

    `ids` are the hashes of its records in order, `anchors` those by which copies are found. `commits` are (hash,
    subject) and `pull_requests` the addresses of what its confirmed calls made. `resumed`: some were attributed.
    """

    ids: tuple[int, ...] = ()
    anchors: tuple[int, ...] = ()
    commits: tuple[tuple[str, str], ...] = ()
    pull_requests: tuple[str, ...] = ()
    resumed: bool = False


class RecordCollector:
    """Passes the events of a log through unchanged while collecting the record that each came from."""

    def __init__(self, reader: formats.TranscriptReader) -> None:
        self._reader = reader
        self._has_common_digests = reader.has_common_digests
        self._resumed = False
        self._last_record = ""
        self._restart()

    def events(self) -> Iterator[Event]:
        """The log's events. Read all of them before calling `records`."""
        return chain.from_iterable(map(self._note, self._reader.batches()))

    def _note(self, events: list[Event]) -> list[Event]:
        """Collect the records of these events, and return the events unchanged.

        A record is marked as common if its id is a digest of its text that unrelated sessions may share.
        """
        for event in events:
            if isinstance(event, Boundary) and event.kind == "session_change":
                self._resumed = True
                self._restart()
            if event.record and event.record != self._last_record and len(self._records) < MAX_RECORDS:
                self._last_record = event.record
                record = hash_record_id(event.record)
                if not self._records or self._records[-1] != record:
                    self._numbers.append(event.number)
                    self._records.append(record)
                    self._common.append(self._has_common_digests and DIGEST.fullmatch(event.record) is not None)
        return events

    def _restart(self) -> None:
        """Forget the records so far: the log says that they are another session's."""
        # One item for each record: the number of its first event, its hash, and whether it has no id of its own.
        self._numbers, self._records, self._common = array("q"), array("q"), array("b")
        self._last_record = ""

    def records(self, extracted: Signals) -> Records:
        """The log's records. `extracted` are the signals of the same `events`, all of which were read."""
        return Records(
            ids=tuple(dict.fromkeys(self._records)),
            anchors=self._anchors(extracted),
            commits=tuple((commit.hash, commit.subject) for commit in extracted.commits[:MAX_CLAIMS]),
            pull_requests=tuple(dict.fromkeys(_pull_request_urls(extracted))),
            resumed=self._resumed,
        )

    def _anchors(self, extracted: Signals) -> tuple[int, ...]:
        """The first record, and those that commits, effects, file changes and test runs came from.

        A Codex record without an id of its own is identified by its text, and many sessions may begin with the same
        text and write the same file. Such a record is an anchor only if it shows an effect or a commit.
        """
        indexes = self._record_indexes(each.at for each in extracted.commits)
        indexes |= self._record_indexes(each.at for each in extracted.effects)
        changes = self._record_indexes(each.at for each in extracted.files)
        changes |= self._record_indexes(each.at for each in extracted.test_runs)
        indexes |= {index for index in changes if not self._common[index]}
        # If there are too many, those with the smallest hashes, so that copies have the same ones.
        anchors = set(sorted({self._records[index] for index in indexes})[: MAX_ANCHORS - 1])
        if self._records and not self._common[0]:
            anchors.add(self._records[0])
        return tuple(sorted(anchors))

    def _record_indexes(self, numbers: Iterable[int]) -> set[int]:
        """The indexes of the records that the events of these numbers came from: the last that begins at or before
        each event.
        """
        ends = [bisect_left(self._numbers, number + 1) for number in numbers]
        return {end - 1 for end in ends if end}


def _pull_request_urls(extracted: Signals) -> Iterator[str]:
    """The canonical addresses of the pull requests, without invalid ones."""
    for address in extracted.pull_requests[:MAX_CLAIMS]:
        try:
            yield pull_request(address)
        except ValueError:
            continue


def load_records(row: Evidence) -> Records:
    """The records of a log, as stored, or else from its bytes, after which they are stored. Cached on `row`.

    There are none for a log of no known format. Raises Damaged if its bytes are missing.
    """
    records: Records | None = getattr(row, CACHE_ATTRIBUTE, None)
    if records is None:
        stored = store.derived(row, _records_name())
        records = _read_records(row) if stored is None else convert(json.loads(stored), Records)
        setattr(row, CACHE_ATTRIBUTE, records)
    return records


def _read_records(row: Evidence) -> Records:
    """Read the records from the log's bytes and store them. If retention deleted the bytes, the records are those that
    an older version of the code stored, if any.
    """
    try:
        with store.open(row) as stream:
            collector = RecordCollector(formats.read(stream, row.filename))
            records = collector.records(signals.extract(collector.events()))
    except store.Gone:
        stored = store.derived_before(row, "records-")
        return Records() if stored is None else convert(json.loads(stored), Records)
    except (formats.UnknownFormat, formats.EmptyTranscript):
        records = Records()
    save_records(row, records)
    return records


def save_records(row: Evidence, records: Records) -> None:
    """Store a log's records beside its bytes, and cache them on this row."""
    setattr(row, CACHE_ATTRIBUTE, records)
    data = json.dumps(asdict(records), separators=(",", ":"))
    store.keep_derived(row, _records_name(), data.encode(errors="replace"))


def _records_name() -> str:
    """The name of the stored records, with the versions of the code that derives them."""
    return f"records-{formats.PARSER_VERSION}-{signals.VERSION}".replace("/", "-")


# --- which logs count -------------------------------------------------------------------------------------------------


def update_summary(
    session: Session, before: SessionLog | None, old_anchors: set[int]
) -> tuple[SessionLog | None, list[tuple[Evidence, Records]], bool]:
    """Choose the session's logs that count and store their summary.

    `before` is the stored summary, if there is one, and `old_anchors` are the session's stored anchors. Returns the
    summary, the chosen logs with their records, and whether the choice differs from the stored one.
    """
    chosen, parent = _choose(session)
    if before is None and not chosen:
        return None, [], False
    log = before or SessionLog(session=session)
    files = [row.sha256 for row, _records in chosen]
    # Without a receipt the summary is new, or its session had no log yet and was only the parent of subagents.
    if log.receipt and (log.files, log.parent) == (files, parent):
        return log, chosen, False
    log.files, log.parent = files, parent
    chosen_records = [each for _row, each in chosen]
    # The records of the first log, the session's own if it has one (`_choose`), and those of all.
    log.size = len(chosen_records[0].ids) if chosen_records else 0
    # `ownership.update` corrects this if another session has some of the records or is part of this one.
    log.total = len({record for each in chosen_records for record in each.ids})
    log.resumed = any(each.resumed for each in chosen_records)
    if not log.receipt:  # it stays that of the log received first
        log.receipt = min((row.pk for row, _records in chosen), default=0)
    log.save(force_insert=before is None)
    anchors = set(sorted({anchor for each in chosen_records for anchor in each.anchors})[:MAX_ANCHORS])
    if gone := old_anchors - anchors:
        session.anchors.filter(record__in=gone).delete()
    RecordAnchor.objects.bulk_create(
        RecordAnchor(session=session, record=record) for record in sorted(anchors - old_anchors)
    )
    return log, chosen, True


def is_main_log(session: Session, row: Evidence) -> bool:
    """Whether this log describes the session as a whole: it is the first that counts, and no subagent's log."""
    chosen, _parent = _choose(session)
    return bool(chosen) and chosen[0][0].pk == row.pk and parent_of(row) != session.external_id


def is_torn(session: Session) -> bool:
    """Whether the session has several logs of its own of which none contains the others."""
    own = [row for row in store.readable_logs(session) if not parent_of(row) and not store.is_shared(row)]
    ids = {row.sha256: frozenset(load_records(row).ids) for row in own} if len(own) > 1 else {}
    return len(owner_rule.maximal_logs(ids)) > 1


def _choose(session: Session) -> tuple[list[tuple[Evidence, Records]], str]:
    """The logs that count with their records, the session's own first; and the id of its parent session, or "".

    Of its own logs the one that contains the others counts, or else the one with most records; of its subagents' logs
    all that no other contains. Logs whose records have no ids can't be compared: of those the latest counts. A session
    has a parent if all of its logs are those of a subagent that another session started.
    """
    rows = {row.sha256: row for row in store.readable_logs(session) if not store.is_shared(row)}
    own = [sha256 for sha256, row in rows.items() if not parent_of(row)]
    subagents = [sha256 for sha256 in rows if sha256 not in own]
    loaded = {sha256: load_records(row) for sha256, row in rows.items()}
    names = [*_maximal(own, loaded)[:1], *_maximal(subagents, loaded)]
    parent = "" if own else min((parent_of(rows[sha256]) for sha256 in subagents), default="")
    chosen = [(rows[sha256], loaded[sha256]) for sha256 in names]
    return chosen, "" if parent == session.external_id else parent


def _maximal(names: list[str], loaded: dict[str, Records]) -> list[str]:
    """The hashes of the logs that no other contains, or the first (latest) if none has records with ids."""
    if len(names) <= 1:
        return names
    ids = {name: frozenset(loaded[name].ids) for name in names}
    return owner_rule.maximal_logs(ids) if any(ids.values()) else names[:1]


def parent_of(row: Evidence) -> str:
    """The id of the session that started this log's session as a subagent; empty if it is no subagent's log."""
    if not row.report.get("is_subagent"):
        return ""
    return str(row.report.get("parent_id") or "")[:200]
