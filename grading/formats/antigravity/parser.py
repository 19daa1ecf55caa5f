"""Antigravity: `~/.gemini/antigravity-cli/…/transcript.jsonl`, a step on each line.

A planner's response names its calls, without ids; the steps after it are their results, in order.
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from grading.formats.blocks import BlockParser
from grading.formats.events import Boundary, Event, Role, TranscriptHeader
from grading.formats.lines import Problems
from grading.formats.reader import NO, SURE, Record
from grading.formats.tools import ToolTable
from grading.formats.values import kind_by_name, mapping, mappings, parse_time, text, word_set

RESULTS: Final = word_set(
    "BROWSER_NAVIGATE CODE_ACTION GENERIC GREP_SEARCH LIST_DIRECTORY RUN_COMMAND SEARCH_WEB VIEW_FILE"
)
SILENT: Final = word_set("CONVERSATION_HISTORY")
ARGUMENTS: Final = {
    "AbsolutePath": "path",
    "CodeContent": "content",
    "CommandLine": "command",
    "DirectoryPath": "path",
    "TargetFile": "path",
}
FAILED: Final = word_set("CANCELED ERROR FAILED")
EXIT_CODE: Final = re.compile(r"^The command failed with exit code:? (\d{1,9})", re.MULTILINE)
OPEN, CLOSE = "<USER_REQUEST>", "</USER_REQUEST>"


class Antigravity(BlockParser):
    format = "antigravity"
    title = "Antigravity"
    logs = "~/.gemini/antigravity-cli/**/transcript.jsonl"
    folders = (".gemini/antigravity-cli",)
    has_common_digests = True
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "run_command",
                "write": "write_file write_to_file",
                "edit": "multi_replace_file_content replace_file_content",
                "read": "view_file view_file_outline",
                "search": "codebase_search find_by_name grep_search list_dir",
                "web": "browser_navigate read_url_content search_web",
                "agent": "browser_subagent",
                "plan": "task_boundary",
            }
        ),
        built_in=word_set("command_status generate_image notify_user send_command_input"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._open_calls: deque[str] = deque(maxlen=100)

    @staticmethod
    def score(record: Record) -> float:
        return SURE if {"step_index", "source", "type", "status"} <= record.keys() else NO

    def feed(self, record: Record) -> list[Event] | None:
        """The events of a record; None if it is of an unknown kind. An unknown kind of the model is noted and read as
        the result of a call.
        """
        kind, at = text(record.get("type")), self.note_time(parse_time(record.get("created_at")))
        content = text(record.get("content"))
        if kind == "USER_INPUT":
            request = content.partition(OPEN)[2].partition(CLOSE)[0].strip() or content
            return self.build_messages(Role.USER, request, at)
        if kind == "PLANNER_RESPONSE":
            return list(self._response(record))
        if kind == "CHECKPOINT":
            boundary = Boundary(number=self.next_number(), at=at, kind="compaction")
            return [boundary, *self.build_messages(Role.SCAFFOLD, content, at)]
        if kind == "SYSTEM_MESSAGE":
            return self.build_messages(Role.SCAFFOLD, content, at)
        if kind in SILENT:
            return []
        if kind not in RESULTS:
            self.note_unknown(kind)
            if record.get("source") != "MODEL":
                return None
        call_id = self._open_calls.popleft() if self._open_calls else ""
        match = EXIT_CODE.search(content[:300]) if kind == "RUN_COMMAND" else None
        failed = match is not None or text(record.get("status")) in FAILED
        return [self.build_result(call_id, content, at, failed=failed, exit_code=int(match[1]) if match else None)]

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record)

    def header(self) -> TranscriptHeader:
        return TranscriptHeader()

    def _response(self, record: Record) -> Iterator[Event]:
        """Events of a planner's response: its thinking, its text and its calls, which get ids of our own."""
        at = parse_time(record.get("created_at"))
        yield from self.build_messages(Role.ASSISTANT, text(record.get("thinking")), at, thinking=True)
        yield from self.build_messages(Role.ASSISTANT, text(record.get("content")), at)
        for item in mappings(record.get("tool_calls")):
            call_id = f"call-{self._last_number + 1}"
            self._open_calls.append(call_id)
            arguments = {ARGUMENTS.get(key, key): _plain(value) for key, value in mapping(item.get("args")).items()}
            yield self.build_call(self.tools.read_call(text(item.get("name")), arguments, call_id), at)


def _plain(value: Any) -> Any:
    """An argument's value, which the harness writes as JSON text."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
