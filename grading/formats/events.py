"""The events of a transcript, in one shape for all harnesses.

Every format module yields these; no code after the parser depends on the harness. `number` counts from 1 in file order
and is what citations refer to. `at` is an aware UTC datetime, or None if the format records no time.

A log has many events, so they are structs of msgspec, which are made several times as fast as frozen dataclasses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

MAX_UNKNOWN = 0.02
"""A larger share of unknown records or calls means that a harness has changed how it writes its logs."""


class Role(StrEnum):
    """Who wrote a message. `SCAFFOLD` is text that the harness injected (system prompt, reminders): never evidence."""

    SCAFFOLD = "scaffold"
    USER = "user"
    ASSISTANT = "assistant"


class Clarity(StrEnum):
    """How much of a tool call we understand.

    `UNDERSTOOD`: we know what it tries to do. `OPAQUE`: well-formed, but its effect is unknown to us (a custom tool or
    one of an MCP server). `UNREADABLE`: a kind we should understand, but couldn't parse (a shell call without a
    command, code with syntax that we don't support).
    """

    UNDERSTOOD = "understood"
    OPAQUE = "opaque"
    UNREADABLE = "unreadable"


class Event(Struct, frozen=True, kw_only=True):
    """`record` is the id of the log record that this event came from; all copies of the record share it. It reveals a
    log that was copied from another session, whatever session id the copy claims. "" if unknown.

    The parser may set the number, the time and the id of a call after the event was made.
    """

    number: int = 0
    at: datetime | None = None
    sidechain: bool = False
    record: str = ""


class Message(Event, frozen=True, kw_only=True):
    role: Role
    text: str
    thinking: bool = False


class ToolCall(Event, frozen=True, kw_only=True):
    """`name` is the harness's own; `kind` is one of shell, write, edit, read, search, web, agent, plan, other.

    `is_known`: the tool is one of the harness's, of an MCP server or otherwise known to be custom. If not, the harness
    may have changed.
    """

    call_id: str = ""
    name: str
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    path: str = ""
    clarity: Clarity = Clarity.UNDERSTOOD
    is_known: bool = True


class ToolResult(Event, frozen=True, kw_only=True):
    """`failed` is None if the log doesn't say whether the call succeeded; `exit_code` is None if unknown."""

    call_id: str = ""
    text: str
    failed: bool | None = None
    exit_code: int | None = None


class Usage(Event, frozen=True, kw_only=True):
    """Tokens of one model response, already deduplicated by message id. None means "not recorded", which is not 0.

    The first four counts are disjoint for every harness: `input_tokens` excludes tokens read from or written to a
    cache. `hour_cache_write_tokens` of the `cache_write_tokens` are cached for an hour. `is_valid`: the log records no
    impossible count. `message` is the provider's id of the response, "" if the log has none; `speed` is the service
    that was ordered ("fast"), "" if not recorded. `copied`: the response belongs to the session before the last change
    of the session, although its event comes after it.
    """

    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    hour_cache_write_tokens: int | None = None
    is_valid: bool = True
    cost_usd: float | None = None
    message: str = ""
    speed: str = ""
    copied: bool = False


class ApiError(Event, frozen=True, kw_only=True):
    """The harness's own model call failed; `reason` is quota, rate_limit, auth, overloaded or other."""

    reason: str
    text: str


class PullRequestLink(Event, frozen=True, kw_only=True):
    """The harness itself recorded a pull request (Claude Code's `pr-link`)."""

    url: str


class Boundary(Event, frozen=True, kw_only=True):
    """`kind` is compaction, subagent_start, subagent_end, end (the harness closed the session), or session_change.

    `session_change`: everything before it belongs to another session (copied by a resume or fork, say), and everything
    after it has the session id in `detail`.
    """

    kind: str
    detail: str = ""


class Background(Event, frozen=True, kw_only=True):
    """Something that the harness recorded beside the conversation. It is neither shown nor cited: its number is that of
    the event before it, and it has no record.
    """


class Setting(Background, frozen=True, kw_only=True):
    """A setting that is in force from here on: harness_version, model, reasoning_effort, permission_mode, repository
    (the URL of the remote), folder (where the session works), or skill (one that is in use).
    """

    name: str
    value: str


class LoadedInstructions(Background, frozen=True, kw_only=True):
    """A file of instructions that the harness gave to the model. `size` is in bytes."""

    name: str
    size: int
    sha256: str


class Interruption(Background, frozen=True, kw_only=True):
    """A person stopped the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptHeader:
    """A transcript's metadata. A field is None if the format doesn't record it.

    `session_id` identifies the session whose log this is; `title` is a short human-readable name of the task;
    `repository` is the URL of the remote; `parent_id` is the session that started this one, if `is_subagent`.
    """

    harness: str = ""
    session_id: str | None = None
    model: str | None = None
    cwd: str | None = None
    branch: str | None = None
    repository: str | None = None
    harness_version: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    title: str | None = None
    is_subagent: bool = False
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseReport:
    """How much of a file was recognised: counts of lines. `coverage` = recognised / lines, 1.0 for an empty file.

    `unknown_records` and `unknown_calls` (of the `calls`) are those of which the reader doesn't know the kind or the
    tool; `unknown_kinds` and `unknown_tools` name some of them.
    """

    lines: int = 0
    recognised: int = 0
    torn_tail: bool = False
    duplicates: int = 0
    not_objects: int = 0
    glued: int = 0
    oversized: int = 0
    invalid_utf8: int = 0
    problems: tuple[str, ...] = ()
    calls: int = 0
    unknown_records: int = 0
    unknown_calls: int = 0
    unknown_kinds: tuple[str, ...] = ()
    unknown_tools: tuple[str, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether the harness seems to write its logs differently from what the reader knows."""
        return is_drifted(self.unknown_records, self.lines) or is_drifted(self.unknown_calls, self.calls)

    @property
    def coverage(self) -> float:
        return 1.0 if self.lines == 0 else round(self.recognised / self.lines, 6)


def is_drifted(unknown: int, total: int) -> bool:
    """Whether so many unknown records or calls of a total mean that a harness has changed.

    >>> is_drifted(2, 100), is_drifted(3, 100), is_drifted(0, 0)
    (False, True, False)
    """
    return unknown > MAX_UNKNOWN * total
