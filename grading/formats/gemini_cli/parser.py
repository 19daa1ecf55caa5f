"""Gemini CLI: a chat (`~/.gemini/tmp/<project>/chats/session-*.json`), and the newer one with a record on each line.

In the newer form a message is written again, with the same id, when a call of it ends: its last form counts. Saved
checkpoints and early versions have a `history` of the model's own contents. The harness counts cached tokens as input.
"""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from grading.formats.events import ApiError, Event, Role, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.gemini_cli.outputs import read_output
from grading.formats.lines import Problems, RecentKeys
from grading.formats.reader import LIKELY, NO, SURE, Form, FormatTier, Parser, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import ReportedTokens
from grading.formats.values import (
    content_text,
    count_or_none,
    items,
    kind_by_name,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    word_set,
)

TOOLS: Final = ToolTable(
    kinds=kind_by_name(
        {
            "shell": "list_background_processes read_background_output run_shell_command",
            "write": "write_file",
            "edit": "edit replace",
            "read": "read_file read_many_files",
            "search": "glob grep_search list_directory ls search search_file_content",
            "web": "google_web_search web_fetch",
            "agent": "browser_agent cli_help codebase_investigator delegate_to_agent generalist",
            "plan": "enter_plan_mode exit_plan_mode tracker_create_task tracker_update_task write_todos",
        }
    ),
    built_in=word_set("activate_skill ask_user complete_task get_internal_docs save_memory"),
    commandless=word_set("list_background_processes read_background_output"),
)
MESSAGE_TYPES: Final = word_set("error gemini info model user warning")
SESSION_FIELDS: Final = word_set("directories kind lastUpdated projectHash sessionId startTime summary")
CANCELLED: Final = word_set("canceled cancelled")


