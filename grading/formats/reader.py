"""The base class of all parsers, and the loop that feeds one with a stream's records.

Every record of a log has a shared identity, `Event.record`: the same in all its copies (in the log of a resumed or
forked session, say) and different from other records'. Claude Code: the line's `uuid`. Codex: the `call_id` of a call
or its output, if it is random enough; else a digest of the payload without the times and ids that a fork rewrites.
gptme: a digest of role, time and content. Long identities are replaced by digests of 16 hexadecimal digits.
"""

import dataclasses
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b, sha256
from itertools import chain
from typing import Any, BinaryIO, ClassVar, Final

from msgspec.structs import replace

from grading.formats.documents import read_document
from grading.formats.events import (
    Background,
    Clarity,
    Event,
    Interruption,
    LoadedInstructions,
    Message,
    ParseReport,
    Role,
    Setting,
    ToolCall,
    ToolResult,
    TranscriptHeader,
    Usage,
)
from grading.formats.lines import MAX_LINE, LineTally, Problems, RecentKeys, read_objects
from grading.formats.scaffold import split_by_role
from grading.formats.usage import ReportedTokens

MAX_MODELS: Final = 100
MAX_KINDS: Final = 40
"""Unknown kinds, and unknown tools, that are counted by name."""
MAX_NAMED: Final = 5
MAX_IDENTITY_LENGTH: Final = 64
BATCH_SIZE, BATCH_BYTES = 100, 1024 * 1024
"""Events are yielded in batches of about this size, or of as many bytes of the log: that is faster than one by one."""
ENOUGH_SAMPLES, ENOUGH_SOURCES = 10, 2
SURE, LIKELY, NO = 1.0, 0.6, 0.0  # scores of a record in detection
Record = Mapping[str, Any]


class Form(StrEnum):
    """The outer form of a log: JSON lines, one JSON document, a zip archive, or plain text."""

    LINES = "lines"
    DOCUMENT = "document"
    ARCHIVE = "archive"
    TEXT = "text"


class FormatTier(StrEnum):
    """How much of a harness's logs counts. FULL: all of it. FACTS: the session is shown with its facts, and its log
    gives no grade. RECOGNISED: the logs are refused by the harness's name.
    """

    FULL = "full"
    FACTS = "facts"
    RECOGNISED = "recognised"


class Recogniser(ABC):
    """A harness, whose logs it tells from others by their beginning."""

    format: ClassVar[str]
    title: ClassVar[str]
    """The harness's name for people."""
    tier: ClassVar[FormatTier] = FormatTier.RECOGNISED
    logs: ClassVar[str] = ""
    """Where the harness keeps its logs."""
    folders: ClassVar[tuple[str, ...]] = ()
    """The folders, below the home folder, of its logs on the machine of a person who uses it. Those of a harness with a
    hook are in `grading.agent.submit_session`.
    """
    hook: ClassVar[str] = ""
    """What sends a session when it ends, if anything does."""
    samples: ClassVar[int] = 0
    """The real logs that its parser was tried on."""
    sources: ClassVar[int] = 0
    """The different places that these come from."""
    reason: ClassVar[str] = ""
    """Why such a file is not read and what to do instead, if that isn't only that nobody has written a parser."""

    @classmethod
    def has_few_samples(cls) -> bool:
        """Whether a grade from its logs counts half, because too few real logs were read."""
        return cls.samples < ENOUGH_SAMPLES or cls.sources < ENOUGH_SOURCES

    @staticmethod
    def score(record: Record) -> float:
        """How certain it is that this harness wrote the JSON line, from it alone: SURE, LIKELY or NO."""
        del record
        return NO

    @staticmethod
    def score_document(document: Any) -> float:
        """The same for a JSON document, from as much of it as is in the file's first bytes: an object or a list."""
        del document
        return NO

    @staticmethod
    def score_bytes(head: bytes) -> tuple[float, Form]:
        """The same for text or an archive, with its form."""
        del head
        return NO, Form.TEXT


