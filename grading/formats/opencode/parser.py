"""OpenCode: one JSON document for each session, as `opencode export` writes it: `{info, messages: [{info, parts}]}`.

OpenCode itself keeps sessions in a database, and before version 1.2 in many small files; `grading/intake/opencode.py`
exports both. A message is one response of the model with its tool calls and their results.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from grading.formats.events import ApiError, Boundary, Event, Role, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Form, FormatTier, Parser, Recogniser, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import ReportedTokens
from grading.formats.values import (
    count_or_none,
    exit_code_or_none,
    items,
    kind_by_name,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    usd_or_none,
    word_set,
)

TOOLS: Final = ToolTable(
    kinds=kind_by_name(
        {
            "shell": "bash shell",
            "write": "write",
            "edit": "apply_patch edit multiedit patch",
            "read": "read",
            "search": "codesearch glob grep list ls lsp lsp_diagnostics lsp_hover",
            "web": "webfetch websearch",
            "agent": "task",
            "plan": "plan_enter plan_exit todoread todowrite",
        }
    ),
    built_in=word_set("batch invalid question skill"),
)
SILENT_PARTS: Final = word_set("agent file patch snapshot step-finish step-start subtask")


class OpenCode(Parser):
    format = "opencode"
    title = "OpenCode"
    tier = FormatTier.FULL
    logs = "~/.local/share/opencode/opencode.db; ~/.local/share/opencode/storage; opencode export"
    folders = (".local/share/opencode",)
    samples, sources = 10, 1
    forms = frozenset({Form.DOCUMENT})
    paths = frozenset({"info", "messages.item"})

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._info: Record = {}
        self._cwd: str | None = None

    @staticmethod
    def score_document(document: Any) -> float:
        info = mapping(mapping(document).get("info"))
        is_session = {"id", "time"} <= info.keys() and bool({"directory", "projectID"} & info.keys())
        if not is_session:
            return NO
        return SURE if isinstance(mapping(document).get("messages"), list) else LIKELY

    def feed(self, record: Record) -> list[Event] | None:
        value = mapping(record.get("value"))
        if record.get("path") == "info":
            self._info = value
            self._note_session(value)
            return []
        info = mapping(value.get("info"))
        role = text(info.get("role"))
        if role not in ("assistant", "user"):
            self.note_unknown(f"role {role}")
            return None
        at = self.note_time(parse_time(mapping(info.get("time")).get("created")))
        if role == "assistant":
            return list(self._assistant(info, mappings(value.get("parts")), at))
        return list(self._user(mappings(value.get("parts")), at))

    def shared_identity(self, record: Record) -> str:
        return text(mapping(mapping(record.get("value")).get("info")).get("id"))

    def header(self) -> TranscriptHeader:
        parent = text_or_none(self._info.get("parentID"))
        return TranscriptHeader(
            session_id=text_or_none(self._info.get("id")),
            model=self.model,
            cwd=text_or_none(self._info.get("directory")) or self._cwd,
            harness_version=text_or_none(self._info.get("version")),
            title=text_or_none(self._info.get("title")),
            is_subagent=parent is not None,
            parent_id=parent,
        )

    def _note_session(self, info: Record) -> None:
        self.note_time(parse_time(mapping(info.get("time")).get("created")))
        self.note_setting("harness_version", info.get("version"))
        self.note_setting("folder", info.get("directory"))

    def _user(self, parts: list[Record], at: datetime | None) -> Iterator[Event]:
        """Messages of what a person wrote, and of what the harness added to it."""
        for part in parts:
            kind = text(part.get("type"))
            if kind == "text":
                is_injected = part.get("synthetic") is True
                yield from self.build_user_messages(text(part.get("text")), at, injected=is_injected)
            else:
                yield from self._other_part(part, kind, at)

    def _assistant(self, info: Record, parts: list[Record], at: datetime | None) -> Iterator[Event]:
        """Events of a response: its parts, its usage, and the error that ended it."""
        self._cwd = self._cwd or text_or_none(mapping(info.get("path")).get("cwd"))
        for part in parts:
            kind = text(part.get("type"))
            if kind in ("text", "reasoning"):
                role = Role.SCAFFOLD if part.get("synthetic") is True else Role.ASSISTANT
                yield from self.build_messages(role, text(part.get("text")), at, thinking=kind == "reasoning")
            elif kind == "tool":
                yield from self._tool(part, at)
            else:
                yield from self._other_part(part, kind, at)
        model, tokens = text(info.get("modelID")), _read_tokens(mapping(info.get("tokens")))
        cost = usd_or_none(info.get("cost"))
        self.count_response(model)
        self.note_setting("reasoning_effort", info.get("variant"))
        if not tokens.is_empty or cost:
            yield self.build_usage(tokens, model=model, at=at, cost=cost, message=text(info.get("id")))
        yield from self._error(mapping(info.get("error")), at)
        self.note_time(parse_time(mapping(info.get("time")).get("completed")))

    def _tool(self, part: Record, at: datetime | None) -> Iterator[Event]:
        """A call, and its result if it has ended."""
        state = mapping(part.get("state"))
        times = mapping(state.get("time"))
        call_id, status = text(part.get("id")) or text(part.get("callID")), text(state.get("status"))
        call = TOOLS.read_call(text(part.get("tool")), state.get("input"), call_id)
        yield self.build_call(call, self.note_time(parse_time(times.get("start"))) or at)
        if status not in ("completed", "error"):
            return
        metadata = mapping(state.get("metadata"))
        exit_code = exit_code_or_none(metadata.get("exit"))
        was_killed = "exit" in metadata and metadata["exit"] is None
        failed = status == "error" or was_killed or bool(exit_code)
        output = text(state.get("output")) or text(state.get("error"))
        ended_at = self.note_time(parse_time(times.get("end"))) or at
        yield self.build_result(call_id, output, ended_at, failed=failed, exit_code=exit_code)

    def _other_part(self, part: Record, kind: str, at: datetime | None) -> Iterator[Event]:
        if kind == "compaction":
            yield Boundary(number=self.next_number(), at=at, kind="compaction")
        elif kind == "retry":
            yield from self._error(mapping(part.get("error")), at)
        elif kind not in SILENT_PARTS:
            self.note_unknown(f"part/{kind}")

    def _error(self, error: Record, at: datetime | None) -> Iterator[Event]:
        """A failed model call; an abortion by a person is an interruption."""
        if not error:
            return
        name, data = text(error.get("name")), mapping(error.get("data"))
        if name == "MessageAbortedError":
            self.note_interruption()
            return
        message = text(data.get("message")) or name
        reason = failure_reason(f"{name} {message}", count_or_none(data.get("statusCode")))
        yield ApiError(number=self.next_number(), at=at, reason=reason, text=message)


def _read_tokens(tokens: Record) -> ReportedTokens:
    """A response's tokens. OpenCode's input excludes cached tokens, and its output includes reasoning."""
    cache = mapping(tokens.get("cache"))
    return ReportedTokens(
        input_tokens=count_or_none(tokens.get("input")),
        output_tokens=count_or_none(tokens.get("output")),
        cache_read_tokens=count_or_none(cache.get("read")),
        cache_write_tokens=count_or_none(cache.get("write")),
    )


class OpenCodeDatabase(Recogniser):
    """OpenCode's database of all its sessions."""

    format = "opencode-database"
    title = "OpenCode database"
    reason = "an OpenCode database with many sessions; import its folder with the command import_sessions"

    @staticmethod
    def score_bytes(head: bytes) -> tuple[float, Form]:
        is_database = head.startswith(b"SQLite format 3\x00") and b"session_id" in head and b"part" in head
        return (SURE if is_database else NO), Form.ARCHIVE


class OpenCodeStorage(Recogniser):
    """One of the files in which OpenCode kept its sessions before version 1.2."""

    format = "opencode-storage"
    title = "OpenCode storage"
    reason = "one part of an OpenCode session; import the folder `storage` with the command import_sessions"

    @staticmethod
    def score_document(document: Any) -> float:
        fields = mapping(document).keys()
        is_session = {"id", "projectID", "directory", "time"} <= fields
        is_message = {"id", "sessionID", "role", "time"} <= fields
        is_part = {"id", "sessionID", "messageID", "type"} <= fields
        return SURE if (is_session or is_message or is_part) and not items(mapping(document).get("messages")) else NO
