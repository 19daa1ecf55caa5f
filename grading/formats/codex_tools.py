"""Codex's tools: what kind each call is, its command, its patch, and what its output says."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from grading.formats.events import Clarity, ToolCall
from grading.formats.lines import json_or_none
from grading.formats.values import exit_status, items, mapping, parts_text, text, words

KINDS: Final = {
    name: kind
    for kind, names in {
        "shell": "container.exec exec exec_command local_shell shell shell_command unified_exec write_stdin",
        "edit": "apply_patch",
        "read": "read_file view_image",
        "search": "grep_files list_dir tool_search",
        "web": "web__run web_search web_search_call",
        "agent": "close_agent followup_task resume_agent send_input send_message spawn_agent wait wait_agent",
        "plan": "create_goal get_goal request_user_input update_goal update_plan",
    }.items()
    for name in names.split()
}
BEGIN, END = "*** Begin Patch", "*** End Patch"
PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
APPLIES: Final = re.compile(r"(?:^|[\n;&|({])[ \t]*(?:applypatch|apply_patch)\b")
CONTINUES: Final = words("wait write_stdin")
BUILT_IN: Final = words("load_workspace_dependencies request_permissions tool_suggest")
EXIT_CODE: Final = re.compile(
    r"^(?:Process exited with code|Exit code:|exit_code:)[ \t]*(-?\d{1,9})[ \t]*$", re.MULTILINE
)
REFUSED: Final = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexCall:
    """A tool call's meaning, whichever way it was written down."""

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    path: str = ""
    clarity: Clarity = Clarity.UNDERSTOOD

    def event(self, number: int, *, call_id: str, name: str, at: datetime | None = None) -> ToolCall:
        """The call as an event of the log."""
        return ToolCall(
            number=number,
            at=at,
            call_id=call_id,
            name=name,
            kind=self.kind,
            arguments=self.arguments,
            command=self.command,
            path=self.path,
            clarity=self.clarity,
        )


def call(name: str, arguments: object) -> CodexCall:
    """A call from its name and its arguments: JSON text, an object, or a custom tool's free text."""
    fields = arguments if isinstance(arguments, dict) else json_or_none(arguments)
    kind = KINDS.get(name, "other")
    if not isinstance(fields, dict):
        source = text(arguments)
        if name == "apply_patch" or source.startswith(BEGIN):
            return _patch(source, {})
        if kind == "other" and source.lstrip()[:1] != "{":  # a custom tool's own text
            return CodexCall(kind=kind, arguments={"input": source}, clarity=Clarity.OPAQUE)
        clarity = Clarity.UNREADABLE if source.strip() else _clarity(name, kind, "")
        return CodexCall(kind=kind, arguments={"input": source} if source else {}, clarity=clarity)
    command = command_of(fields)
    if kind == "edit":
        return _patch(text(fields.get("input")) or text(fields.get("patch")), fields)
    if kind == "shell" and BEGIN in command and APPLIES.search(command):
        return _patch(command, fields, command=command)
    path = text(fields.get("path")) or text(fields.get("file_path"))
    command = command if kind == "shell" else ""
    return CodexCall(kind=kind, arguments=fields, command=command, path=path, clarity=_clarity(name, kind, command))


def _clarity(name: str, kind: str, command: str) -> Clarity:
    """Of a call whose arguments could be read: a shell call says its command, what only reads on has none."""
    if kind == "shell":
        return Clarity.UNDERSTOOD if command or name in CONTINUES else Clarity.UNREADABLE
    return Clarity.UNDERSTOOD if name in KINDS or name in BUILT_IN else Clarity.OPAQUE


def command_of(fields: Mapping[str, Any]) -> str:
    """The command line of a shell call: `cmd`, or `command` as text or as an argument vector.

    A vector that only starts a shell (`["bash", "-lc", script]`) is the script it is given.
    """
    value = fields.get("cmd") or fields.get("command") or fields.get("chars")
    vector = [word for word in items(value) if isinstance(word, str)]
    if vector[1:2] in (["-c"], ["-lc"]):
        return vector[-1]
    if vector and vector[0].endswith("apply_patch"):
        return "\n".join(vector)
    return shlex.join(vector) if vector else text(value)


def _patch(source: str, arguments: Mapping[str, Any], *, command: str = "") -> CodexCall:
    start, end = source.find(BEGIN), source.rfind(END)
    patch = source[max(start, 0) : end + len(END) if end > start else None]
    paths = [path.strip() for path in PATCHED.findall(patch)]
    arguments = {**arguments, "patch": patch, "paths": paths}
    clarity = Clarity.UNDERSTOOD if paths else Clarity.UNREADABLE
    return CodexCall(kind="edit", arguments=arguments, command=command, path=paths[0] if paths else "", clarity=clarity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    text: str
    failed: bool | None
    exit_code: int | None


def output(value: object) -> Output:
    """A call's output from any of the shapes in use: text with a header, JSON text with metadata, content parts.

    The exit code is read from the header only, the lines before `Output:`, so that a program cannot print itself one.
    """
    if isinstance(value, str) and value.startswith(("{", " {")) and '"output"' in value[:200]:
        wrapped = mapping(json_or_none(value))
    else:
        wrapped = mapping(value)
    told = parts_text(wrapped.get("output") if "output" in wrapped else wrapped.get("content", value))
    exit_code = exit_status(mapping(wrapped.get("metadata")).get("exit_code"))
    header = told[:500] if (end := told.find("\nOutput:")) < 0 else told[:end]
    if exit_code is None and (match := EXIT_CODE.search(header)):
        exit_code = int(match[1])
    failed = None if exit_code is None else exit_code != 0
    if exit_code is None and isinstance(wrapped.get("success"), bool):
        failed = not wrapped["success"]
    if failed is None and told.startswith(REFUSED):
        failed = True
    if failed is None and told.startswith(("Success. Updated", "Plan updated")):
        failed = False
    return Output(text=told, failed=failed, exit_code=exit_code)


def compact(value: Any) -> str:
    """JSON of a small value for a message or detail; empty where it is too deep to write."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""