class Parser(Recogniser):
    """Turns the records of one file, fed in order, into events. Subclasses keep only bounded state."""

    tier = FormatTier.FACTS
    forms: ClassVar[frozenset[Form]] = frozenset({Form.LINES})
    """The forms that the harness's logs have."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """Of a JSON document, the values that are fed as records {"path", "value"} (`documents.read_document`)."""
    custom_tools: ClassVar[frozenset[str]] = frozenset()
    """Names of tools that are known to do anything, besides those of MCP servers."""
    has_common_digests: ClassVar[bool] = False
    """Whether unrelated sessions may have records with the same digest, because the digest excludes the time."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._last_number = 0
        self._chained_digest = ""
        self.unknown_kinds: Counter[str] = Counter()
        """How often kinds of records and of their parts came that the parser doesn't know."""
        self._background: list[Background] = []
        """What the records so far show beside the conversation, not yet taken by the reader."""
        self._settings: dict[str, str] = {}
        self._models: Counter[str] = Counter()
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        self.record_id = ""
        """The shared identity of the record being fed."""

    @classmethod
    def read_records(
        cls, stream: BinaryIO, form: Form, tally: LineTally, *, max_line: int
    ) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """(source text, record) of each record of a log. Lines with the same source text are repeats."""
        if form is Form.DOCUMENT:
            return read_document(stream, tally, cls.paths, max_size=max_line)
        return read_objects(stream, tally, max_line=max_line)

    @abstractmethod
    def feed(self, record: Record) -> list[Event] | None:
        """The events of one record: empty if none of it matters for grading, None if it wasn't recognised."""

    @abstractmethod
    def header(self) -> TranscriptHeader:
        """The transcript's metadata so far, without harness and times, which the reader adds; complete after the last
        record.
        """

    def finish(self) -> list[Event]:
        """Events that could only be completed at the end of the file."""
        return []

    def identity(self, record: Record) -> str:
        """The record's own unique id, or "" if the format has none. A second record with the same id is skipped."""
        del record
        return ""

    def shared_identity(self, record: Record) -> str:
        """The id that all copies of the record share, in whichever session's log; "" if it has none."""
        return self.identity(record)

    def chain_identity(self, value: object) -> str:
        """An identity of a record without an id or a time: equal if it and all records before it are equal."""
        self._chained_digest = digest_json(self._chained_digest, value)
        return self._chained_digest

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def note_setting(self, name: str, value: object) -> None:
        """Note a setting that is in force from here on, if the value is text and differs from the one before."""
        if isinstance(value, str) and value and self._settings.get(name) != value:
            self._settings[name] = value
            self._background.append(Setting(name=name, value=value))

    def forget_settings(self) -> None:
        """Note all settings again from here on, because another session begins."""
        self._settings.clear()

    def note_instructions(self, name: str, content: str) -> None:
        """Note a file of instructions that the model was given."""
        data = content.encode(errors="surrogatepass")
        digest = sha256(data).hexdigest()
        self._background.append(LoadedInstructions(name=name, size=len(data), sha256=digest))

    def note_interruption(self) -> None:
        """Note that a person stopped the agent."""
        self._background.append(Interruption())

    def take_background(self) -> list[Background]:
        """What was noted since the last time. It comes after the events of its record, so it has the last number."""
        if not self._background:
            return []
        background, self._background = self._background, []
        return [replace(event, number=self._last_number) for event in background]

    def note_time(self, at: datetime | None) -> datetime | None:
        """Extend `started_at` to `ended_at` so that it includes a time; returns that time."""
        if at is not None:
            if self.started_at is None or at < self.started_at:
                self.started_at = at
            if self.ended_at is None or at > self.ended_at:
                self.ended_at = at
        return at

    def count_response(self, model: str) -> None:
        """Count a response of a model; the property `model` is the one with the most."""
        if model and (model in self._models or len(self._models) < MAX_MODELS):
            self._models[model] += 1
            self.note_setting("model", model)

    @property
    def model(self) -> str | None:
        """The model with the most responses; of several, the first that appeared."""
        return self._models.most_common(1)[0][0] if self._models else None

    def note_unknown(self, kind: str, what: str = "record type") -> None:
        """Note a kind of record, or of a part of one, that the parser doesn't know."""
        self.problems.note(f"unknown {what} {kind[:60]!r}")
        name = f"{what} {kind[:60]}"
        if name not in self.unknown_kinds and len(self.unknown_kinds) >= MAX_KINDS:
            name = "others"
        self.unknown_kinds[name] += 1

    def build_messages(
        self, role: Role, content: str, at: datetime | None, *, thinking: bool = False, side: bool = False
    ) -> list[Event]:
        """The message, or none if the text is blank. `side`: it belongs to a subagent."""
        if not content.strip():
            return []
        message = Message(number=self.next_number(), at=at, sidechain=side, role=role, text=content, thinking=thinking)
        return [message]

    def build_user_messages(
        self, content: str, at: datetime | None, *, injected: bool = False, side: bool = False
    ) -> list[Event]:
        """The messages of a text with the role `user`, split into what a person wrote and what the harness injected.

        `injected`: the harness injected all of it.
        """
        messages: list[Event] = []
        for role, piece in split_by_role(content, injected=injected):
            messages += self.build_messages(role, piece, at, side=side)
        return messages

    def build_call(self, call: ToolCall, at: datetime | None, *, side: bool = False) -> ToolCall:
        """The call with the next number."""
        return replace(call, number=self.next_number(), at=at, sidechain=side)

    def build_result(
        self,
        call_id: str,
        output: str,
        at: datetime | None,
        *,
        failed: bool | None,
        exit_code: int | None = None,
        side: bool = False,
    ) -> ToolResult:
        """A call's result with the next number. `side`: it belongs to a subagent."""
        return ToolResult(
            number=self.next_number(),
            at=at,
            sidechain=side,
            call_id=call_id,
            text=output,
            failed=failed,
            exit_code=exit_code,
        )

    def build_usage(
        self,
        tokens: ReportedTokens,
        *,
        model: str,
        at: datetime | None,
        sidechain: bool = False,
        record: str = "",
        cost: float | None = None,
        message: str = "",
        speed: str = "",
        copied: bool = False,
    ) -> Usage:
        """A response's usage with the next number. `cost` is in US dollars; `message` and `speed` as in `Usage`."""
        return Usage(
            number=self.next_number(),
            record=record,
            at=at,
            sidechain=sidechain,
            model=model,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cache_read_tokens=tokens.cache_read_tokens,
            cache_write_tokens=tokens.cache_write_tokens,
            hour_cache_write_tokens=tokens.hour_cache_write_tokens,
            is_valid=tokens.is_valid,
            cost_usd=cost,
            message=message,
            speed=speed,
            copied=copied,
        )


