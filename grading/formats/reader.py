"""What every harness's parser is, and the one loop that drives it over a stream.

Every record of a log has an identity that is the same in every copy of it (a resumed or forked session's log, say) and
different otherwise; `Event.record` carries it. Claude Code: the line's `uuid`. Codex: the `call_id` of a call, and of
its output, where it is random enough; else a digest of the payload without the times and ids that a fork rewrites.
gptme: a digest of role, time and content. Long ones are digests of 16 hexadecimal digits.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from itertools import chain, count
from typing import Any, BinaryIO, ClassVar, Final

from grading.formats.events import Event, ParseReport, TranscriptHeader, Usage
from grading.formats.lines import MAX_LINE, LineTally, Problems, read_objects
from grading.formats.seen import RecentKeys
from grading.formats.usage import ReportedTokens, Response

MAX_MODELS: Final = 100
MAX_RECORDS: Final = 200_000
MAX_IDENTITY: Final = 64
BATCH: Final = 100
"""Events that a reader reads ahead, so that whoever takes them is not sent back and forth for each."""
SURE, LIKELY, NO = 1.0, 0.6, 0.0
Record = Mapping[str, Any]


class Parser(ABC):
    """Turns the records of one file, in order, into events. Holds bounded state only."""

    format: ClassVar[str]
    title: ClassVar[str]
    """The harness as people call it."""
    has_common_digests: ClassVar[bool] = False
    """Whether a record known by its digest may be in logs of other sessions too, as the digest leaves its time out."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._numbers = count(1)
        self._models: Counter[str] = Counter()
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        self.record = ""

    @staticmethod
    @abstractmethod
    def score(record: Record) -> float:
        """How surely a record was written by this harness: SURE, LIKELY or NO. It looks at no other record."""

    @abstractmethod
    def feed(self, record: Record) -> list[Event] | None:
        """The events of one record: empty where it says nothing we grade by, None where it was not recognised."""

    @abstractmethod
    def header(self) -> TranscriptHeader:
        """What the transcript said of itself so far; complete after the last record."""

    def finish(self) -> list[Event]:
        """Events held back until the end of the file."""
        return []

    def identity(self, record: Record) -> str:
        """The record's own unique id, or "" where the format has none: what comes again under it is a repeat."""
        del record
        return ""

    def copied_as(self, record: Record) -> str:
        """The identity of a record in every copy of it, or "" where it has none."""
        return self.identity(record)

    def number(self) -> int:
        return next(self._numbers)

    def saw(self, at: datetime | None) -> datetime | None:
        """Widens the session's span of time by one moment."""
        if at is not None:
            self.started_at = at if self.started_at is None else min(self.started_at, at)
            self.ended_at = at if self.ended_at is None else max(self.ended_at, at)
        return at

    def answered(self, model: str) -> None:
        """Counts a response for the model that gave it."""
        if model and (model in self._models or len(self._models) < MAX_MODELS):
            self._models[model] += 1

    @property
    def model(self) -> str | None:
        """The model that answered most often; the first of several."""
        return self._models.most_common(1)[0][0] if self._models else None

    def unknown(self, kind: str) -> None:
        self.problems.note(f"unknown record type {kind[:60]!r}")

    def usage(self, response: Response) -> Usage:
        usage = self.usage_of(
            response.tokens, model=response.model, at=response.at, sidechain=response.sidechain, cost=response.cost
        )
        return replace(usage, record=response.record)

    def usage_of(
        self,
        tokens: ReportedTokens,
        *,
        model: str,
        at: datetime | None,
        sidechain: bool = False,
        cost: float | None = None,
    ) -> Usage:
        return Usage(
            number=self.number(),
            at=at,
            sidechain=sidechain,
            model=model,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cache_read_tokens=tokens.cache_read_tokens,
            cache_write_tokens=tokens.cache_write_tokens,
            cost_usd=cost,
        )


class TranscriptReader:
    """The events of one transcript, in order, in constant memory.

    Iterable once; `header`, `report` and `records` are complete when the iteration has ended; `format` is at once.
    """

    def __init__(self, stream: BinaryIO, parser: type[Parser], *, max_line: int = MAX_LINE) -> None:
        self.format = parser.format
        self.has_common_digests = parser.has_common_digests
        self._tally = LineTally()
        self._parser = parser(self._tally.problems)
        self._objects = read_objects(stream, self._tally, max_line=max_line)
        self._lines_seen = RecentKeys()
        self._ids_seen = RecentKeys()
        self._records: dict[str, None] = {}
        self._recognised = 0
        self._duplicates = 0
        self._started = False

    def __iter__(self) -> Iterator[Event]:
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[list[Event]]:
        """The events in order, some hundred at a time."""
        if self._started:
            raise RuntimeError("a TranscriptReader can be read once; call read() again with the stream at its start")
        self._started = True
        return self._read()

    @property
    def header(self) -> TranscriptHeader:
        return self._parser.header()

    @property
    def records(self) -> Collection[str]:
        """The identities of the log's records, each once, in order; the first MAX_RECORDS of them."""
        return self._records.keys()

    @property
    def report(self) -> ParseReport:
        tally = self._tally
        return ParseReport(
            lines=tally.lines,
            recognised=self._recognised,
            torn_tail=tally.torn_tail,
            duplicates=self._duplicates,
            not_objects=tally.not_objects,
            glued=tally.glued,
            oversized=tally.oversized,
            invalid_utf8=tally.invalid_utf8,
            problems=tally.problems.words(),
        )

    def _read(self) -> Iterator[list[Event]]:
        batch: list[Event] = []
        for source, record in self._objects:
            digest = blake2b(source.encode(), digest_size=16).digest()
            own = self._parser.identity(record)
            if self._lines_seen.add(digest) or (own and self._ids_seen.add(own)):
                self._duplicates += 1
                self._recognised += 1
                continue
            self._parser.record = identity = self._parser.copied_as(record)
            events = self._parser.feed(record)
            if events is None:
                self._lines_seen.discard(digest)  # a repeat of what was not recognised is not recognised either
                continue
            self._recognised += 1
            if identity and len(self._records) < MAX_RECORDS:
                self._records[identity] = None
            batch += [event if event.record or not identity else replace(event, record=identity) for event in events]
            if len(batch) >= BATCH:
                yield batch
                batch = []
        yield [*batch, *self._parser.finish()]


def short(identity: str) -> str:
    """An identity as it is, or its digest where it is long."""
    return identity if len(identity) <= MAX_IDENTITY else blake2b(identity.encode(), digest_size=8).hexdigest()


def digest_of(*values: object) -> str:
    """16 hexadecimal digits for JSON values; "" for what is nested too deeply to be written."""
    try:
        written = json.dumps(values, sort_keys=True, ensure_ascii=False)
    except RecursionError:
        return ""
    return blake2b(written.encode(errors="surrogatepass"), digest_size=8).hexdigest()
