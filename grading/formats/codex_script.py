"""Codex's code mode: which tools a script calls, and which part of its output belongs to which of them.

The script's own status ("Script completed") says nothing of the commands in it, so success is known only where the
script prints what a call gave back whole, or its exit code, in a place that can be found again.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from grading.formats import codex_tools
from grading.formats.codex_tools import CodexCall, Output
from grading.formats.events import Clarity
from grading.formats.js_script import read_script
from grading.formats.js_tokens import UnreadableScriptError
from grading.formats.js_values import Joined, Json, Result, ScriptCall, StepBudget, calls_in, is_plain
from grading.formats.lines import json_or_none
from grading.formats.values import exit_status, items, mapping, parts_text, text

HEADER: Final = re.compile(
    r"\A(Script (?:completed|failed|terminated|running with cell ID [^\s]{1,80}))\n"
    r"(?:Wall time[^\n]{0,60}\n)?Output:\n?"
)
NUMBER: Final = re.compile(r"-?\d{1,9}(?!\d)|undefined|null")
NUMBER_LAST: Final = re.compile(r"(?<!\d)(?:-?\d{1,9}|undefined|null)\Z")
SHELL_TOOL: Final = re.compile(r"\btools\.(?:exec_command|shell|shell_command|unified_exec|write_stdin)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """The calls of one script, each with its tool's name; `printed` are the values behind its output items.

    `printed` None: not certain. One call stands for all where their outputs cannot be told apart.
    """

    calls: tuple[tuple[str, CodexCall], ...]
    printed: tuple[Any, ...] | None = None
    tampered: frozenset[int] = frozenset()


def read(source: str, allowance: StepBudget) -> Scripted:
    """The calls of a script; what cannot be read is one unreadable call."""
    try:
        script = read_script(source, allowance)
    except UnreadableScriptError:
        kind = "shell" if SHELL_TOOL.search(source) else "other"
        return _one(CodexCall(kind=kind, arguments={"input": source}, clarity=Clarity.UNREADABLE))
    calls = tuple((called.name, meaning(called)) for called in script.calls)
    printed = None if script.items is None else tuple(script.items)
    if not calls:
        return _one(CodexCall(kind="other", arguments={"input": source}))
    # Whether it can be found again in the output what of each printed value belongs to which call.
    is_separable = printed is not None and all(isinstance(one, Json) or len(calls_in(one)) <= 1 for one in printed)
    if len(calls) == 1 or is_separable:
        return Scripted(calls=calls, printed=printed, tampered=script.tampered)
    # One call for all of a script, whose outputs cannot be told apart.
    called = [call for _, call in calls]
    kinds = {call.kind for call in called}
    clarities = [call.clarity for call in called]
    commands = [call.command for call in called if call.command]
    arguments: dict[str, Any] = {"input": source}
    paths = [path for call in called for path in items(call.arguments.get("paths"))]
    if paths and not commands:
        arguments |= {"patch": "\n".join(text(call.arguments.get("patch")) for call in called), "paths": paths}
    if commands or "shell" in kinds:
        kind = "shell"
    elif paths:
        kind = "edit"
    else:
        kind = kinds.pop() if len(kinds) == 1 else "other"
    joint = CodexCall(
        kind=kind,
        arguments=arguments,
        command="\n".join(commands),
        path=paths[0] if "patch" in arguments else "",
        clarity=max(clarities, key=(Clarity.UNDERSTOOD, Clarity.OPAQUE, Clarity.UNREADABLE).index),
    )
    return _one(joint)


def _one(call: CodexCall) -> Scripted:
    return Scripted(calls=(("exec", call),))


def meaning(called: ScriptCall) -> CodexCall:
    """What a tool call of a script sets out to do; arguments that are not known whole are left out."""
    argument = called.argument
    if isinstance(argument, dict):
        known = {key: value for key, value in argument.items() if is_plain(value)}
        return codex_tools.call(called.name, known)
    if argument is None or isinstance(argument, str):
        return codex_tools.call(called.name, argument or {})
    kind = codex_tools.KINDS.get(called.name, "other")
    return CodexCall(kind=kind, clarity=Clarity.UNREADABLE)


@dataclass(slots=True)
class _Told:
    """What the output says of one call."""

    texts: list[str]
    exit_code: int | None = None
    failed: bool | None = None

    def whole(self, result: Mapping[str, Any]) -> None:
        """What a tool gave back, as JSON: a shell's output and exit code, or a server's content and error mark."""
        self.exit_code = exit_status(result.get("exit_code"))
        if isinstance(result.get("isError"), bool):
            self.failed = result["isError"]
        told = parts_text(result.get("output") if "output" in result else result.get("content"))
        if self.exit_code is None and exit_status(result.get("session_id")) is not None:
            told = f"Process running with session ID {result['session_id']}\nOutput:\n{told}"
        self.texts.append(told or codex_tools.compact(dict(result)))


def outputs(scripted: Scripted, value: object) -> list[Output]:
    """What each call of a script gave back, in their order, from the script's output."""
    status, parts = _parts(value)
    told = [_Told([]) for _ in scripted.calls]
    printed = scripted.printed
    is_matched = printed is not None and len(parts) == len(printed) and status == "Script completed"
    if printed is not None and is_matched:
        for shape, part in zip(printed, parts, strict=True):
            _take(told, shape, part)
    else:
        told[-1].texts.extend(parts)
    for index in scripted.tampered:
        told[index].exit_code = told[index].failed = None
    if status != "Script completed":
        told[-1].texts.insert(0, status)
    if status == "Script failed" and len(told) == 1:
        told[0].failed = True
    results: list[Output] = []
    for one in told:
        failed = one.failed if one.exit_code is None else one.exit_code != 0
        results.append(Output(text="\n".join(filter(None, one.texts)), failed=failed, exit_code=one.exit_code))
    return results