class GeminiCli(Parser):
    format = "gemini-cli"
    title = "Gemini CLI"
    tier = FormatTier.FULL
    logs = "~/.gemini/tmp/<project>/chats/session-*.json"
    folders = (".gemini/tmp",)
    samples, sources = 3, 1
    forms = frozenset({Form.LINES, Form.DOCUMENT})
    paths = frozenset({"messages.item", "history.item", *SESSION_FIELDS})
    has_common_digests = True

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._session: dict[str, Any] = {}
        self._pending: Record = {}
        """The last message: it may be written again."""
        self._message_ids = RecentKeys()
        self._call_ids = RecentKeys()
        self._open_calls: deque[str] = deque(maxlen=100)
        """The ids of the calls of a `history` that have no result yet."""

    @staticmethod
    def score(record: Record) -> float:
        if "messages" in record:  # a whole chat on one line
            return NO
        if {"sessionId", "projectHash"} <= record.keys() or (record.keys() <= {"$set", "$rewindTo"} and record):
            return SURE
        is_foreign = {"message", "uuid", "sessionId", "role", "data"} & record.keys()
        if is_foreign or not {"id", "timestamp", "content", "type"} <= record.keys():
            return NO
        kind = text(record.get("type"))
        if kind == "gemini":
            return SURE
        return LIKELY if kind in MESSAGE_TYPES else NO

    @staticmethod
    def score_document(document: Any) -> float:
        fields = mapping(document)
        if isinstance(fields.get("messages"), list) and {"sessionId", "startTime"} <= fields.keys():
            kinds = {text(message.get("type")) for message in mappings(fields["messages"])}
            return SURE if "projectHash" in fields or kinds & MESSAGE_TYPES else NO
        turn = next(iter(mappings(fields.get("history"))), {})
        return LIKELY if isinstance(turn.get("parts"), list) and "role" in turn else NO

    def feed(self, record: Record) -> list[Event] | None:
        if "path" not in record:  # a line
            return self._line(record)
        path, value = text(record["path"]), record.get("value")
        if path == "history.item":
            return list(self._content(mapping(value)))
        if path != "messages.item":
            self._note_session({path: value})
            return []
        return self._message(mapping(value))

    def shared_identity(self, record: Record) -> str:
        value = mapping(record.get("value")) or record
        return text(value.get("id")) or self.chain_identity(value)

    def finish(self) -> list[Event]:
        return self._flush()

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            session_id=text_or_none(self._session.get("sessionId")),
            model=self.model,
            cwd=text_or_none(next(iter(items(self._session.get("directories"))), None)),
            title=text_or_none(self._session.get("summary")),
            is_subagent=self._session.get("kind") == "subagent",
        )

    def _note_session(self, fields: Record) -> None:
        self._session |= {name: value for name, value in fields.items() if name in SESSION_FIELDS}
        for name in ("startTime", "lastUpdated"):
            self.note_time(parse_time(fields.get(name)))

    def _line(self, record: Record) -> list[Event] | None:
        """Events of a line: a message, or what changed of the session. None if it is neither."""
        if "projectHash" in record or "$set" in record:
            self._note_session(mapping(record.get("$set", record)))
            return []
        if "$rewindTo" in record:
            return self._flush()
        if text(record.get("id")) and record.get("id") == self._pending.get("id"):
            self._pending = record
            return []
        if text(record.get("type")) not in MESSAGE_TYPES:
            self.note_unknown(text(record.get("type")))
            return None
        events = self._flush()
        self._pending = record
        return events

    def _flush(self) -> list[Event]:
        """The events of the pending message, which then is no longer pending."""
        message, self._pending = self._pending, {}
        return (self._message(message) or []) if message else []

    def _message(self, message: Record) -> list[Event] | None:
        """Events of a message; of one that was read before only those of new calls. None if its type is unknown."""
        kind, at = text(message.get("type")), self.note_time(parse_time(message.get("timestamp")))
        if kind not in MESSAGE_TYPES:
            self.note_unknown(kind)
            return None
        if self._message_ids.check_and_add(text(message.get("id")) or f"message {self._last_number}"):
            return list(self._calls(message, at))
        content = content_text(message.get("content"))
        if kind in ("gemini", "model"):
            return list(self._response(message, content, at))
        if kind == "user":
            return self.build_user_messages(content, at)
        if kind == "error":
            return [ApiError(number=self.next_number(), at=at, reason=failure_reason(content), text=content)]
        if "cancelled" in content.lower():
            self.note_interruption()
        return []

    def _response(self, message: Record, content: str, at: datetime | None) -> Iterator[Event]:
        """The thoughts, the text, the calls with their results, and the usage of a response."""
        for thought in mappings(message.get("thoughts")):
            parts = [text(thought.get("subject")), text(thought.get("description"))]
            yield from self.build_messages(Role.ASSISTANT, "\n".join(filter(None, parts)), at, thinking=True)
        yield from self.build_messages(Role.ASSISTANT, content, at)
        yield from self._calls(message, at)
        model, tokens = text(message.get("model")), _read_tokens(mapping(message.get("tokens")))
        self.count_response(model)
        if not tokens.is_empty:
            yield self.build_usage(tokens, model=model, at=at, message=text(message.get("id")))

    def _calls(self, message: Record, at: datetime | None) -> Iterator[Event]:
        """The calls of a message that were not read before, each with its result."""
        for item in mappings(message.get("toolCalls")):
            call_id, status = text(item.get("id")), text(item.get("status"))
            if call_id and self._call_ids.check_and_add(call_id):
                continue
            called_at = self.note_time(parse_time(item.get("timestamp"))) or at
            call = self.build_call(TOOLS.read_call(text(item.get("name")), item.get("args"), call_id), called_at)
            yield call
            responses = [mapping(part.get("functionResponse")) for part in mappings(item.get("result"))]
            output = "\n".join(filter(None, map(_response_text, responses))) or text(item.get("resultDisplay"))
            if status in ("success", "error"):
                yield self._result(call_id, call.name, output, called_at, failed=status == "error")
            elif status in CANCELLED:
                self.note_interruption()

    def _result(self, call_id: str, tool: str, output: str, at: datetime | None, *, failed: bool) -> Event:
        """A call's result. A command that ran is a success, so its exit code is read, too; 0 may be left out."""
        has_failed, exit_code = False, None
        if TOOLS.kinds.get(tool) == "shell":
            output, has_failed, exit_code = read_output(output)
        return self.build_result(call_id, output, at, failed=failed or has_failed, exit_code=exit_code)

    def _content(self, turn: Record) -> Iterator[Event]:
        """Events of a turn of a `history`: its texts, calls and results."""
        is_user, at = turn.get("role") == "user", self.note_time(parse_time(turn.get("ts")))
        for part in mappings(turn.get("parts")):
            content = text(part.get("text"))
            if is_user:
                yield from self.build_user_messages(content, at)
            else:
                yield from self.build_messages(Role.ASSISTANT, content, at, thinking=part.get("thought") is True)
            if call := mapping(part.get("functionCall")):
                call_id = text(call.get("id")) or f"call-{self._last_number + 1}"
                self._open_calls.append(call_id)
                yield self.build_call(TOOLS.read_call(text(call.get("name")), call.get("args"), call_id), at)
            if response := mapping(part.get("functionResponse")):
                failed = "error" in mapping(response.get("response"))
                call_id, name = self._take_call(text(response.get("id"))), text(response.get("name"))
                yield self._result(call_id, name, _response_text(response), at, failed=failed)

    def _take_call(self, call_id: str) -> str:
        """The id of the call of a response, which often has another id than its call: then they are in order."""
        if call_id in self._open_calls:
            self._open_calls.remove(call_id)
            return call_id
        return self._open_calls.popleft() if self._open_calls else call_id


def _response_text(response: Record) -> str:
    fields = mapping(response.get("response"))
    return content_text(fields.get("output")) or content_text(fields.get("error"))


def _read_tokens(tokens: Record) -> ReportedTokens:
    """A response's tokens: thoughts are output, and cached tokens are taken off the input."""
    output, thoughts = count_or_none(tokens.get("output")), count_or_none(tokens.get("thoughts"))
    return ReportedTokens(
        input_tokens=count_or_none(tokens.get("input")),
        output_tokens=None if output is None else output + (thoughts or 0),
        cache_read_tokens=count_or_none(tokens.get("cached")),
    ).without_cached_input()
