"""Cursor: `~/.cursor/projects/…/agent-transcripts/…/*.jsonl`, lines `{role, message}`.

Calls have no ids and often no results, which then are in the order of the calls. Nothing has a time.
"""

from collections import deque
from datetime import datetime

from msgspec.structs import replace

from grading.formats.blocks import BlockParser
from grading.formats.events import Event, TranscriptHeader
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, Record
from grading.formats.tools import ToolTable
from grading.formats.values import kind_by_name, mapping, text, word_set

ROLES = word_set("assistant system tool user")
TURN_END = "turn_ended"


class Cursor(BlockParser):
    format = "cursor"
    title = "Cursor"
    logs = "~/.cursor/projects/<project>/agent-transcripts/**/*.jsonl"
    folders = (".cursor/projects",)
    has_common_digests = True
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "Bash Shell run_terminal_cmd",
                "write": "Write write",
                "edit": "ApplyPatch Delete Edit MultiEdit StrReplace edit_file search_replace",
                "read": "Read read_file",
                "search": "Glob Grep LS SemanticSearch codebase_search file_search grep list_dir",
                "web": "WebFetch WebSearch web_search",
                "agent": "Task",
                "plan": "TodoWrite todo_write",
            }
        ),
        built_in=word_set("AskQuestion ReadLints SwitchMode"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._model = ""
        self._open_calls: deque[str] = deque(maxlen=100)

    @staticmethod
    def score(record: Record) -> float:
        if record.get("type") == TURN_END and "status" in record:
            return LIKELY
        is_foreign = {"type", "timestamp", "uuid", "sessionId", "content"} & record.keys()
        has_blocks = isinstance(mapping(record.get("message")).get("content"), list)
        return LIKELY if text(record.get("role")) in ROLES and has_blocks and not is_foreign else NO

    def feed(self, record: Record) -> list[Event] | None:
        role = text(record.get("role"))
        if record.get("type") == TURN_END:
            return []
        if role not in ROLES:
            self.note_unknown(f"role {role}")
            return None
        self._model = text(record.get("model")) or self._model
        return list(self.content_events(role, mapping(record.get("message")).get("content"), None))

    def _call(self, block: Record, at: datetime | None) -> Event:
        call = super()._call(block, at)
        self._open_calls.append(f"call-{call.number}")
        return replace(call, call_id=self._open_calls[-1])

    def _result(self, block: Record, at: datetime | None) -> Event:
        result = super()._result(block, at)
        return replace(result, call_id=self._open_calls.popleft() if self._open_calls else "")

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record)

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(model=self._model or None)
