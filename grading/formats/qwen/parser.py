"""Qwen Code: `~/.qwen/projects/…/chats/<session>.jsonl`. Lines are linked like Claude Code's, contents are Gemini's."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from grading.formats.blocks import BlockParser
from grading.formats.events import Boundary, Event, Role, TranscriptHeader
from grading.formats.gemini_cli.outputs import read_output
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Record, shorten_identity
from grading.formats.tools import ToolTable
from grading.formats.usage import ReportedTokens
from grading.formats.values import (
    content_text,
    count_or_none,
    kind_by_name,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    word_set,
)

TYPES: Final = word_set("assistant system tool_result user")


class Qwen(BlockParser):
    format = "qwen"
    title = "Qwen Code"
    logs = "~/.qwen/projects/<project>/chats/*.jsonl"
    folders = (".qwen/projects",)
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "run_shell_command",
                "write": "write_file",
                "edit": "edit replace",
                "read": "read_file read_many_files",
                "search": "glob grep_search list_directory search_file_content",
                "web": "web_fetch web_search",
                "agent": "task",
                "plan": "exit_plan_mode todo_write",
            }
        ),
        built_in=word_set("lsp save_memory skill"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._fields: dict[str, str] = {}

    @staticmethod
    def score(record: Record) -> float:
        if text(record.get("type")) not in TYPES or not {"uuid", "sessionId", "timestamp"} <= record.keys():
            return NO
        if isinstance(mapping(record.get("message")).get("parts"), list):
            return SURE
        return LIKELY if "systemPayload" in record else NO

    def identity(self, record: Record) -> str:
        return text(record.get("uuid"))

    def shared_identity(self, record: Record) -> str:
        return shorten_identity(self.identity(record))

    def feed(self, record: Record) -> list[Event] | None:
        kind, at = text(record.get("type")), self.note_time(parse_time(record.get("timestamp")))
        for name in ("sessionId", "cwd", "version", "gitBranch"):
            if text(record.get(name)):
                self._fields.setdefault(name, record[name])
        self.note_setting("harness_version", record.get("version"))
        self.note_setting("folder", record.get("cwd"))
        if kind == "system":
            is_compaction = record.get("subtype") == "chat_compression"
            return [Boundary(number=self.next_number(), at=at, kind="compaction")] if is_compaction else []
        if kind not in TYPES:
            self.note_unknown(kind)
            return None
        events: list[Event] = []
        for part in mappings(mapping(record.get("message")).get("parts")):
            events += self._part(part, kind, at)
        return [*events, *self._usage(record, at)] if kind == "assistant" else events

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            session_id=self._fields.get("sessionId"),
            model=self.model,
            cwd=self._fields.get("cwd"),
            branch=self._fields.get("gitBranch"),
            harness_version=self._fields.get("version"),
        )

    def _part(self, part: Record, kind: str, at: datetime | None) -> Iterator[Event]:
        """Events of a part of a message: a thought or text, a call and a result. `kind` is the record's type."""
        if part.get("thought") is True:
            yield from self.build_messages(Role.ASSISTANT, text(part.get("text")), at, thinking=True)
        else:
            yield from self.text_events(kind, text(part.get("text")), at)
        if call := mapping(part.get("functionCall")):
            call_id = text(call.get("id")) or text(call.get("name"))
            yield self.build_call(self.tools.read_call(text(call.get("name")), call.get("args"), call_id), at)
        if response := mapping(part.get("functionResponse")):
            fields = mapping(response.get("response"))
            output = content_text(fields.get("output")) or content_text(fields.get("error"))
            name, has_failed, exit_code = text(response.get("name")), False, None
            if self.tools.kinds.get(name) == "shell":
                output, has_failed, exit_code = read_output(output)
            failed, call_id = has_failed or "error" in fields, text(response.get("id")) or name
            yield self.build_result(call_id, output, at, failed=failed, exit_code=exit_code)

    def _usage(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """The usage of a response: thoughts are output, and cached tokens are taken off the prompt's."""
        usage, model = mapping(record.get("usageMetadata")), text_or_none(record.get("model")) or ""
        self.count_response(model)
        output, thoughts = (count_or_none(usage.get(f"{name}TokenCount")) for name in ("candidates", "thoughts"))
        tokens = ReportedTokens(
            input_tokens=count_or_none(usage.get("promptTokenCount")),
            output_tokens=None if output is None else output + (thoughts or 0),
            cache_read_tokens=count_or_none(usage.get("cachedContentTokenCount")),
        ).without_cached_input()
        if not tokens.is_empty:
            yield self.build_usage(tokens, model=model, at=at)