class TranscriptReader:
    """The events of one transcript, in order, in constant memory.

    Can be iterated once. `header` and `report` are complete after the iteration; `format` is available at once.
    """

    def __init__(
        self,
        stream: BinaryIO,
        parser: type[Parser],
        *,
        form: Form = Form.LINES,
        is_compressed: bool = False,
        max_line: int = MAX_LINE,
    ) -> None:
        self.format = parser.format
        self.is_compressed = is_compressed or form is Form.ARCHIVE
        self.has_common_digests = parser.has_common_digests
        self._tally = LineTally()
        self._parser = parser(self._tally.problems)
        self._objects = parser.read_records(stream, form, self._tally, max_line=max_line)
        self._recognised = 0
        self._duplicates = 0
        self._calls = 0
        self._unknown_tools: Counter[str] = Counter()
        self._started = False

    def __iter__(self) -> Iterator[Event]:
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[list[Event]]:
        """The events in order, in lists of about BATCH_SIZE."""
        if self._started:
            raise RuntimeError("a TranscriptReader can be read once; call read() again with the stream at its start")
        self._started = True
        return self._read()

    @property
    def header(self) -> TranscriptHeader:
        parser = self._parser
        return dataclasses.replace(
            parser.header(), harness=parser.format, started_at=parser.started_at, ended_at=parser.ended_at
        )

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
            problems=tally.problems.as_texts(),
            calls=self._calls,
            unknown_records=min(self._parser.unknown_kinds.total(), tally.lines),
            unknown_calls=self._unknown_tools.total(),
            unknown_kinds=_most_common(self._parser.unknown_kinds),
            unknown_tools=_most_common(self._unknown_tools),
        )

    def _count_calls(self, batch: list[Event]) -> list[Event]:
        """The batch, in which calls of tools that the parser doesn't know are marked; all calls are counted."""
        for index, event in enumerate(batch):
            if type(event) is not ToolCall:
                continue
            self._calls += 1
            if event.clarity is Clarity.OPAQUE and not self._is_custom(event.name):
                name = event.name[:60]
                is_counted = name in self._unknown_tools or len(self._unknown_tools) < MAX_KINDS
                self._unknown_tools[name if is_counted else "others"] += 1
                batch[index] = replace(event, is_known=False)
        return batch

    def _is_custom(self, tool: str) -> bool:
        return tool.startswith("mcp__") or tool in self._parser.custom_tools

    def _read(self) -> Iterator[list[Event]]:
        """Feed the parser each record that was not read before, and yield the events in batches.

        A record was read before if a recent one had the same unique id, or the same text if it has no id.
        """
        parser = self._parser
        recent = RecentKeys()  # not an attribute, so that its memory is free again as soon as the log was read
        batch: list[Event] = []
        size = 0  # bytes of the log
        for source, record in self._objects:
            own_id = parser.identity(record)
            key = shorten_identity(own_id) if own_id else blake2b(source, digest_size=16).digest()
            if recent.check_and_add(key):
                self._duplicates += 1
                self._recognised += 1
                continue
            parser.record_id = parser.shared_identity(record)
            events = parser.feed(record)
            if events is not None:
                self._recognised += 1
                batch += _with_record(events, parser.record_id)
            elif not own_id:
                recent.discard(key)  # so that a repeat counts as unrecognised too
            batch += parser.take_background()
            size += len(source)
            if len(batch) >= BATCH_SIZE or size >= BATCH_BYTES:
                yield self._count_calls(batch)
                batch, size = [], 0
        yield self._count_calls([*batch, *parser.finish(), *parser.take_background()])


def _with_record(events: list[Event], record_id: str) -> list[Event]:
    """The events of a record with its shared identity, unless they have one of their own."""
    if not record_id:
        return events
    return [event if event.record else replace(event, record=record_id) for event in events]


def _most_common(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(name for name, _ in counts.most_common(MAX_NAMED))


def shorten_identity(identity: str) -> str:
    """The identity itself, or its digest if it is longer than MAX_IDENTITY_LENGTH."""
    return identity if len(identity) <= MAX_IDENTITY_LENGTH else blake2b(identity.encode(), digest_size=8).hexdigest()


def digest_json(*values: object) -> str:
    """BLAKE2b digest of JSON values, 16 hexadecimal digits; "" if they are nested too deeply to serialise."""
    try:
        serialised = json.dumps(values, sort_keys=True, ensure_ascii=False)
    except RecursionError:
        return ""
    return blake2b(serialised.encode(errors="surrogatepass"), digest_size=8).hexdigest()
