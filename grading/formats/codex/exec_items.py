"""`codex exec --json`: a stream of thread, turn and item events."""

from typing import Any, Final

from msgspec.structs import replace

from grading.formats.codex import tools
from grading.formats.events import ApiError, Event, Role, ToolCall, ToolResult
from grading.formats.failures import failure_reason
from grading.formats.reader import Parser, Record
from grading.formats.usage import read_tokens
from grading.formats.values import content_text, exit_code_or_none, mapping, mappings, text, text_or_none, word_set

ITEM_EVENTS: Final = word_set(
    "thread.started turn.started turn.completed turn.failed item.started item.updated item.completed error"
)
MESSAGES: Final = word_set("agent_message assistant_message reasoning")
CALLS: Final = word_set("command_execution file_change mcp_tool_call web_search")
SILENT: Final = word_set("collab_tool_call todo_list")
# Whether a call failed, by its status.
STATUS_FAILED: Final = {"completed": False, "failed": True}


class ExecItems:
    """Reads the events of `codex exec --json`. Started and updated items are skipped: the completed one has it all."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self.thread: str | None = None
        self._turn_error: str | None = None  # the message of the last error in this turn

    def feed(self, kind: str, record: Record) -> list[Event] | None:
        """The events of a record of a `kind` in ITEM_EVENTS; None if it has an item of an unknown type."""
        if kind == "thread.started":
            self.thread = text_or_none(record.get("thread_id"))
            return []
        if kind == "turn.started":
            self._turn_error = None
            return []
        if kind == "turn.completed":
            usage = mapping(record.get("usage"))
            tokens = read_tokens(usage, self._parser.problems, input_has_cached=True)
            return [] if tokens.is_empty else [self._parser.build_usage(tokens, model="", at=None)]
        if kind in ("turn.failed", "error"):
            message = text(mapping(record.get("error")).get("message")) or text(record.get("message"))
            is_repeat = kind == "turn.failed" and message == self._turn_error  # an `error` reported it already
            self._turn_error = message
            if is_repeat:
                return []
            return [ApiError(number=self._parser.next_number(), reason=failure_reason(message), text=message)]
        if kind != "item.completed":
            return []
        return self._item(mapping(record.get("item")))

    def _item(self, item: Record) -> list[Event] | None:
        """Events of one completed item; None if its type is unknown."""
        kind, next_number = text(item.get("type") or item.get("item_type")), self._parser.next_number
        if kind in MESSAGES:
            is_thought = kind == "reasoning"
            return self._parser.build_messages(Role.ASSISTANT, text(item.get("text")), None, thinking=is_thought)
        if kind == "user_message":
            content = content_text(item.get("text")) or content_text(item.get("content"))
            return self._parser.build_user_messages(content, None)
        if kind in CALLS:
            call_id, status = text(item.get("id")), text(item.get("status"))
            call, output = _read_call(item, kind)
            exit_code = exit_code_or_none(item.get("exit_code"))
            failed = STATUS_FAILED.get(status) if exit_code is None else exit_code != 0
            return [
                replace(call, number=next_number(), call_id=call_id),
                ToolResult(number=next_number(), call_id=call_id, text=output, failed=failed, exit_code=exit_code),
            ]
        if kind == "error":
            self._parser.problems.note(f"the harness said: {text(item.get('message'))[:80]!r}")
        elif kind not in SILENT:
            self._parser.note_unknown(f"item/{kind}")
            return None
        return []


def _read_call(item: Record, kind: str) -> tuple[ToolCall, str]:
    """(call, output text) of a completed item."""
    if kind == "command_execution":
        call = tools.read_call("shell", {"command": text(item.get("command"))})
        return call, text(item.get("aggregated_output"))
    if kind == "file_change":
        changes: list[Any] = [dict(change) for change in mappings(item.get("changes"))]
        paths = [text(change.get("path")) for change in changes]
        arguments = {"changes": changes, "paths": paths}
        path = paths[0] if paths else ""
        return ToolCall(name="apply_patch", kind="edit", arguments=arguments, path=path), ""
    name = text(item.get("tool")) or kind
    if kind == "mcp_tool_call" and (server := text(item.get("server"))):
        name = f"mcp__{server}__{name}"
    call = tools.read_call(name, mapping(item.get("arguments")) or {"query": text(item.get("query"))})
    return call, content_text(mapping(item.get("result")).get("content"))
