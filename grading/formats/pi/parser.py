"""pi, and OpenClaw, which is built on it: `~/.pi/agent/sessions/…/*.jsonl`, entries of a tree in the order of time."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from grading.formats.blocks import BlockParser
from grading.formats.events import ApiError, Boundary, Event, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import select_tokens
from grading.formats.values import (
    content_text,
    exit_code_or_none,
    kind_by_name,
    mapping,
    parse_time,
    text,
    text_or_none,
    usd_or_none,
    word_set,
)

TYPES: Final = word_set(
    "branch_summary compaction custom custom_message label message model_change session session_info "
    "thinking_level_change"
)
SILENT: Final = word_set("custom label session_info")
EXIT_CODE: Final = re.compile(r"Command exited with code (-?\d{1,9})\)?\s{0,5}\Z")
MAX_END: Final = 100


class Pi(BlockParser):
    format = "pi"
    title = "pi or OpenClaw"
    logs = "~/.pi/agent/sessions/**/*.jsonl; ~/.openclaw/agents/*/sessions/*.jsonl"
    folders = (".pi/agent/sessions", ".openclaw/agents")
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "bash exec process run_terminal",
                "write": "write",
                "edit": "apply_patch edit edit_file",
                "read": "read",
                "search": "find grep ls",
                "web": "browser web_fetch web_search",
                "agent": "sessions_send sessions_spawn",
            }
        ),
        built_in=word_set("cron gateway image memory_get memory_search message nodes session_status sessions_list tts"),
        commandless=word_set("process"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._session: Record = {}

    @staticmethod
    def score(record: Record) -> float:
        kind = text(record.get("type"))
        if kind == "session":
            return SURE if {"id", "timestamp", "cwd"} <= record.keys() and "data" not in record else NO
        has_place = {"id", "parentId", "timestamp"} <= record.keys()
        if kind not in TYPES or not has_place or (isinstance(record.get("data"), dict) and kind != "custom"):
            return NO
        return LIKELY

    def identity(self, record: Record) -> str:
        return text(record.get("id"))

    def shared_identity(self, record: Record) -> str:
        # An entry's id is short and unique in its session only.
        return self.chain_identity(record)

    def feed(self, record: Record) -> list[Event] | None:
        kind, at = text(record.get("type")), self.note_time(parse_time(record.get("timestamp")))
        if kind == "session":
            self._session = record
            self.note_setting("folder", record.get("cwd"))
        elif kind == "model_change":
            self.note_setting("model", record.get("modelId"))
        elif kind == "thinking_level_change":
            self.note_setting("reasoning_effort", record.get("thinkingLevel"))
        elif kind == "message":
            return list(self._message(mapping(record.get("message")), at))
        elif kind in ("compaction", "branch_summary"):
            boundary = Boundary(number=self.next_number(), at=at, kind="compaction")
            return [boundary, *self.text_events("system", text(record.get("summary")), at)]
        elif kind == "custom_message":
            return list(self.content_events("system", record.get("content"), at))
        elif kind not in SILENT:
            self.note_unknown(kind)
            return None
        return []

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            session_id=text_or_none(self._session.get("id")),
            model=self.model or self._settings.get("model"),
            cwd=text_or_none(self._session.get("cwd")),
        )

    def _message(self, message: Record, at: datetime | None) -> Iterator[Event]:
        """Events of a message by its role; after an assistant's, its usage and the error that ended it."""
        role = text(message.get("role"))
        if role == "toolResult":
            # OpenClaw records a command's exit code beside the text, too, and calls any that ran a success.
            code = exit_code_or_none(mapping(message.get("details")).get("exitCode"))
            match = EXIT_CODE.search(content_text(message.get("content"))[-MAX_END:]) if code is None else None
            code = int(match[1]) if match else code
            outcome = {"exitCode": code, "isError": True} if code else {"exitCode": code}
            yield from self.content_events("tool", {**message, **outcome, "type": "toolResult"}, at)
        elif role == "bashExecution":  # a command that the person ran
            command, output = text(message.get("command")), text(message.get("output"))
            code = exit_code_or_none(message.get("exitCode"))
            yield from self.text_events("system", f"$ {command}\n{output}\nexit code {code}", at)
        else:
            yield from self.content_events(role, message.get("content"), at)
        if role != "assistant":
            return
        model, usage = text(message.get("model")), mapping(message.get("usage"))
        self.count_response(model)
        tokens = select_tokens(usage, "input", "output", "cacheRead", "cacheWrite")
        cost = usd_or_none(mapping(usage.get("cost")).get("total"))
        if not tokens.is_empty or cost:
            yield self.build_usage(tokens, model=model, at=at, cost=cost, message=text(message.get("responseId")))
        if message.get("stopReason") == "aborted":
            self.note_interruption()
        elif message.get("stopReason") == "error":
            error = content_text(message.get("errorMessage"))
            yield ApiError(number=self.next_number(), at=at, reason=failure_reason(error), text=error)
