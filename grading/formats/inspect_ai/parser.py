"""Inspect: the log of an evaluation, a JSON document or an `.eval` archive. Its samples are read one after the other.

The conversation is in a sample's `messages`, which have no times; its `events` repeat the conversation, with times.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from msgspec.structs import replace

from grading.formats.events import ApiError, Event, Role, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.inspect_ai.archive import is_archive, read_archive
from grading.formats.lines import LineTally, Problems
from grading.formats.reader import LIKELY, NO, SURE, Form, FormatTier, Parser, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import ReportedTokens, select_tokens
from grading.formats.values import (
    content_text,
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
            # Inspect's own, and those of the agents that it runs
            "shell": "Bash bash bash_session exec_command execute_bash run_shell_command shell shell_command",
            "edit": "text_editor",
            "read": "read_file",
            "search": "grep list_files",
            "web": (
                "web_browser web_browser_back web_browser_click web_browser_forward web_browser_go web_browser_refresh "
                "web_browser_scroll web_browser_type web_browser_type_submit web_search"
            ),
            "agent": "handoff",
            "plan": "update_plan",
        }
    ),
    built_in=word_set("memory skill submit think"),
    commandless=word_set("bash_session"),
)
# Built-in tools whose effect can't be determined from the call.
OPAQUE: Final = word_set("code_execution computer python tool_support")
VIEW: Final = "view"
SAMPLE_FIELDS: Final = word_set(
    "completed_at epoch error events.item.timestamp id messages.item model_usage output.usage started_at uuid"
)
HEADER_FIELDS: Final = word_set("error eval stats status version")
IN_DOCUMENT: Final = "samples.item."


class InspectAi(Parser):
    format = "inspect-ai"
    title = "Inspect"
    tier = FormatTier.FULL
    logs = "logs/*.eval; logs/*.json"
    samples, sources = 13, 1
    forms = frozenset({Form.DOCUMENT, Form.ARCHIVE})
    paths = HEADER_FIELDS | frozenset(IN_DOCUMENT + name for name in SAMPLE_FIELDS)
    custom_tools = OPAQUE
    has_common_digests = True

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._evaluation: Record = {}
        self._session_ids: list[str] = []
        """The ids of the first two samples."""

    @staticmethod
    def score_document(document: Any) -> float:
        evaluation = mapping(mapping(document).get("eval"))
        if {"task", "model"} <= evaluation.keys():
            return SURE if {"version", "status"} <= mapping(document).keys() else LIKELY
        return NO

    @staticmethod
    def score_bytes(head: bytes) -> tuple[float, Form]:
        return (SURE if is_archive(head) else NO), Form.ARCHIVE

    @classmethod
    def read_records(
        cls, stream: BinaryIO, form: Form, tally: LineTally, *, max_line: int
    ) -> Iterator[tuple[bytes, dict[str, Any]]]:
        if form is Form.ARCHIVE:
            yield from read_archive(stream, tally, HEADER_FIELDS, SAMPLE_FIELDS, max_size=max_line)
            return
        for source, record in super().read_records(stream, form, tally, max_line=max_line):
            yield source, record | {"path": record["path"].removeprefix(IN_DOCUMENT)}

    def feed(self, record: Record) -> list[Event] | None:
        path, value = text(record.get("path")), record.get("value")
        if path == "messages.item":
            return self._message(mapping(value))
        if path == "eval":
            self._evaluation = {key: item for key, item in mapping(value).items() if key != "dataset"}
            self.note_setting("model", self._evaluation.get("model"))
            self.note_setting("harness_version", self._version)
        elif path == "model_usage":
            return list(self._usage(mapping(value)))
        elif path == "error" and mapping(value):
            message = text(mapping(value).get("message"))
            return [ApiError(number=self.next_number(), reason=failure_reason(message), text=message)]
        elif path in ("events.item.timestamp", "started_at", "completed_at"):
            self.note_time(parse_time(value))
        elif path == "uuid" and len(self._session_ids) < 2 and isinstance(value, str):  # noqa: PLR2004 - one or several
            self._session_ids.append(value)
        return []

    def shared_identity(self, record: Record) -> str:
        if record.get("path") != "messages.item":
            return ""
        return text(mapping(record.get("value")).get("id")) or self.chain_identity(record.get("value"))

    def header(self) -> TranscriptHeader:
        run = text_or_none(self._evaluation.get("eval_id")) or text_or_none(self._evaluation.get("run_id"))
        return TranscriptHeader(
            session_id=self._session_ids[0] if len(self._session_ids) == 1 else run,
            model=text_or_none(self._evaluation.get("model")),
            harness_version=self._version,
            title=text_or_none(self._evaluation.get("task")),
        )

    @property
    def _version(self) -> str | None:
        return text_or_none(mapping(self._evaluation.get("packages")).get("inspect_ai"))

    def _message(self, message: Record) -> list[Event] | None:
        """Events of a message of a sample; None if its role is unknown."""
        role, content = text(message.get("role")), message.get("content")
        if role == "assistant":
            return list(self._assistant(message))
        if role == "tool":
            return [self._result(message)]
        if role not in ("system", "user"):
            self.note_unknown(f"role {role}")
            return None
        return self.build_messages(Role.USER if role == "user" else Role.SCAFFOLD, content_text(content), None)

    def _assistant(self, message: Record) -> Iterator[Event]:
        """The text, the reasoning and the calls of a response."""
        content = message.get("content")
        reasoning = [text(part.get("reasoning")) for part in mappings(content) if part.get("type") == "reasoning"]
        yield from self.build_messages(Role.ASSISTANT, "\n".join(filter(None, reasoning)), None, thinking=True)
        yield from self.build_messages(Role.ASSISTANT, content_text(content), None)
        self.count_response(text(message.get("model")))
        for item in mappings(message.get("tool_calls")):
            call = TOOLS.read_call(text(item.get("function")), item.get("arguments"), text(item.get("id")))
            if call.kind == "edit" and call.arguments.get("command") == VIEW:
                call = replace(call, kind="read")
            yield self.build_call(call, None)

    def _result(self, message: Record) -> Event:
        """A call's result. Inspect records no exit code, so whether a shell's command failed is unknown."""
        error = mapping(message.get("error"))
        output = content_text(message.get("content")) or text(error.get("message"))
        failed: bool | None = bool(error)
        if not error and TOOLS.kinds.get(text(message.get("function"))) == "shell":
            failed = None
        return self.build_result(text(message.get("tool_call_id")), output, None, failed=failed)

    def _usage(self, usage_by_model: Record) -> Iterator[Event]:
        """The usage of a sample, by model."""
        for model, usage in usage_by_model.items():
            tokens = _read_tokens(mapping(usage))
            if not tokens.is_empty:
                yield self.build_usage(tokens, model=model, at=None)


def _read_tokens(usage: Record) -> ReportedTokens:
    """A sample's tokens. If input and output make the total, the input includes cached tokens, which are taken off."""
    tokens = select_tokens(
        usage, "input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write"
    )
    total = None if tokens.input_tokens is None else tokens.input_tokens + (tokens.output_tokens or 0)
    has_cached = total is not None and total == usage.get("total_tokens")
    return tokens.without_cached_input() if has_cached else tokens
