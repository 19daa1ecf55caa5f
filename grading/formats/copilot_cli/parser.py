"""Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`, events `{type, data, id, timestamp, parentId}`.

An assistant's message records its output tokens; the session's last event has the totals of each model. The harness
counts cached tokens as input. It records no price: it is paid for in requests.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from grading.formats.events import ApiError, Boundary, Event, Role, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, FormatTier, Parser, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import ReportedTokens, read_tokens
from grading.formats.values import (
    content_text,
    count_or_none,
    kind_by_name,
    mapping,
    parse_time,
    text,
    text_or_none,
    word_set,
)

TOOLS: Final = ToolTable(
    kinds=kind_by_name(
        {
            "shell": (
                "bash list_bash list_powershell powershell read_bash read_powershell stop_bash stop_powershell "
                "write_bash write_powershell"
            ),
            "write": "create",
            "edit": "apply_patch edit str_replace_editor",
            "read": "show_file view",
            "search": "glob grep lsp rg semantic_code_search",
            "web": "fetch web_fetch web_search",
            "agent": "list_agents read_agent task write_agent",
            "plan": "exit_plan_mode report_intent task_complete update_todo",
        }
    ),
    built_in=word_set("ask_user fetch_copilot_cli_documentation session_store_sql skill sql store_memory"),
    commandless=word_set(
        "list_bash list_powershell read_bash read_powershell stop_bash stop_powershell write_bash write_powershell"
    ),
)
SILENT: Final = word_set(
    "assistant.intent assistant.message_delta assistant.message_start assistant.reasoning assistant.reasoning_delta "
    "assistant.streaming_delta assistant.turn_end assistant.turn_start assistant.usage capabilities.changed "
    "command.completed command.queued external_tool.completed external_tool.requested hook.end hook.progress "
    "hook.start model.call_finished model.call_start pending_messages.modified permission.completed "
    "permission.requested result session.background_tasks_changed session.compaction_start "
    "session.custom_agents_updated session.handoff session.idle session.info session.mcp_server_status_changed "
    "session.mcp_servers_loaded session.mode_changed session.permissions_changed session.plan_changed "
    "session.remote_steerable_changed session.skills_loaded session.snapshot_rewind session.task_complete "
    "session.tools_updated session.truncation session.usage_checkpoint session.usage_info session.warning "
    "session.workspace_file_changed subagent.deselected subagent.selected tool.execution_partial_result "
    "tool.execution_progress tool.user_requested user_input.completed user_input.requested"
)
BOUNDARIES: Final = {
    "session.compaction_complete": "compaction",
    "subagent.completed": "subagent_end",
    "subagent.failed": "subagent_end",
    "subagent.started": "subagent_start",
}
PREFIXES: Final = ("assistant.", "hook.", "model.", "permission.", "session.", "subagent.", "system.", "tool.", "user.")
EXIT_CODE: Final = re.compile(r"<[^<>\n]{0,80}(?:completed|exited) with exit code (-?\d{1,9})>\s{0,20}\Z")
TOKEN_KEYS: Final = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
}


class CopilotCli(Parser):
    format = "copilot-cli"
    title = "Copilot CLI"
    tier = FormatTier.FULL
    logs = "~/.copilot/session-state/<session>/events.jsonl"
    folders = (".copilot/session-state",)
    samples, sources = 9, 1

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._session: dict[str, str] = {}
        self._title: str | None = None
        self._chosen_model = ""
        self._reported: defaultdict[str, ReportedTokens] = defaultdict(ReportedTokens)
        """The tokens of each model in usage events so far."""

    @staticmethod
    def score(record: Record) -> float:
        kind = text(record.get("type"))
        if not isinstance(record.get("data"), dict) or not kind.startswith(PREFIXES):
            return NO
        return SURE if {"id", "timestamp", "parentId"} <= record.keys() else LIKELY

    def identity(self, record: Record) -> str:
        return text(record.get("id"))

    def feed(self, record: Record) -> list[Event] | None:
        kind, data = text(record.get("type")), mapping(record.get("data"))
        at = self.note_time(parse_time(record.get("timestamp")))
        side = bool(data.get("parentToolCallId"))
        if kind in SILENT:
            return []
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self._note_session(data)
            return []
        if kind in ("session.model_change", "session.auto_mode_resolved"):
            self._chosen_model = text(data.get("newModel")) or text(data.get("chosenModel")) or self._chosen_model
            self.note_setting("model", self._chosen_model)
            self.note_setting("reasoning_effort", data.get("reasoningEffort"))
            return []
        if kind == "session.title_changed":
            self._title = text_or_none(data.get("title"))
            return []
        if kind == "skill.invoked":
            self.note_setting("skill", data.get("name"))
            return []
        if kind == "abort":
            self.note_interruption()
            return []
        events = self._events(kind, data, at, side=side)
        if events is None:
            self.note_unknown(kind)
            return None
        return list(events)

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            session_id=self._session.get("id"),
            model=self.model or self._chosen_model or None,
            cwd=self._session.get("cwd"),
            branch=self._session.get("branch"),
            repository=self._session.get("repository"),
            harness_version=self._session.get("version"),
            title=self._title,
        )

    def _note_session(self, data: Record) -> None:
        """Note the session's id, version and place; the first value of each counts for the header."""
        context = mapping(data.get("context")) or data
        fields = {
            "id": data.get("sessionId"),
            "version": data.get("copilotVersion"),
            "cwd": context.get("cwd"),
            "branch": context.get("branch"),
            "repository": context.get("repository"),
        }
        for name, value in fields.items():
            if isinstance(value, str) and value:
                self._session.setdefault(name, value)
        self._chosen_model = text(data.get("selectedModel")) or self._chosen_model
        self.note_setting("harness_version", data.get("copilotVersion"))
        self.note_setting("folder", context.get("cwd"))
        self.note_setting("repository", context.get("repository"))
        self.note_setting("reasoning_effort", data.get("reasoningEffort"))

    def _events(self, kind: str, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event] | None:
        """Events of the conversation, and of failures and boundaries; None if the kind is unknown."""
        readers = {
            "assistant.message": self._assistant,
            "session.error": self._error,
            "session.shutdown": self._shutdown,
            "system.message": self._system,
            "system.notification": self._system,
            "tool.execution_complete": self._result,
            "tool.execution_start": self._call,
            "user.message": self._user,
        }
        if kind in readers:
            return readers[kind](data, at, side=side)
        if kind not in BOUNDARIES:
            return None
        detail = text(data.get("agentName"))[:200]
        return iter([Boundary(number=self.next_number(), at=at, kind=BOUNDARIES[kind], detail=detail)])

    def _user(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        """Messages of what a person wrote; what an agent or a skill sent is injected."""
        is_injected = text(data.get("source")) not in ("", "user")
        yield from self.build_user_messages(text(data.get("content")), at, injected=is_injected, side=side)

    def _assistant(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        """Events of a response: its reasoning, its text and its output tokens. Its calls are events of their own."""
        yield from self.build_messages(Role.ASSISTANT, text(data.get("reasoningText")), at, thinking=True, side=side)
        yield from self.build_messages(Role.ASSISTANT, text(data.get("content")), at, side=side)
        model = text(data.get("model")) or self._chosen_model
        if not side:
            self.count_response(model)
        tokens = ReportedTokens(output_tokens=count_or_none(data.get("outputTokens")))
        if not tokens.is_empty:
            self._reported[model] = self._reported[model].plus(tokens)
            message = text(data.get("apiCallId")) or text(data.get("messageId"))
            yield self.build_usage(tokens, model=model, at=at, sidechain=side, message=message)

    def _call(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        name = text(data.get("toolName"))
        if server := text(data.get("mcpServerName")):
            name = f"mcp__{server}__{text(data.get('mcpToolName')) or name}"
        call = TOOLS.read_call(name, data.get("arguments"), text(data.get("toolCallId")))
        yield self.build_call(call, at, side=side)

    def _result(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        """A call's result. The harness calls any command that ran a success, so a shell's exit code is read, too."""
        result, error = mapping(data.get("result")), mapping(data.get("error"))
        output = content_text(result.get("content")) or text(error.get("message"))
        match = EXIT_CODE.search(output[-200:])
        exit_code = int(match[1]) if match else None
        success = data.get("success")
        failed = None
        if isinstance(success, bool):
            failed = not success or bool(exit_code)
        yield self.build_result(text(data.get("toolCallId")), output, at, failed=failed, exit_code=exit_code, side=side)

    def _system(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        yield from self.build_messages(Role.SCAFFOLD, text(data.get("content")), at, side=side)

    def _error(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        message = text(data.get("message"))
        reason = failure_reason(f"{text(data.get('errorType'))} {message}", count_or_none(data.get("statusCode")))
        yield ApiError(number=self.next_number(), at=at, sidechain=side, reason=reason, text=message)

    def _shutdown(self, data: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        """The tokens in the session's totals that no message reported, by model, and the end."""
        for model, metrics in mapping(data.get("modelMetrics")).items():
            usage = mapping(mapping(metrics).get("usage"))
            named = {TOKEN_KEYS[key]: value for key, value in usage.items() if key in TOKEN_KEYS}
            total = read_tokens(named, self.problems, input_has_cached=True)
            unreported = total.minus(self._reported[model])
            self._reported[model] = self._reported[model].maximum(total)
            if not unreported.is_empty:
                yield self.build_usage(unreported, model=model, at=at)
        yield Boundary(
            number=self.next_number(), at=at, sidechain=side, kind="end", detail=text(data.get("shutdownType"))[:200]
        )
