"""Kimi Code: `~/.kimi-code/sessions/…/agents/<agent>/wire.jsonl`, of protocol 1.4.

A prompt is logged as it was typed (`turn.prompt`) and as a message of the context; the message counts. A session's id
is the folder's name.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from grading.formats.blocks import BlockParser
from grading.formats.events import Boundary, Event, TranscriptHeader
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import select_tokens
from grading.formats.values import (
    content_text,
    kind_by_name,
    mapping,
    parse_time,
    text,
    text_or_none,
    word_set,
)

SILENT: Final = word_set(
    "full_compaction.begin full_compaction.complete llm.request llm.tools_snapshot metadata "
    "permission.record_approval_result plan_mode.enter plan_mode.exit tools.set_active_tools turn.cancel turn.prompt "
    "usage.record"
)
EXIT_CODE: Final = re.compile(r"^Command failed with exit code: (-?\d{1,9})\.\s{0,5}\Z", re.MULTILINE)
TASK_EXIT_CODE: Final = re.compile(r"^exit_code: (-?\d{1,9})$", re.MULTILINE)
SILENT_EVENTS: Final = word_set("step.begin")
PREFIXES: Final = (
    "config.",
    "context.",
    "full_compaction.",
    "goal.",
    "llm.",
    "permission.",
    "plan_mode.",
    "tools.",
    "turn.",
    "usage.",
)


class Kimi(BlockParser):
    format = "kimi"
    title = "Kimi Code"
    logs = "~/.kimi-code/sessions/**/wire.jsonl"
    folders = (".kimi-code/sessions",)
    has_common_digests = True
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "Bash Shell",
                "write": "Write WriteFile",
                "edit": "Edit StrReplaceFile",
                "read": "Read ReadFile ReadMediaFile",
                "search": "Glob Grep",
                "web": "FetchURL SearchWeb WebSearch",
                "agent": "Agent AgentSwarm Task TaskList TaskOutput TaskStop",
                "plan": "CreateGoal EnterPlanMode ExitPlanMode GetGoal SetGoalBudget SetTodoList TodoList UpdateGoal",
            }
        ),
        built_in=word_set("AskUserQuestion CronCreate CronDelete CronList Skill Think"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._cwd: str | None = None
        self._version: str | None = None
        self._model = ""

    @staticmethod
    def score(record: Record) -> float:
        kind = text(record.get("type"))
        if kind == "metadata":
            return SURE if "protocol_version" in record else NO
        return LIKELY if kind.startswith(PREFIXES) and "time" in record and "data" not in record else NO

    def feed(self, record: Record) -> list[Event] | None:
        kind, at = text(record.get("type")), self.note_time(parse_time(record.get("time", record.get("created_at"))))
        if kind == "metadata":
            self._version = text_or_none(record.get("protocol_version"))
        elif kind == "config.update":
            self._cwd = self._cwd or text_or_none(record.get("cwd"))
            self._model = text(record.get("modelAlias")) or self._model
            self.note_setting("model", record.get("modelAlias"))
            self.note_setting("reasoning_effort", record.get("thinkingEffort"))
            self.note_setting("folder", record.get("cwd"))
        elif kind == "context.append_message":
            message = mapping(record.get("message"))
            injected = mapping(message.get("origin")).get("kind", "user") != "user"
            return list(self.content_events(text(message.get("role")), message.get("content"), at, injected=injected))
        elif kind == "context.append_loop_event":
            return self._loop_event(mapping(record.get("event")), at)
        elif kind == "context.apply_compaction":
            boundary = Boundary(number=self.next_number(), at=at, kind="compaction")
            return [boundary, *self.text_events("system", text(record.get("summary")), at)]
        elif kind not in SILENT:
            self.note_unknown(kind)
            return None
        return []

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record)

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            model=self._model or None,
            cwd=self._cwd,
            harness_version=None if self._version is None else f"protocol {self._version}",
        )

    def _loop_event(self, event: Record, at: datetime | None) -> list[Event] | None:
        """Events of a step of the model: a part of its answer, a call, a result, or its usage."""
        kind, call_id = text(event.get("type")), text(event.get("toolCallId"))
        if kind == "content.part":
            return list(self.content_events("assistant", event.get("part"), at))
        if kind == "tool.call":
            return [self.build_call(self.tools.read_call(text(event.get("name")), event.get("args"), call_id), at)]
        if kind == "tool.result":
            result = mapping(event.get("result"))
            failed = result.get("isError", result.get("is_error")) is True
            output = content_text(result.get("output"))
            match = EXIT_CODE.search(output[-200:]) or (TASK_EXIT_CODE.search(output[:500]) if not failed else None)
            code = int(match[1]) if match else None
            return [self.build_result(call_id, output, at, failed=failed, exit_code=code)]
        if kind == "step.end":
            return list(self._usage(event, at))
        if kind not in SILENT_EVENTS:
            self.note_unknown(f"event {kind}")
            return None
        return []

    def _usage(self, event: Record, at: datetime | None) -> Iterator[Event]:
        """The usage of a step; none if it records no tokens."""
        usage = mapping(event.get("usage"))
        tokens = select_tokens(usage, "inputOther", "output", "inputCacheRead", "inputCacheCreation")
        if not tokens.is_empty:
            yield self.build_usage(tokens, model=self._model, at=at, message=text(event.get("messageId")))
