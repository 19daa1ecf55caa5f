"""`codex exec --json`: a stream of thread, turn and item events."""

from typing import TYPE_CHECKING, Any, Final

from grading.formats import codex_tools
from grading.formats.events import ApiError, Event, Message, Role, ToolResult
from grading.formats.failures import failure_reason
from grading.formats.usage import read_tokens
from grading.formats.values import exit_status, mapping, mappings, optional, parts_text, text, words

if TYPE_CHECKING:
    from grading.formats.reader import Parser, Record

ITEM_EVENTS: Final = words(
    "thread.started turn.started turn.completed turn.failed item.started item.updated item.completed error"
)
SPOKEN: Final = words("agent_message assistant_message reasoning")
CALLS: Final = words("command_execution file_change mcp_tool_call web_search")
SILENT: Final = words("collab_tool_call todo_list")


class ExecItems:
    """Reads the events of `codex exec --json`. Only a completed item counts; it says all that the earlier ones said."""

    def __init__(self, parser: "Parser") -> None:
        self._parser = parser
        self.thread: str | None = None
        self._failure = ""

    def feed(self, kind: str, record: "Record") -> list[Event] | None:
        if kind == "thread.started":
            self.thread = optional(record.get("thread_id"))
            return []
        if kind == "turn.completed":
            usage = mapping(record.get("usage"))
            tokens = read_tokens(usage, self._parser.problems, input_has_cached=True)
            return [] if tokens.is_empty else [self._parser.usage_of(tokens, model="", at=None)]
        if kind in ("turn.failed", "error"):
            told = text(mapping(record.get("error")).get("message")) or text(record.get("message"))
            is_repeat, self._failure = kind == "turn.failed" and told == self._failure, told
            if is_repeat:
                return []
            return [ApiError(number=self._parser.number(), reason=failure_reason(told), text=told)]
        if kind != "item.completed":
            return []
        return self._item(mapping(record.get("item")))

    def _item(self, item: "Record") -> list[Event] | None:
        kind, number = text(item.get("type") or item.get("item_type")), self._parser.number
        if kind in SPOKEN:
            told = text(item.get("text"))
            if not told.strip():
                return []
            return [Message(number=number(), role=Role.ASSISTANT, text=told, thinking=kind == "reasoning")]
        if kind in CALLS:
            call_id, status = text(item.get("id")), text(item.get("status"))
            name, meaning, told = _meaning(item, kind)
            exit_code = exit_status(item.get("exit_code"))
            failed = {"completed": False, "failed": True}.get(status) if exit_code is None else exit_code != 0
            return [
                meaning.event(number(), call_id=call_id, name=name),
                ToolResult(number=number(), call_id=call_id, text=told, failed=failed, exit_code=exit_code),
            ]
        if kind == "error":
            self._parser.problems.note(f"the harness said: {text(item.get('message'))[:80]!r}")
        elif kind not in SILENT:
            self._parser.unknown(f"item/{kind}")
            return None
        return []


def _meaning(item: "Record", kind: str) -> tuple[str, codex_tools.CodexCall, str]:
    """(tool, what was called, what it said) of a completed item."""
    if kind == "command_execution":
        called = codex_tools.call("shell", {"command": text(item.get("command"))})
        return "shell", called, text(item.get("aggregated_output"))
    if kind == "file_change":
        changes: list[Any] = [dict(change) for change in mappings(item.get("changes"))]
        paths = [text(change.get("path")) for change in changes]
        call = codex_tools.CodexCall(
            kind="edit", arguments={"changes": changes, "paths": paths}, path=paths[0] if paths else ""
        )
        return "apply_patch", call, ""
    name = text(item.get("tool")) or kind
    if kind == "mcp_tool_call" and (server := text(item.get("server"))):
        name = f"mcp__{server}__{name}"
    arguments = mapping(item.get("arguments")) or {"query": text(item.get("query"))}
    return name, codex_tools.call(name, arguments), parts_text(mapping(item.get("result")).get("content"))
