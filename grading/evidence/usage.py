"""The responses of models that a log records, each with its tokens. They are derived from its bytes and stored beside
them, like its records (`grading.evidence.logs`), so that a session's usage can be added up again without parsing.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from grading import formats
from grading.evidence import store
from grading.formats.events import Boundary, Event, Usage
from grading.formats.own import hash_record_id
from grading.models import Evidence

# Raise it if the same logs would yield other responses.
VERSION: Final = "1"
MAX_RESPONSES: Final = 50_000
MAX_MODELS: Final = 50
MAX_MODEL_NAME: Final = 120
MAX_TOKENS: Final = 100_000_000
"""More tokens of a kind than any response has: a larger count is taken for an error of the log."""
MIN_UNIQUE_ID: Final = 20
"""Providers' ids of messages that are shorter, such as "msg_1", are not unique in the world."""


class ModelResponse(Struct, frozen=True, kw_only=True):
    """One response of a model. `message` is a hash of the provider's id for it, which all copies share, and `record` of
    the log record that it came from; None if the log has none. `at` is a timestamp in seconds.

    `is_known`: its input and output tokens are recorded and possible. The first four counts are disjoint;
    `hour_cache_write_tokens` are a part of `cache_write_tokens`.
    """

    message: int | None
    record: int | None
    model: str
    at: float | None
    speed: str
    is_known: bool
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    hour_cache_write_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUsage:
    """The responses of a log that are its session's own, as the log itself shows. `is_whole`: there are no more."""

    responses: tuple[ModelResponse, ...] = ()
    is_whole: bool = True


class UsageCollector:
    """Passes the events of a log through unchanged while collecting its responses."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events
        self._responses: list[ModelResponse] = []
        self._models: set[str] = set()
        self._is_whole = True

    def events(self) -> Iterator[Event]:
        """The log's events. Read all of them before calling `usage`."""
        for event in self._events:
            if isinstance(event, Usage):
                self._note(event)
            elif isinstance(event, Boundary) and event.kind == "session_change":
                self._responses, self._models, self._is_whole = [], set(), True
            yield event

    def usage(self) -> LogUsage:
        return LogUsage(responses=tuple(self._responses), is_whole=self._is_whole)

    def _note(self, event: Usage) -> None:
        if event.copied:
            return
        model = event.model[:MAX_MODEL_NAME]
        is_new_model = model not in self._models
        if len(self._responses) == MAX_RESPONSES or (is_new_model and len(self._models) == MAX_MODELS):
            self._is_whole = False
            return
        self._models.add(model)
        counts = (event.input_tokens, event.cache_read_tokens, event.cache_write_tokens, event.output_tokens)
        is_recorded = event.input_tokens is not None and event.output_tokens is not None
        is_known = event.is_valid and is_recorded and all((count or 0) <= MAX_TOKENS for count in counts)
        read, cached, written, answered = counts if is_known else (0, 0, 0, 0)
        if is_known and not any(counts):
            return  # a failed call: nothing was used
        response = ModelResponse(
            message=_message_key(event),
            record=hash_record_id(event.record) if event.record else None,
            model=model,
            at=event.at.timestamp() if event.at else None,
            speed=event.speed[:20],
            is_known=is_known,
            input_tokens=read or 0,
            cache_read_tokens=cached or 0,
            cache_write_tokens=written or 0,
            hour_cache_write_tokens=min(event.hour_cache_write_tokens or 0, written or 0),
            output_tokens=answered or 0,
        )
        self._responses.append(response)


def _message_key(event: Usage) -> int | None:
    """A hash of the provider's id of the message, together with its time if the id alone is not unique."""
    if not event.message:
        return None
    when = "" if len(event.message) >= MIN_UNIQUE_ID or event.at is None else event.at.isoformat()
    return hash_record_id(f"message {event.message} {when}".rstrip())


def load_usage(row: Evidence) -> LogUsage:
    """The usage in a log, as stored, or else from its bytes, after which it is stored. None in one of no known format.

    If retention deleted the bytes, it is what an older version of the code stored. Raises Gone if none did, and Damaged
    if the bytes are missing.
    """
    stored = store.derived(row, _stored_name())
    if stored is not None:
        return _deserialize(stored)
    try:
        with store.open(row) as stream:
            collector = UsageCollector(formats.read(stream, row.filename))
            for _event in collector.events():
                pass
    except store.Gone:
        stored = store.derived_before(row, "usage-")
        if stored is None:
            raise
        return _deserialize(stored)
    except (formats.UnknownFormat, formats.EmptyTranscript):
        return LogUsage()
    save_usage(row, collector.usage())
    return collector.usage()


def save_usage(row: Evidence, usage: LogUsage) -> None:
    """Store a log's usage beside its bytes."""
    data = {"whole": usage.is_whole, "responses": [astuple(each) for each in usage.responses]}
    store.keep_derived(row, _stored_name(), json.dumps(data, separators=(",", ":")).encode(errors="replace"))


def _deserialize(stored: bytes) -> LogUsage:
    data = json.loads(stored)
    names = ModelResponse.__struct_fields__
    responses = tuple(ModelResponse(**dict(zip(names, values, strict=True))) for values in data["responses"])
    return LogUsage(responses=responses, is_whole=data["whole"])


def _stored_name() -> str:
    """The name of the stored usage, with the version of the code that derives it."""
    return f"usage-{VERSION}"