def _parts(value: object) -> tuple[str, list[str]]:
    """(the script's status, the items it printed); an output that is one text has its items joined."""
    told = [text(mapping(part).get("text")) if not isinstance(part, str) else part for part in items(value)]
    if isinstance(value, str):
        told = [value]
    match = HEADER.match(told[0]) if told else None
    if match is None:
        return "", told
    rest = told[0][match.end() :]
    return match[1], [*([rest] if rest else []), *told[1:]]


def _take(told: list[_Told], shape: Any, part: str) -> None:
    """Gives an output item to the calls that the printed value came from."""
    found = list(_facts(shape, part))
    for call, path, value in found:
        one = told[call]
        if not path and isinstance(value, dict):
            one.whole(value)
        elif path == ("exit_code",):
            is_number = isinstance(value, str) and NUMBER.fullmatch(value) and value[-1].isdigit()
            status = int(value) if is_number else exit_status(value)
            if status is not None:
                one.exit_code = status
            elif isinstance(value, str):
                one.texts.append(value)
        else:
            one.texts.append(value if isinstance(value, str) else codex_tools.compact(value))
    if not found:
        sources = calls_in(shape)
        if len(sources) == 1:
            told[next(iter(sources))].texts.append(part)
        elif sources:
            told[-1].texts.append(part)


def _facts(shape: Any, part: str) -> Iterator[tuple[int, tuple[str, ...], Any]]:
    """(call, path, value) for each part of an item that was printed as that."""
    if isinstance(shape, Result):
        parsed = json_or_none(part) if not shape.path else None
        yield shape.call, shape.path, parsed if isinstance(parsed, dict) else part
    elif isinstance(shape, Json):
        parsed = json_or_none(part)
        if parsed is not None:
            yield from _inside(shape.value, parsed)
    elif isinstance(shape, Joined):
        yield from _of_text(list(shape.parts), part)


def _inside(shape: Any, value: Any) -> Iterator[tuple[int, tuple[str, ...], Any]]:
    if isinstance(shape, Result):
        yield shape.call, shape.path, value
    elif isinstance(shape, dict) and isinstance(value, dict):
        for key in shape.keys() & value.keys():
            yield from _inside(shape[key], value[key])
    elif isinstance(shape, list) and isinstance(value, list) and len(shape) == len(value):
        for one, other in zip(shape, value, strict=True):
            yield from _inside(one, other)


def _of_text(shapes: list[Any], part: str) -> Iterator[tuple[int, tuple[str, ...], Any]]:
    """Known text and exit codes are taken off from both ends; one thing may be left in the middle.

    An exit code between two texts that are not known could be anything in them: it is not looked for.
    """
    found: list[tuple[int, tuple[str, ...], Any]] = []
    for is_last in (False, True):
        end = -1 if is_last else 0
        while shapes and (taken := _taken(shapes, part, is_last=is_last)) is not None:
            shape = shapes.pop(end)
            part = part[: len(part) - len(taken)] if is_last else part[len(taken) :]
            if isinstance(shape, Result):
                found.append((shape.call, shape.path, taken))
    sources = frozenset[int]().union(*map(calls_in, shapes))
    if any(isinstance(shapes[end], str) for end in (0, -1) if shapes) or (not shapes and part):
        return  # cut in between, say
    yield from found
    if len(shapes) == 1 and isinstance(shapes[0], Result | Json):
        yield from _facts(shapes[0], part)
    elif len(sources) == 1:
        yield next(iter(sources)), ("text",), part


def _taken(shapes: list[Any], part: str, *, is_last: bool) -> str | None:
    """What of a text's beginning (or end) is a known text or an exit code; None where neither is there.

    Beside an exit code must stand a known text, else its digits could be those of something else.
    """
    shape, *beside = reversed(shapes) if is_last else shapes
    if isinstance(shape, str):
        return shape if (part.endswith(shape) if is_last else part.startswith(shape)) else None
    if not isinstance(shape, Result) or shape.path != ("exit_code",):
        return None
    if beside and not (isinstance(beside[0], str) and beside[0] and not beside[0][-1 if is_last else 0].isalnum()):
        return None
    match = NUMBER_LAST.search(part[-20:]) if is_last else NUMBER.match(part)
    return match[0] if match else None


def with_outcome(output: Output, *, failed: bool | None, exit_code: int | None) -> Output:
    """An output with the outcome that the harness recorded elsewhere, where the output itself does not say."""
    return output if output.failed is not None else replace(output, failed=failed, exit_code=exit_code)


def running_cell(value: object) -> str:
    """The id under which a script that is not done goes on; `wait` reads on in it."""
    status, _ = _parts(value)
    return status.rpartition(" ")[2] if status.startswith("Script running") else ""


def merged(outputs: list[Output]) -> Output:
    """What `wait` gave back of a script: its text, and its outcome where it is that of one call."""
    one = outputs[0]
    if len(outputs) > 1:
        one = Output(text="", failed=None, exit_code=None)
    return replace(one, text="\n".join(output.text for output in outputs if output.text))
