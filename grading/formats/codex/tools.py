"""Codex's tools: reads a call's kind, command and patch, and an output's text, exit code and success."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from grading.formats.events import Clarity, ToolCall, ToolResult
from grading.formats.lines import json_or_none
from grading.formats.values import content_text, exit_code_or_none, items, kind_by_name, mapping, text, word_set

KINDS: Final = kind_by_name(
    {
        "shell": "container.exec exec exec_command local_shell shell shell_command unified_exec write_stdin",
        "edit": "apply_patch",
        "read": "read_file view_image",
        "search": "grep_files list_dir tool_search",
        "web": "web__run web_search web_search_call",
        "agent": "close_agent followup_task resume_agent send_input send_message spawn_agent wait wait_agent",
        "plan": "create_goal get_goal request_user_input update_goal update_plan",
    }
)
PATCH_BEGIN, PATCH_END = "*** Begin Patch", "*** End Patch"
PATCHED_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
APPLY_PATCH_COMMAND: Final = re.compile(r"(?:^|[\n;&|({])[ \t]*(?:applypatch|apply_patch)\b")
SHELL: Final = re.compile(r"(?:.*/)?(?:ba|da|fi|k|z)?sh")
COMMANDLESS_TOOLS: Final = word_set("wait write_stdin")
BUILT_IN: Final = word_set("load_workspace_dependencies request_permissions tool_suggest")
EXIT_CODE: Final = re.compile(
    r"^(?:Process exited with code|Exit code:|exit_code:)[ \t]*(-?\d{1,9})[ \t]*$", re.MULTILINE
)
ERROR_PREFIXES: Final = (
    "apply_patch verification failed",
    "execution error:",
    "exec_command failed",
    "failed to parse function arguments",
    "patch rejected",
    "Script failed",
    "tool call error",
    "unsupported call",
    "write_stdin failed",
)
SUCCESS_PREFIXES: Final = ("Success. Updated", "Plan updated")
MAX_HEADER: Final = 500


def read_call(name: str, arguments: object) -> ToolCall:
    """A call from its name and its arguments, which are JSON text, an object, or a custom tool's free text.

    Any call whose text is a patch, and a shell call that runs `apply_patch`, is an edit.
    """
    fields = arguments if isinstance(arguments, dict) else json_or_none(arguments)
    kind = KINDS.get(name, "other")
    if not isinstance(fields, dict):
        source = text(arguments)
        if name == "apply_patch" or source.startswith(PATCH_BEGIN):
            return _read_patch(name, source, {})
        if kind == "other" and source.lstrip()[:1] != "{":  # a custom tool's own text
            return ToolCall(name=name, kind=kind, arguments={"input": source}, clarity=Clarity.OPAQUE)
        # The text should be JSON and isn't; without any text, the call has no arguments.
        clarity = Clarity.UNREADABLE if source.strip() else _clarity(name, kind, "")
        return ToolCall(name=name, kind=kind, arguments={"input": source} if source else {}, clarity=clarity)
    command = command_of(fields)
    if kind == "edit":
        return _read_patch(name, text(fields.get("input")) or text(fields.get("patch")), fields)
    if kind == "shell" and PATCH_BEGIN in command and APPLY_PATCH_COMMAND.search(command):
        return _read_patch(name, command, fields, command=command)
    path = text(fields.get("path")) or text(fields.get("file_path"))
    command = command if kind == "shell" else ""
    clarity = _clarity(name, kind, command)
    return ToolCall(name=name, kind=kind, arguments=fields, command=command, path=path, clarity=clarity)


def _clarity(name: str, kind: str, command: str) -> Clarity:
    """Clarity of a call whose arguments were parsed: a shell call needs a command, unless it only polls a process."""
    if kind == "shell":
        return Clarity.UNDERSTOOD if command or name in COMMANDLESS_TOOLS else Clarity.UNREADABLE
    return Clarity.UNDERSTOOD if name in KINDS or name in BUILT_IN else Clarity.OPAQUE


def command_of(fields: Mapping[str, Any]) -> str:
    """The command line of a shell call: `cmd`, `command`, or the `chars` of `write_stdin`; "" if it has none.

    An argument vector is quoted into one line, except that of `["bash", "-lc", script, …]` only the script is taken,
    and that `apply_patch` keeps its patch on lines of its own.
    """
    value = fields.get("cmd") or fields.get("command") or fields.get("chars")
    vector = [word for word in items(value) if isinstance(word, str)]
    if not vector:
        return text(value)
    if len(vector) > 2 and SHELL.fullmatch(vector[0]) and vector[1] in ("-c", "-lc"):  # noqa: PLR2004 - with a script
        return vector[2]
    if vector[0].endswith("apply_patch"):
        return "\n".join(vector)
    return shlex.join(vector)


def _read_patch(name: str, source: str, arguments: Mapping[str, Any], *, command: str = "") -> ToolCall:
    """An edit from text that contains a patch, from its begin to its end marker, or the text's own begin or end if one
    is missing; unreadable if the patch names no file.
    """
    start, end_marker = source.find(PATCH_BEGIN), source.rfind(PATCH_END)
    end = end_marker + len(PATCH_END) if end_marker > start else len(source)
    patch = source[max(start, 0) : end]
    paths = [path.strip() for path in PATCHED_FILE.findall(patch)]
    arguments = {**arguments, "patch": patch, "paths": paths}
    clarity = Clarity.UNDERSTOOD if paths else Clarity.UNREADABLE
    path = paths[0] if paths else ""
    return ToolCall(name=name, kind="edit", arguments=arguments, command=command, path=path, clarity=clarity)


def read_output(value: object) -> ToolResult:
    """A call's result from any of the shapes in use: text with a header, JSON text with metadata, content parts.

    The exit code comes from the metadata, else from the header: the lines before `Output:`, which Codex writes. Nothing
    else is searched for it, because a program can print anything there.
    """
    # JSON text is parsed only if it begins like Codex's wrapper; any other JSON is what a program printed.
    if isinstance(value, str) and value.startswith(("{", " {")) and '"output"' in value[:200]:
        wrapped = mapping(json_or_none(value))
    else:
        wrapped = mapping(value)
    output = content_text(wrapped.get("output") if "output" in wrapped else wrapped.get("content", value))
    exit_code = exit_code_or_none(mapping(wrapped.get("metadata")).get("exit_code"))
    header = output[: max(output.find("\nOutput:", 0, MAX_HEADER), 0)]
    if exit_code is None and (match := EXIT_CODE.search(header)):
        exit_code = int(match[1])
    failed = _has_failed(exit_code, wrapped.get("success"), output)
    return ToolResult(text=output, failed=failed, exit_code=exit_code)


def _has_failed(exit_code: int | None, success: object, output: str) -> bool | None:
    """Whether a call failed, by its exit code, else its `success` flag, else how its output begins; None if unknown."""
    if exit_code is not None:
        return exit_code != 0
    if isinstance(success, bool):
        return not success
    if output.startswith(ERROR_PREFIXES):
        return True
    return False if output.startswith(SUCCESS_PREFIXES) else None


def to_json(value: Any) -> str:
    """JSON of a small value for a message or detail; "" if it is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""
