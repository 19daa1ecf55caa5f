"""Droid: `~/.factory/sessions/…/*.jsonl`, and `droid exec --output-format stream-json`.

A message without a role in it is of the stream. A command's exit code is only in the text of its result.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from grading.formats.blocks import BlockParser
from grading.formats.events import ApiError, Boundary, Event, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Record
from grading.formats.tools import ToolTable
from grading.formats.values import (
    content_text,
    exit_code_or_none,
    kind_by_name,
    mapping,
    parse_time,
    text,
    text_or_none,
    word_set,
)

STREAM: Final = word_set("completion message tool_call tool_result")
SILENT: Final = word_set("session_end todo_state")
FAILURE: Final = re.compile(r"\AError: Command failed \(exit code: -?\d{1,9}\)\n?")
EXIT_CODE: Final = re.compile(r"\(exit code: (-?\d{1,9})\)|\[Process exited with code (-?\d{1,9})\]")


class Droid(BlockParser):
    format = "droid"
    title = "Droid"
    logs = "~/.factory/sessions/**/*.jsonl; droid exec -o stream-json"
    folders = (".factory/sessions",)
    tools = ToolTable(
        kinds=kind_by_name(
            {
                "shell": "Execute Shell",
                "write": "Create",
                "edit": "ApplyPatch Edit MultiEdit",
                "read": "Read",
                "search": "Glob Grep LS",
                "web": "FetchUrl WebSearch",
                "agent": "Task",
                "plan": "ExitSpecMode TodoWrite",
            }
        ),
        built_in=word_set("AskUser Skill slack_post_message"),
    )

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._session: dict[str, str] = {}

    @staticmethod
    def score(record: Record) -> float:
        kind = text(record.get("type"))
        if kind == "session_start":
            return SURE if "id" in record and ({"sessionTitle", "owner", "title"} & record.keys()) else NO
        if "uuid" in record or "data" in record:
            return NO
        if {"session_id", "sessionId"} & record.keys() and kind in STREAM:
            return SURE if {"finalText", "role", "toolCallId", "toolId"} & record.keys() else NO
        is_message = kind == "message" and {"id", "timestamp"} <= record.keys()
        blocks = mapping(record.get("message")).get("content")
        return LIKELY if is_message and isinstance(blocks, list) and "toolResult" not in str(blocks)[:2000] else NO

    def feed(self, record: Record) -> list[Event] | None:
        kind, at = text(record.get("type")), self.note_time(parse_time(record.get("timestamp")))
        for name in ("session_id", "sessionId", "model", "cwd"):
            if isinstance(record.get(name), str):
                self._session.setdefault(name, record[name])
        if kind == "session_start":
            self._note_session(record)
        elif kind == "message":
            return list(self._message(record))
        elif kind == "tool_call":
            arguments, call_id = record.get("parameters"), _call_id(record)
            return [self.build_call(self.tools.read_call(text(record.get("toolName")), arguments, call_id), at)]
        elif kind == "tool_result":
            return [self._stream_result(record)]
        elif kind == "completion":
            answer = list(self.text_events("assistant", text(record.get("finalText")), at))
            return [*answer, Boundary(number=self.next_number(), at=at, kind="end")]
        elif kind == "error":
            message = text(record.get("message"))
            return [ApiError(number=self.next_number(), at=at, reason=failure_reason(message), text=message)]
        elif kind == "compaction_state":
            return [Boundary(number=self.next_number(), at=at, kind="compaction")]
        elif kind not in SILENT and not (kind == "system" and {"session_id", "sessionId"} & record.keys()):
            self.note_unknown(kind)
            return None
        return []

    def shared_identity(self, record: Record) -> str:
        return text(record.get("id")) if record.get("type") == "message" else ""

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            session_id=self._session.get("id") or self._session.get("session_id") or self._session.get("sessionId"),
            model=self.model or self._session.get("model"),
            cwd=self._session.get("cwd"),
            harness_version=self._session.get("version"),
            title=text_or_none(self._session.get("title")),
        )

    def _note_session(self, record: Record) -> None:
        fields = {"id": record.get("id"), "title": record.get("sessionTitle") or record.get("title")}
        fields |= {"cwd": record.get("cwd"), "version": record.get("version")}
        self._session |= {name: value for name, value in fields.items() if isinstance(value, str)}
        self.note_setting("folder", record.get("cwd"))

    def _message(self, record: Record) -> Iterator[Event]:
        at, message = parse_time(record.get("timestamp")), mapping(record.get("message"))
        if not message:  # of the stream
            yield from self.text_events(text(record.get("role")), text(record.get("text")), at)
            return
        yield from self.content_events(text(message.get("role")), message.get("content"), at)
        self.count_response(text(message.get("model")) or text(record.get("model")))

    def _result(self, block: Record, at: datetime | None) -> Event:
        """A result, with the exit code that its text names."""
        output, exit_code = _read_output(content_text(block.get("content")))
        failed = block.get("is_error") is True or bool(exit_code)
        call_id = text(block.get("tool_use_id")) or text(block.get("toolUseId"))
        return self.build_result(call_id, output, at, failed=failed, exit_code=exit_code)

    def _stream_result(self, record: Record) -> Event:
        """The result of a call in the stream; its value is text, or an object with the output streams."""
        value, at = record.get("value"), parse_time(record.get("timestamp"))
        fields = mapping(value)
        streams = [text(fields.get("stdout")), text(fields.get("stderr"))]
        output, exit_code = _read_output(content_text(value) or "\n".join(filter(None, streams)))
        if "exitCode" in fields:
            exit_code = exit_code_or_none(fields["exitCode"])
        failed = record.get("isError") is True or bool(exit_code)
        return self.build_result(_call_id(record), output, at, failed=failed, exit_code=exit_code)


def _call_id(record: Record) -> str:
    """The id of a call or a result in the stream."""
    return text(record.get("toolCallId")) or text(record.get("id"))


def _read_output(output: str) -> tuple[str, int | None]:
    """(a result without the line that only names the exit code, the exit code at its beginning or end if any)."""
    match = EXIT_CODE.search(output[:300]) or EXIT_CODE.search(output[-300:])
    return FAILURE.sub("", output), int(match[1] or match[2]) if match else None
