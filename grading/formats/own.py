"""Reads a session's own events from its logs (its main log, then its subagents'), without other sessions' records."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import BinaryIO

from msgspec.structs import replace

from grading import formats
from grading.formats.events import Boundary, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLog:
    """One log of a session. `open` opens its bytes; `ids` loads its records' hashes and is only called if another log
    follows; `format` is "" if it must be detected.
    """

    open: Callable[[], BinaryIO]
    filename: str
    ids: Callable[[], Iterable[int]]
    format: str = ""


def hash_record_id(record: str) -> int:
    """64-bit BLAKE2b hash of a record's id, signed so that it fits a BIGINT column."""
    return int.from_bytes(blake2b(record.encode(errors="surrogatepass"), digest_size=8).digest(), signed=True)


def own_events(logs: Sequence[OwnLog], foreign: frozenset[int]) -> Iterator[Event]:
    """The events of the logs in order, each record once, without records whose hash is in `foreign`.

    Events of the logs after the first are marked as sidechain, and their numbers continue from the log before.
    """
    skipped_hashes = set(foreign)  # the hashes of each log's records are added before the next log is read
    last_number = 0
    for index, log in enumerate(logs):
        offset = last_number
        with log.open() as stream:
            for event in formats.read(stream, log.filename, format_name=log.format):
                last_number = offset + event.number
                if event.record and hash_record_id(event.record) in skipped_hashes:
                    continue
                if index == 0:
                    yield event
                # A change of session tells readers to discard what came before: here, that is the main log.
                elif not (isinstance(event, Boundary) and event.kind == "session_change"):
                    yield replace(event, number=last_number, sidechain=True)
        if index < len(logs) - 1:
            skipped_hashes.update(log.ids())
