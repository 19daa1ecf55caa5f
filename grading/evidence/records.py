"""The records of a log, by which copies of it are recognised, and the commits and pull requests that it claims.

They are derived from the log's bytes and stored beside them, because they are needed again whenever a copy comes.
"""

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from grading import formats, signals
from grading.evidence import store
from grading.formats.events import Boundary, Event
from grading.formats.own import hash_record_id
from grading.models import Evidence
from grading.signals import Signals
from grading.signals.links import pull_request

MAX_RECORDS: Final = 1_000_000
"""Records of a log that are compared; all later ones count as the log's own."""
MAX_ANCHORS: Final = 64
MAX_CLAIMS: Final = 1_000
CACHE_ATTRIBUTE: Final = "_records"
DIGEST: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
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
            if event.record and len(self._records) < MAX_RECORDS:
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


def load(row: Evidence) -> Records:
    """The records of a log, as stored, or else from its bytes, after which they are stored. Cached on `row`.

    There are none for a log of no known format. Raises Damaged if its bytes are missing.
    """
    loaded: Records | None = getattr(row, CACHE_ATTRIBUTE, None)
    if loaded is None:
        loaded = _load_stored(row) or _read_log(row)
        setattr(row, CACHE_ATTRIBUTE, loaded)
    return loaded


def _load_stored(row: Evidence) -> Records | None:
    stored = store.derived(row, _kind())
    return None if stored is None else _deserialize(stored)


def _read_log(row: Evidence) -> Records:
    """Read the records from the log's bytes and store them. If retention deleted the bytes, the records are those that
    an older version of the code stored, if any.
    """
    try:
        with store.open(row) as stream:
            collector = RecordCollector(formats.read(stream, row.filename))
            loaded = collector.records(signals.extract(collector.events()))
    except store.Gone:
        stored = store.derived_before(row, "records-")
        return Records() if stored is None else _deserialize(stored)
    except (formats.UnknownFormat, formats.EmptyTranscript):
        loaded = Records()
    save(row, loaded)
    return loaded


def _deserialize(stored: bytes) -> Records:
    data = json.loads(stored)
    return Records(
        ids=tuple(data["ids"]),
        anchors=tuple(data["anchors"]),
        commits=tuple((hash_, subject) for hash_, subject in data["commits"]),
        pull_requests=tuple(data["pull_requests"]),
        resumed=data["resumed"],
    )


def save(row: Evidence, loaded: Records) -> None:
    """Store a log's records beside its bytes, and cache them on this row."""
    setattr(row, CACHE_ATTRIBUTE, loaded)
    data = {
        "ids": loaded.ids,
        "anchors": loaded.anchors,
        "commits": loaded.commits,
        "pull_requests": loaded.pull_requests,
        "resumed": loaded.resumed,
    }
    store.keep_derived(row, _kind(), json.dumps(data, separators=(",", ":")).encode(errors="replace"))


def _kind() -> str:
    """The name of the stored records, with the versions of the code that derives them."""
    return f"records-{formats.PARSER_VERSION}-{signals.VERSION}".replace("/", "-")
