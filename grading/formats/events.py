"""One shape for all harnesses: what a transcript says happened, in order.

Every format module yields these records; nothing after the parser knows which harness wrote them. `number` counts
from 1 in the order of the file and is what citations refer to. `at` is an aware UTC datetime, or None where the format
has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who speaks. `SCAFFOLD` is text the harness injected (system prompt, nudges, reminders): never evidence."""

    SCAFFOLD = "scaffold"
    USER = "user"
    ASSISTANT = "assistant"


class Clarity(StrEnum):
    """How much of a tool call we can read.

    `UNDERSTOOD`: what it sets out to do is known. `OPAQUE`: well-formed, but its effect is unknown to us (a tool of a
    server, a custom tool). `UNREADABLE`: it should say what it does, and could not be read (a shell call whose command
    could not be found, code that could not be parsed).
    """

    UNDERSTOOD = "understood"
    OPAQUE = "opaque"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`record` identifies the log's own record that this event came from, the same in every copy of it: by it a log
    copied from another session is recognised, whatever session id the copy claims. Empty where unknown.
    """

    number: int
    at: datetime | None = None
    sidechain: bool = False
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Event):
    role: Role
    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Event):
    """`name` is the harness's own; `kind` is ours: shell, write, edit, read, search, web, agent, plan or other."""

    call_id: str
    name: str
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    path: str = ""
    clarity: Clarity = Clarity.UNDERSTOOD


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Event):
    """`failed` is None where the format does not say whether the call worked. `exit_code` where it is known."""

    call_id: str
    text: str
    failed: bool | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Event):
    """Tokens of one model response, already deduplicated by message id. None is "not recorded", never 0.

    The four counts are disjoint for every harness: `input_tokens` are those neither read from nor written to a cache.
    """

    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiError(Event):
    """The harness's own model call failed: `reason` is quota, rate_limit, auth, overloaded or other."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestLink(Event):
    """The harness itself recorded a pull request (Claude Code's `pr-link`)."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(Event):
    """`kind` is compaction, subagent_start, subagent_end, end (the harness closed the session), or session_change.

    `session_change`: what came before in this log is another session's (copied by a resume or fork, say); what follows
    stands under the id in `detail` (L11).
    """

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptHeader:
    """What a transcript says of itself. Every field is None where the format does not carry it.

    `session_id` identifies the session whose log this is; `title` is a short human name of the task. `repository` is
    the address of the remote. `parent_id`: the session that started this one, where `is_subagent`.
    """

    harness: str
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
    """How much of the file was understood. `coverage` = recognised / lines in [0, 1]; 1.0 for an empty file."""

    lines: int = 0
    recognised: int = 0
    torn_tail: bool = False
    duplicates: int = 0
    not_objects: int = 0
    glued: int = 0
    oversized: int = 0
    invalid_utf8: int = 0
    problems: tuple[str, ...] = ()

    @property
    def coverage(self) -> float:
        return 1.0 if self.lines == 0 else round(self.recognised / self.lines, 6)
