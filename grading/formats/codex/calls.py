"""Events for Codex's tool calls and their results. Each tool call of a code-mode script becomes its own event."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from msgspec.structs import replace

from grading.formats.codex import code_mode, tools
from grading.formats.codex.code_mode import ScriptCalls
from grading.formats.codex.js_values import StepBudget
from grading.formats.events import ToolCall, ToolResult
from grading.formats.reader import Parser, Record
from grading.formats.values import exit_code_or_none, mapping, text

Value = TypeVar("Value")
CallEvent = TypeVar("CallEvent", ToolCall, ToolResult)
MAX_REMEMBERED: Final = 1_000
END_EVENTS: Final = frozenset({"exec_command_end", "mcp_tool_call_end", "patch_apply_end"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """The harness's own record of how a call ended. `kind` is a `ToolCall.kind`, or "" for an MCP server's tool."""

    kind: str
    failed: bool | None
    exit_code: int | None = None
    command_or_tool: str = ""
    """The command of a shell call, or the name of an MCP server's tool."""

    def could_end(self, call: ToolCall) -> bool:
        """Whether this may be the end of a call that a script made.

        The harness gives such calls other ids than the script has, so the commands are compared, or the tools' names;
        any edit matches any other.
        """
        if self.kind == "shell":
            return call.kind == "shell" and bool(call.command) and self.command_or_tool == call.command
        if self.kind == "edit":
            return call.kind == "edit"
        server_tool = self.command_or_tool
        return bool(server_tool) and call.name.startswith("mcp__") and call.name.endswith(f"__{server_tool}")


class Calls:
    """Turns records of calls and outputs into events for a parser.

    Remembers at most MAX_REMEMBERED each of: scripts by call id, running scripts by cell id, call ends by call id,
    and ends of calls made by scripts.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._step_budget = StepBudget()
        self._scripts: OrderedDict[str, ScriptCalls] = OrderedDict()
        self._running_scripts: OrderedDict[str, ScriptCalls] = OrderedDict()
        self._call_ends: OrderedDict[str, CallEnd] = OrderedDict()
        self._script_call_ends: deque[CallEnd] = deque(maxlen=MAX_REMEMBERED)

    def tool_calls(self, item: Record, kind: str, at: datetime | None) -> Iterator[ToolCall]:
        """Events for one call record. An `exec` script yields one event per tool it calls; a `wait` re-links its
        running script to the new call id.
        """
        name = text(item.get("name")) or kind.removesuffix("_call")
        call_id = text(item.get("call_id")) or text(item.get("id"))
        arguments = item.get("arguments", item.get("input", item.get("action")))
        if kind == "custom_tool_call" and name == "exec":
            script = code_mode.read_calls(text(arguments), self._step_budget)
            _remember(self._scripts, call_id, script)
            for index, call in enumerate(script.calls):
                yield self._number(call, _script_call_id(call_id, index, script), at)
            return
        call = tools.read_call(name, arguments)
        if name == "wait" and (running := self._running_scripts.pop(text(call.arguments.get("cell_id")), None)):
            _remember(self._scripts, call_id, running)
        yield self._number(call, call_id, at)

    def tool_results(self, item: Record, at: datetime | None) -> Iterator[ToolResult]:
        """Events for one output record: one per call of a script; a single one for `wait` or a plain call.

        If the output shows no outcome, that of the harness's own record of the call's end counts, if there is one.
        """
        call_id, value = text(item.get("call_id")), item.get("output", item.get("tools"))
        script = self._scripts.pop(call_id, None)
        if script is None:
            result = tools.read_output(value)
            if call_end := self._call_ends.pop(call_id, None):
                result = _with_outcome(result, call_end)
            yield self._number(result, call_id, at)
            return
        results = code_mode.split_outputs(script, value)
        if cell := code_mode.running_cell(value):
            _remember(self._running_scripts, cell, script)
        if item.get("type") == "function_call_output":  # the output of `wait`
            yield self._number(code_mode.merge_results(results), call_id, at)
            return
        for index, (call, result) in enumerate(zip(script.calls, results, strict=True)):
            call_end = None
            if result.failed is None:
                call_end = next((end for end in self._script_call_ends if end.could_end(call)), None)
            if call_end is not None:
                self._script_call_ends.remove(call_end)
                result = _with_outcome(result, call_end)  # noqa: PLW2901
            yield self._number(result, _script_call_id(call_id, index, script), at)

    def note_end(self, event: Record, kind: str) -> None:
        """Remembers the harness's own record of how a call ended, for the call's output, which comes later."""
        if kind not in END_EVENTS:
            return
        call_id, call_end = text(event.get("call_id")), _read_call_end(event, kind)
        if call_id.startswith("exec-"):
            self._script_call_ends.append(call_end)
        elif call_id:
            _remember(self._call_ends, call_id, call_end)

    def _number(self, event: CallEvent, call_id: str, at: datetime | None) -> CallEvent:
        return replace(event, number=self._parser.next_number(), call_id=call_id, at=at)


def _script_call_id(call_id: str, index: int, script: ScriptCalls) -> str:
    return call_id if len(script.calls) == 1 else f"{call_id}#{index + 1}"


def _remember(recent: OrderedDict[str, Value], key: str, value: Value) -> None:
    recent[key] = value
    if len(recent) > MAX_REMEMBERED:
        recent.popitem(last=False)


def _with_outcome(result: ToolResult, call_end: CallEnd) -> ToolResult:
    """The result with the outcome that the harness recorded, if the output itself shows none."""
    if result.failed is not None:
        return result
    return replace(result, failed=call_end.failed, exit_code=call_end.exit_code)


def _read_call_end(event: Record, kind: str) -> CallEnd:
    """The end of a call from an event of a `kind` in END_EVENTS; `failed` is None if the event doesn't record it."""
    if kind == "exec_command_end":
        exit_code = exit_code_or_none(event.get("exit_code"))
        command = tools.command_of({"command": event.get("command")})
        failed = None if exit_code is None else exit_code != 0
        return CallEnd(kind="shell", failed=failed, exit_code=exit_code, command_or_tool=command)
    if kind == "patch_apply_end":
        success = event.get("success")
        return CallEnd(kind="edit", failed=not success if isinstance(success, bool) else None)
    result, tool = mapping(event.get("result")), text(mapping(event.get("invocation")).get("tool"))
    failed = None
    if "Err" in result:
        failed = True
    elif "Ok" in result:
        failed = mapping(result["Ok"]).get("isError") is True
    return CallEnd(kind="", failed=failed, command_or_tool=tool)
