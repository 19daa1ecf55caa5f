"""What a session itself did, told by its logs: without what belongs to other sessions, its subagents' logs after it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import BinaryIO

from grading import formats
from grading.formats.events import Boundary, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLog:
    """One log: how its bytes are read, and the hashes of its records, asked for where another log follows. `format` is
    empty where it is to be recognised.
    """

    open: Callable[[], BinaryIO]
    filename: str
    ids: Callable[[], Iterable[int]]
    format: str = ""


def hash_of(record: str) -> int:
    """A record's id as the signed 64 bits that a database keeps."""
    return int.from_bytes(blake2b(record.encode(errors="surrogatepass"), digest_size=8).digest(), signed=True)


def own_events(logs: Sequence[OwnLog], foreign: frozenset[int]) -> Iterator[Event]:
    """The events of the logs in order, but for those of `foreign` records (by hash), each record once. Those of the
    logs after the first are events beside the main thread, numbered on.
    """
    seen, last = set(foreign), 0
    for place, log in enumerate(logs):
        first = last
        with log.open() as stream:
            for event in formats.read(stream, log.filename, known=log.format):
                last = first + event.number
                if event.record and hash_of(event.record) in seen:
                    continue
                if place == 0:
                    yield event
                elif not (isinstance(event, Boundary) and event.kind == "session_change"):
                    yield replace(event, number=last, sidechain=True)
        if place < len(logs) - 1:
            seen.update(log.ids())
