"""What the tool calls of a harness mean, from a table of its tools."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from grading.formats.events import Clarity, ToolCall
from grading.formats.lines import json_or_none
from grading.formats.values import items, text

# The names of arguments that several harnesses use, and those by which signals know them.
RENAMED: Final = {
    "absolute_path": "path",
    "file": "path",
    "filePath": "path",
    "file_path": "path",
    "filename": "path",
    "newString": "new_string",
    "notebook_path": "path",
    "oldString": "old_string",
    "cmd": "command",
    "patchText": "patch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """A harness's tools: the kind of each by name, and others that are built in, by which nothing is graded.

    `commandless`: shell tools whose calls need no command, since they read or stop a process that runs.
    """

    kinds: Mapping[str, str]
    built_in: frozenset[str] = frozenset()
    commandless: frozenset[str] = field(default=frozenset())

    def read_call(self, name: str, arguments: object, call_id: str) -> ToolCall:
        """A call without a number; `arguments` is an object, JSON text, or anything else in a broken log."""
        fields = json_or_none(arguments) if isinstance(arguments, str) else arguments
        kind = self.kinds.get(name, "other")
        if not name or not isinstance(fields, dict):
            unread = {"input": arguments} if isinstance(arguments, str) else {}
            return ToolCall(call_id=call_id, name=name, kind=kind, arguments=unread, clarity=Clarity.UNREADABLE)
        named: dict[str, Any] = {RENAMED.get(str(key), str(key)): value for key, value in fields.items()}
        command = _command(named.get("command")) if kind == "shell" else ""
        return ToolCall(
            call_id=call_id,
            name=name,
            kind=kind,
            arguments=named,
            command=command,
            path=text(named.get("path")),
            clarity=self._clarity(name, kind, command),
        )

    def _clarity(self, name: str, kind: str, command: str) -> Clarity:
        if kind == "shell" and name not in self.commandless:
            return Clarity.UNDERSTOOD if command.strip() else Clarity.UNREADABLE
        return Clarity.UNDERSTOOD if name in self.kinds or name in self.built_in else Clarity.OPAQUE


def _command(value: object) -> str:
    """A command line from text, or from a list of words."""
    return text(value) or shlex.join(word for word in items(value) if isinstance(word, str))
