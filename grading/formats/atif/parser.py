"""ATIF (Agent Trajectory Interchange Format) 1.4 to 1.8: one JSON document, into which other harnesses are converted.

Which harness really ran is in `agent`. Prompt tokens include cached tokens, and a step's metrics are its own.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from grading.formats.blocks import BlockParser
from grading.formats.events import Event, Role, ToolCall, TranscriptHeader
from grading.formats.gemini_cli.outputs import read_output as read_gemini_output
from grading.formats.lines import Problems
from grading.formats.mini_swe_agent.outputs import read_output as read_mini_output
from grading.formats.reader import NO, SURE, Form, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import select_tokens
from grading.formats.values import (
    content_text,
    kind_by_name,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    usd_or_none,
    word_set,
)

VERSION: Final = re.compile(r"ATIF-v1\.\d{1,3}")
EXIT_CODE: Final = re.compile(r"Exit code (\d{1,9})\b")
FAILED: Final = "[error] tool reported failure"
"""How Harbor ends the output of a call of Claude Code that failed."""
TOTALS: Final = {"total_prompt_tokens": "prompt_tokens", "total_completion_tokens": "completion_tokens"}


class Atif(BlockParser):
    format = "atif"
    title = "ATIF"
    logs = "trajectory.json of a Harbor trial, versions 1.4 to 1.8"
    forms = frozenset({Form.DOCUMENT})
    paths = frozenset({"schema_version", "session_id", "agent", "steps.item", "final_metrics"})
    has_common_digests = True
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "Bash bash bash_command exec exec_command execute_bash run_shell_command shell shell_command",
                "write": "Write create write write_file",
                "edit": "Edit MultiEdit apply_patch edit replace str_replace_editor",
                "read": "Read read read_file view",
                "search": "Glob Grep LS glob grep list_dir ls",
                "web": "WebFetch WebSearch web_fetch web_search",
                "agent": "Agent Task task",
                "plan": "TodoWrite update_plan write_todos",
            }
        ),
        built_in=word_set("mark_task_complete"),
        commandless=word_set("bash_command"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._agent: Record = {}
        self._session_id: str | None = None
        self._has_usage = False

    @staticmethod
    def score_document(document: Any) -> float:
        version = text(mapping(document).get("schema_version"))
        return SURE if VERSION.match(version) else NO

    def feed(self, record: Record) -> list[Event] | None:
        path, value = record.get("path"), record.get("value")
        if path == "session_id":
            self._session_id = text_or_none(value)
        elif path == "agent":
            self._agent = mapping(value)
            self.note_setting("model", self._agent.get("model_name"))
            self.note_setting("harness_version", self._agent.get("version"))
        elif path == "final_metrics" and not self._has_usage:
            metrics = mapping(value)
            totals = {name: metrics.get(total) for total, name in TOTALS.items()}
            totals |= {"cached_tokens": metrics.get("total_cached_tokens"), "cost_usd": metrics.get("total_cost_usd")}
            return list(self._usage(totals, text(self._agent.get("model_name")), None))
        elif path == "steps.item":
            return list(self._step(mapping(value)))
        return []

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record.get("value"))

    def header(self) -> TranscriptHeader:
        name, version = text(self._agent.get("name")), text(self._agent.get("version"))
        return TranscriptHeader(
            session_id=self._session_id,
            model=self.model or text_or_none(self._agent.get("model_name")),
            harness_version=f"{name} {version}".strip() or None,
        )

    def _step(self, step: Record) -> Iterator[Event]:
        """Events of a step: its reasoning, its message, its calls with their results, and its usage."""
        at = self.note_time(parse_time(step.get("timestamp")))
        source, message = text(step.get("source")), content_text(step.get("message"))
        yield from self.build_messages(Role.ASSISTANT, text(step.get("reasoning_content")), at, thinking=True)
        yield from self.text_events("assistant" if source == "agent" else source, message, at)
        calls = self._calls(step)
        for call in calls:
            yield self.build_call(call, at)
        unanswered = {call.call_id: call.name for call in calls}
        for result in mappings(mapping(step.get("observation")).get("results")):
            call_id = text(result.get("source_call_id")) or next(iter(unanswered), "")  # else they are in order
            tool = unanswered.pop(call_id, "")
            output, failed, exit_code = _read_output(tool, content_text(result.get("content")))
            yield self.build_result(call_id, output, at, failed=failed, exit_code=exit_code)
        if source == "agent":
            model = text(step.get("model_name")) or text(self._agent.get("model_name"))
            self.count_response(model)
            yield from self._usage(mapping(step.get("metrics")), model, at)

    def _calls(self, step: Record) -> list[ToolCall]:
        """The calls of a step.

        Terminus types all commands of a step into one terminal, whose output is one result: they are one call.
        """
        calls: list[ToolCall] = []
        typed: list[str] = []
        for item in mappings(step.get("tool_calls")):
            name, call_id = text(item.get("function_name")), text(item.get("tool_call_id"))
            call = self.tools.read_call(name, item.get("arguments"), call_id)
            if "keystrokes" in call.arguments:
                typed.append(text(call.arguments["keystrokes"]).rstrip("\n"))
            if "keystrokes" not in call.arguments or len(typed) == 1:
                calls.append(call)
        return [replace(call, command="\n".join(typed)) if "keystrokes" in call.arguments else call for call in calls]

    def _usage(self, metrics: Record, model: str, at: datetime | None) -> Iterator[Event]:
        """The usage in a step's metrics, or in the totals of the session; none if it is empty."""
        tokens = select_tokens(metrics, "prompt_tokens", "completion_tokens", "cached_tokens").without_cached_input()
        cost = usd_or_none(metrics.get("cost_usd"))
        if not tokens.is_empty or cost:
            self._has_usage = True
            yield self.build_usage(tokens, model=model, at=at, cost=cost)


def _read_output(tool: str, content: str) -> tuple[str, bool | None, int | None]:
    """(a result's text, whether its call failed, its exit code), by how the agent wrote the result; None if unknown."""
    if tool == "run_shell_command":
        return read_gemini_output(content)
    output, exit_code = read_mini_output(content)
    if exit_code is None and output.endswith(FAILED):
        match = EXIT_CODE.match(output)
        return output, True, int(match[1]) if match else None
    if exit_code is None:
        return output, None, None
    return output, exit_code != 0, exit_code
