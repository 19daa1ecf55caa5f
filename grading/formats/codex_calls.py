"""Codex's calls and their outputs; in the scripts of code mode, each tool call is a call of its own."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from grading.formats import codex_script, codex_tools
from grading.formats.codex_script import Scripted
from grading.formats.codex_tools import CodexCall, Output
from grading.formats.events import ToolCall, ToolResult
from grading.formats.js_values import StepBudget
from grading.formats.values import exit_status, mapping, text

if TYPE_CHECKING:
    from grading.formats.reader import Parser, Record

Value = TypeVar("Value")
MAX_OPEN: Final = 1_000
ENDS: Final = {"exec_command_end": "shell", "mcp_tool_call_end": "", "patch_apply_end": "edit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What the harness recorded of a call's end, beside its output. `kind` is ours; empty for a server's tool."""

    kind: str
    failed: bool | None
    exit_code: int | None = None
    tool: str = ""
    """The command of a shell call, or the name of a server's tool."""

    def is_of(self, name: str, call: CodexCall) -> bool:
        """Whether this may be the end of a call inside a script, which has an id of its own."""
        if self.kind == "shell":
            return call.kind == "shell" and bool(call.command) and self.tool == call.command
        if self.kind == "edit":
            return call.kind == "edit"
        return bool(self.tool) and name.startswith("mcp__") and name.endswith(f"__{self.tool}")


class Calls:
    """Turns calls and outputs into events for a parser. Holds what is open, bounded."""

    def __init__(self, parser: "Parser") -> None:
        self._parser = parser
        self._allowance = StepBudget()
        self._scripts: OrderedDict[str, Scripted] = OrderedDict()
        self._cells: OrderedDict[str, Scripted] = OrderedDict()
        self._ended: OrderedDict[str, Ended] = OrderedDict()
        self._nested: deque[Ended] = deque(maxlen=MAX_OPEN)

    def called(self, item: "Record", kind: str, at: datetime | None) -> Iterator[ToolCall]:
        name = text(item.get("name")) or kind.removesuffix("_call")
        call_id = text(item.get("call_id")) or text(item.get("id"))
        arguments = item.get("arguments", item.get("input", item.get("action")))
        if kind == "custom_tool_call" and name == "exec":
            scripted = codex_script.read(text(arguments), self._allowance)
            _keep(self._scripts, call_id, scripted)
            for index, (tool, call) in enumerate(scripted.calls):
                yield call.event(self._parser.number(), call_id=_id(call_id, index, scripted), name=tool, at=at)
            return
        call = codex_tools.call(name, arguments)
        if name == "wait" and (running := self._cells.pop(text(call.arguments.get("cell_id")), None)):
            _keep(self._scripts, call_id, running)
        yield call.event(self._parser.number(), call_id=call_id, name=name, at=at)

    def answered(self, item: "Record", at: datetime | None) -> Iterator[ToolResult]:
        call_id, value = text(item.get("call_id")), item.get("output", item.get("tools"))
        scripted = self._scripts.pop(call_id, None)
        if scripted is None:
            ended = self._ended.pop(call_id, None)
            output = codex_tools.output(value)
            yield self._result(call_id, output if ended is None else _with(output, ended), at)
            return
        outputs = codex_script.outputs(scripted, value)
        if cell := codex_script.running_cell(value):
            _keep(self._cells, cell, scripted)
        if item.get("type") == "function_call_output":  # of `wait`: one call, which reads on in a script
            yield self._result(call_id, codex_script.merged(outputs), at)
            return
        for index, ((name, call), output) in enumerate(zip(scripted.calls, outputs, strict=True)):
            ended = next((one for one in self._nested if output.failed is None and one.is_of(name, call)), None)
            if ended is not None:
                self._nested.remove(ended)
            shown = output if ended is None else _with(output, ended)
            yield self._result(_id(call_id, index, scripted), shown, at)

    def ended(self, event: "Record", kind: str) -> None:
        """Takes note of the harness's own record of how a call ended."""
        if kind not in ENDS:
            return
        call_id, ended = text(event.get("call_id")), _ended(event, kind)
        if call_id.startswith("exec-"):
            self._nested.append(ended)
        elif call_id:
            _keep(self._ended, call_id, ended)

    def _result(self, call_id: str, output: Output, at: datetime | None) -> ToolResult:
        return ToolResult(
            number=self._parser.number(),
            at=at,
            call_id=call_id,
            text=output.text,
            failed=output.failed,
            exit_code=output.exit_code,
        )


def _id(call_id: str, index: int, scripted: Scripted) -> str:
    return call_id if len(scripted.calls) == 1 else f"{call_id}#{index + 1}"


def _keep(kept: OrderedDict[str, Value], key: str, value: Value) -> None:
    kept[key] = value
    if len(kept) > MAX_OPEN:
        kept.popitem(last=False)


def _with(output: Output, ended: Ended) -> Output:
    return codex_script.with_outcome(output, failed=ended.failed, exit_code=ended.exit_code)


def _ended(event: "Record", kind: str) -> Ended:
    if kind == "exec_command_end":
        exit_code = exit_status(event.get("exit_code"))
        command = codex_tools.command_of({"command": event.get("command")})
        failed = None if exit_code is None else exit_code != 0
        return Ended(kind="shell", failed=failed, exit_code=exit_code, tool=command)
    if kind == "patch_apply_end":
        success = event.get("success")
        return Ended(kind="edit", failed=not success if isinstance(success, bool) else None)
    result, tool = mapping(event.get("result")), text(mapping(event.get("invocation")).get("tool"))
    if "Err" in result:
        return Ended(kind="", failed=True, tool=tool)
    return Ended(kind="", failed=mapping(result["Ok"]).get("isError") is True if "Ok" in result else None, tool=tool)
