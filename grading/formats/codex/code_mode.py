"""Codex's code mode: the tools a script calls, and which part of the script's output belongs to which call.

The script's own status ("Script completed") says nothing about its commands. A call's success is known only if the
script prints the call's whole result, or its exit code, where it can be located in the output.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from grading.formats.codex import tools
from grading.formats.codex.js_script import read_script
from grading.formats.codex.js_values import (
    Joined,
    Json,
    Result,
    ScriptCall,
    StepBudget,
    UnreadableScriptError,
    calls_in,
    is_plain,
)
from grading.formats.events import Clarity, ToolCall, ToolResult
from grading.formats.lines import json_or_none
from grading.formats.values import content_text, exit_code_or_none, items, mapping, text

HEADER: Final = re.compile(
    r"\A(Script (?:completed|failed|terminated|running with cell ID [^\s]{1,80}))\n"
    r"(?:Wall time[^\n]{0,60}\n)?Output:\n?"
)
INTEGER: Final = re.compile(r"-?[0-9]{1,9}")
NUMBER: Final = re.compile(r"-?\d{1,9}(?!\d)|undefined|null")
NUMBER_AT_END: Final = re.compile(r"(?<!\d)(?:-?\d{1,9}|undefined|null)\Z")
MAX_NUMBER_END: Final = 20
"""More characters than NUMBER_AT_END looks at."""
FieldMatch = tuple[int, tuple[str, ...], Any]
"""(index of the call, path of the field in its result, the field's value): what a printed item says of a call."""
SHELL_TOOL: Final = re.compile(r"\btools\.(?:exec_command|shell|shell_command|unified_exec|write_stdin)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCalls:
    """One script's calls, and the symbolic value behind each item it prints.

    `printed` is None if it isn't certain what is printed. If outputs can't be assigned to calls, a single call stands
    for all of them.
    """

    calls: tuple[ToolCall, ...]
    printed: tuple[Any, ...] | None = None


def read_calls(source: str, step_budget: StepBudget) -> ScriptCalls:
    """Parse a script into its calls. One call stands for the whole script if it can't be parsed, makes no calls, or
    prints so that its output couldn't be divided among its calls.
    """
    try:
        script = read_script(source, step_budget)
    except UnreadableScriptError:
        kind = "shell" if SHELL_TOOL.search(source) else "other"
        call = ToolCall(name="exec", kind=kind, arguments={"input": source}, clarity=Clarity.UNREADABLE)
        return ScriptCalls(calls=(call,))
    calls = tuple(map(_read_call, script.calls))
    if not calls:
        return ScriptCalls(calls=(ToolCall(name="exec", kind="other", arguments={"input": source}),))
    printed = None if script.items is None else tuple(script.items)
    # An item of one call, or JSON with a field per call, can be split again when its output comes.
    is_separable = printed is not None and all(isinstance(item, Json) or len(calls_in(item)) <= 1 for item in printed)
    if len(calls) == 1 or is_separable:
        return ScriptCalls(calls=calls, printed=printed)
    return ScriptCalls(calls=(_joint_call(source, calls),))


def _joint_call(source: str, calls: Sequence[ToolCall]) -> ToolCall:
    """One call that stands for all calls of a script: a shell call if there is any, with all commands, else an edit if
    there is any, with all patches. It is as unclear as the least clear of them.
    """
    kinds = {call.kind for call in calls}
    clarities = [call.clarity for call in calls]
    commands = [call.command for call in calls if call.command]
    arguments: dict[str, Any] = {"input": source}
    paths = [path for call in calls for path in items(call.arguments.get("paths"))]
    if paths and not commands:
        arguments |= {"patch": "\n".join(text(call.arguments.get("patch")) for call in calls), "paths": paths}
    if commands or "shell" in kinds:
        kind = "shell"
    elif paths:
        kind = "edit"
    else:
        kind = kinds.pop() if len(kinds) == 1 else "other"
    return ToolCall(
        name="exec",
        kind=kind,
        arguments=arguments,
        command="\n".join(commands),
        path=paths[0] if "patch" in arguments else "",
        clarity=max(clarities, key=(Clarity.UNDERSTOOD, Clarity.OPAQUE, Clarity.UNREADABLE).index),
    )


def _read_call(script_call: ScriptCall) -> ToolCall:
    """The call with its argument's literal fields; unreadable if it has an argument that is no object and no string."""
    name, argument = script_call.name, script_call.argument
    if isinstance(argument, dict):
        literals = {key: value for key, value in argument.items() if is_plain(value)}
        return tools.read_call(name, literals)
    if argument is None or isinstance(argument, str):
        return tools.read_call(name, argument or {})
    return ToolCall(name=name, kind=tools.KINDS.get(name, "other"), clarity=Clarity.UNREADABLE)


@dataclass(slots=True)
class _CallOutput:
    """What has been gathered from a script's output about one of its calls."""

    texts: list[str]
    exit_code: int | None = None
    failed: bool | None = None

    def add_whole_result(self, result: Mapping[str, Any]) -> None:
        """Adds a tool's result object: a shell's output and exit code, or an MCP server's content and error flag."""
        self.exit_code = exit_code_or_none(result.get("exit_code"))
        if isinstance(result.get("isError"), bool):
            self.failed = result["isError"]
        output = content_text(result.get("output") if "output" in result else result.get("content"))
        if self.exit_code is None and exit_code_or_none(result.get("session_id")) is not None:
            # The process still runs: say so in the words of Codex's own output, by which it is recognised later.
            output = f"Process running with session ID {result['session_id']}\nOutput:\n{output}"
        self.texts.append(output or tools.to_json(dict(result)))

    def add_exit_code(self, value: Any) -> None:
        """Adds a printed `exit_code` field. Text that isn't a number, such as "undefined", is kept as output."""
        if isinstance(value, str):
            exit_code = int(value) if INTEGER.fullmatch(value) else None
        else:
            exit_code = exit_code_or_none(value)
        if exit_code is not None:
            self.exit_code = exit_code
        elif isinstance(value, str):
            self.texts.append(value)


def split_outputs(script: ScriptCalls, value: object) -> list[ToolResult]:
    """Split a script's output into one result per call, in the order of the calls.

    If the script did not complete, or printed another number of items than expected, the last call gets all of it.
    """
    status, printed_texts = _split_output(value)
    call_outputs = [_CallOutput([]) for _ in script.calls]
    is_complete = status == "Script completed"
    if is_complete and script.printed is not None and len(printed_texts) == len(script.printed):
        for shape, printed_text in zip(script.printed, printed_texts, strict=True):
            _assign_item(call_outputs, shape, printed_text)
    else:
        call_outputs[-1].texts.extend(printed_texts)
    if not is_complete:
        call_outputs[-1].texts.insert(0, status)
    if status == "Script failed" and len(call_outputs) == 1:
        call_outputs[0].failed = True
    results: list[ToolResult] = []
    for output in call_outputs:
        failed = output.failed if output.exit_code is None else output.exit_code != 0
        joined_text = "\n".join(filter(None, output.texts))
        results.append(ToolResult(text=joined_text, failed=failed, exit_code=output.exit_code))
    return results


def _split_output(value: object) -> tuple[str, list[str]]:
    """Split a script's output into (status from its header, printed items). A plain-string output is a single item."""
    if isinstance(value, str):
        printed = [value]
    else:
        printed = [part if isinstance(part, str) else text(mapping(part).get("text")) for part in items(value)]
    match = HEADER.match(printed[0]) if printed else None
    if match is None:
        return "", printed
    after_header = printed[0][match.end() :]
    return match[1], [after_header, *printed[1:]] if after_header else printed[1:]


def _assign_item(call_outputs: list[_CallOutput], shape: Any, printed: str) -> None:
    """Add a printed item to the outputs of the calls whose results are in `shape`, the symbolic value behind it.

    An item whose parts can't be located goes whole to its call, or to the script's last call if it is of several.
    """
    matches = list(_match_shape(shape, printed))
    for call, path, value in matches:
        if not path and isinstance(value, dict):
            call_outputs[call].add_whole_result(value)
        elif path == ("exit_code",):
            call_outputs[call].add_exit_code(value)
        else:
            call_outputs[call].texts.append(value if isinstance(value, str) else tools.to_json(value))
    if matches:
        return
    sources = calls_in(shape)
    if len(sources) == 1:
        call_outputs[next(iter(sources))].texts.append(printed)
    elif sources:
        call_outputs[-1].texts.append(printed)


def _match_shape(shape: Any, printed: str) -> Iterator[FieldMatch]:
    """The result fields that a printed item contains, going by the symbolic value it was printed from."""
    if isinstance(shape, Result):
        parsed = None if shape.path else json_or_none(printed)  # a whole result is printed as JSON
        yield shape.call, shape.path, parsed if isinstance(parsed, dict) else printed
    elif isinstance(shape, Json):
        parsed = json_or_none(printed)
        if parsed is not None:
            yield from _match_json(shape.value, parsed)
    elif isinstance(shape, Joined):
        yield from _match_joined(list(shape.parts), printed)


def _match_json(shape: Any, value: Any) -> Iterator[FieldMatch]:
    """The result fields inside parsed JSON; lists of different lengths and missing keys are passed over."""
    if isinstance(shape, Result):
        yield shape.call, shape.path, value
    elif isinstance(shape, dict) and isinstance(value, dict):
        for key in shape:
            if key in value:
                yield from _match_json(shape[key], value[key])
    elif isinstance(shape, list) and isinstance(value, list) and len(shape) == len(value):
        for item_shape, item in zip(shape, value, strict=True):
            yield from _match_json(item_shape, item)


def _match_joined(shapes: list[Any], printed: str) -> Iterator[FieldMatch]:
    """The result fields in a printed text that was joined from `shapes`; none if a literal is missing (after a cut).

    Literals and exit codes are taken off both ends of the text, and their shapes off the list, which is changed. The
    rest is matched too if it is one shape or of a single call. No exit code is looked for between two unknown texts,
    because it could be any digits in them.
    """
    matches: list[FieldMatch] = []
    for is_leading in (True, False):
        while shapes and (part := _outer_part(shapes, printed, is_leading=is_leading)) is not None:
            if is_leading:
                shape, printed = shapes.pop(0), printed[len(part) :]
            else:
                shape, printed = shapes.pop(), printed[: len(printed) - len(part)]
            if isinstance(shape, Result):
                matches.append((shape.call, shape.path, part))
    is_unaccounted = not shapes and bool(printed)
    is_literal_missing = any(isinstance(shape, str) for shape in (*shapes[:1], *shapes[-1:]))
    if is_unaccounted or is_literal_missing:
        return
    yield from matches
    if not shapes:
        return
    sources = frozenset[int]().union(*map(calls_in, shapes))
    if len(shapes) == 1 and isinstance(shapes[0], Result | Json):
        yield from _match_shape(shapes[0], printed)
    elif len(sources) == 1:
        yield next(iter(sources)), ("text",), printed


def _outer_part(shapes: list[Any], printed: str, *, is_leading: bool) -> str | None:
    """The part of a text that its first shape, or its last one, accounts for: a literal, or an exit code beside a
    literal (or alone). That literal must not touch the code with a letter or digit, or the code's digits could be those
    of something else.
    """
    shape, *others = shapes if is_leading else reversed(shapes)
    if isinstance(shape, str):
        is_there = printed.startswith(shape) if is_leading else printed.endswith(shape)
        return shape if is_there else None
    if not isinstance(shape, Result) or shape.path != ("exit_code",):
        return None
    if others:
        neighbour = others[0]
        if not isinstance(neighbour, str) or not neighbour or neighbour[0 if is_leading else -1].isalnum():
            return None
    match = NUMBER.match(printed) if is_leading else NUMBER_AT_END.search(printed[-MAX_NUMBER_END:])
    return match[0] if match else None


def running_cell(value: object) -> str:
    """The cell id of a script that is still running, which `wait` refers to; "" if it has ended."""
    status, _ = _split_output(value)
    return status.rpartition(" ")[2] if status.startswith("Script running") else ""


def merge_results(results: list[ToolResult]) -> ToolResult:
    """The result of a `wait`: the texts of all calls joined; an outcome only if the script made a single call."""
    joined_text = "\n".join(result.text for result in results if result.text)
    if len(results) > 1:
        return ToolResult(text=joined_text)
    return replace(results[0], text=joined_text)
