"""What a log holds, by the ids of its records: how copies of a log are recognised, and what it claims to have made.

It is derived from the log's bytes, and kept beside them because it is asked for again whenever a copy comes.
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
"""The records of a log that are told apart; what comes after them is taken for the log's own."""
MAX_ANCHORS: Final = 64
MAX_CLAIMS: Final = 1_000
READ: Final = "_records"
DIGEST: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What a log holds beyond what it says itself it took from another session.

    `ids` are the hashes of its records in order, `anchors` those by which copies are found. `commits` are the hashes
    and subjects, and `pull_requests` the addresses, of what its confirmed calls made. `resumed`: it did take something.
    """

    ids: tuple[int, ...] = ()
    anchors: tuple[int, ...] = ()
    commits: tuple[tuple[str, str], ...] = ()
    pull_requests: tuple[str, ...] = ()
    resumed: bool = False


class Noted:
    """Events of a log passed through as they come, with a note of each one's record."""

    def __init__(self, reader: formats.TranscriptReader) -> None:
        self._reader = reader
        self._has_common_digests = reader.has_common_digests
        self._resumed = False
        self._restart()

    def events(self) -> Iterator[Event]:
        return chain.from_iterable(map(self._note, self._reader.batches()))

    def _note(self, events: list[Event]) -> list[Event]:
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
        self._numbers, self._records, self._common = array("q"), array("q"), array("b")

    def records(self, found: Signals) -> Records:
        """What the log holds, once it was read to its end and these signals were found in it."""
        return Records(
            ids=tuple(dict.fromkeys(self._records)),
            anchors=self._anchors(found),
            commits=tuple((commit.hash, commit.subject) for commit in found.commits[:MAX_CLAIMS]),
            pull_requests=tuple(dict.fromkeys(_addresses(found))),
            resumed=self._resumed,
        )

    def _anchors(self, found: Signals) -> tuple[int, ...]:
        """The first record, and those that effects and changes of files came from.

        A record of Codex without an id of its own is known by what it says, and many sessions may begin with the same
        words and write the same file: such a one is an anchor only where it shows a commit or an address.
        """
        telling = {*self._at(each.at for each in found.commits), *self._at(each.at for each in found.effects)}
        changes = {*self._at(each.at for each in found.files), *self._at(each.at for each in found.test_runs)}
        telling |= {place for place in changes if self._is_own(place)}
        first = [0] if self._records and self._is_own(0) else []
        # Where there are too many, those with the smallest hashes, so that copies have the same ones.
        chosen = sorted({self._records[place] for place in telling})[: MAX_ANCHORS - 1]
        return tuple(sorted({*chosen, *(self._records[place] for place in first)}))

    def _is_own(self, place: int) -> bool:
        return not self._common[place]

    def _at(self, numbers: Iterable[int]) -> Iterator[int]:
        """The places of the records that these events came from: the last that began at or before each."""
        for number in numbers:
            place = bisect_left(self._numbers, number + 1)
            if place:
                yield place - 1


def _addresses(found: Signals) -> Iterator[str]:
    for address in found.pull_requests[:MAX_CLAIMS]:
        try:
            yield pull_request(address)
        except ValueError:
            continue


def of(row: Evidence) -> Records:
    """What a log holds; nothing for one that cannot be read. Raises Damaged where its bytes are missing."""
    held: Records | None = getattr(row, READ, None)
    if held is not None:
        return held
    kept = store.derived(row, _kind())
    if kept is not None:
        return _read(kept)
    try:
        with store.open(row) as stream:
            noted = Noted(formats.read(stream, row.filename))
            found = noted.records(signals.extract(noted.events()))
    except store.Gone:  # what an older version found in it, if anything
        kept = store.derived_before(row, "records-")
        return Records() if kept is None else _read(kept)
    except (formats.UnknownFormat, formats.EmptyTranscript):
        found = Records()
    keep(row, found)
    return found


def _read(kept: bytes) -> Records:
    said = json.loads(kept)
    return Records(
        ids=tuple(said["ids"]),
        anchors=tuple(said["anchors"]),
        commits=tuple((hash_, subject) for hash_, subject in said["commits"]),
        pull_requests=tuple(said["pull_requests"]),
        resumed=said["resumed"],
    )


def keep(row: Evidence, found: Records) -> None:
    """Keep what was found in a log's bytes beside them, and at hand for whoever has this very row."""
    setattr(row, READ, found)
    said = {
        "ids": found.ids,
        "anchors": found.anchors,
        "commits": found.commits,
        "pull_requests": found.pull_requests,
        "resumed": found.resumed,
    }
    store.keep_derived(row, _kind(), json.dumps(said, separators=(",", ":")).encode(errors="replace"))


def _kind() -> str:
    """Another version of what reads the log may find something else in it."""
    return f"records-{formats.PARSER_VERSION}-{signals.VERSION}".replace("/", "-")
