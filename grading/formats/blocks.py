"""Reads messages whose content is a list of blocks, in the names that several harnesses share."""

from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar, Final

from grading.formats.events import Event, Role
from grading.formats.reader import Parser, Record
from grading.formats.tools import ToolTable
from grading.formats.values import content_text, exit_code_or_none, items, mapping, text, word_set

CALLS: Final = word_set("functionCall toolCall tool_call tool_use")
RESULTS: Final = word_set("functionResponse toolResult tool-result tool_result")
THOUGHTS: Final = word_set("reasoning think thinking")
SILENT: Final = word_set("file image image_url inlineData redacted_thinking video_url")


class BlockParser(Parser):
    """A parser of messages made of blocks: texts, thoughts, calls and results."""

    tools: ClassVar[ToolTable]

    def content_events(
        self, role: str, content: object, at: datetime | None, *, injected: bool = False
    ) -> Iterator[Event]:
        """Events of a message's content, which is a text or a list of blocks. `injected`: no person wrote it."""
        for block in [content] if isinstance(content, str | dict) else items(content):
            fields = {"type": "text", "text": block} if isinstance(block, str) else mapping(block)
            kind = text(fields.get("type"))
            if kind in CALLS:
                yield self._call(fields, at)
            elif kind in RESULTS:
                yield self._result(fields, at)
            elif kind in THOUGHTS:
                thought = text(fields.get("thinking")) or text(fields.get("think")) or text(fields.get("text"))
                yield from self.build_messages(Role.ASSISTANT, thought, at, thinking=True)
            elif kind == "text":
                yield from self.text_events(role, text(fields.get("text")), at, injected=injected)
            elif kind not in SILENT:
                self.note_unknown(f"block {kind}")

    def text_events(self, role: str, content: str, at: datetime | None, *, injected: bool = False) -> list[Event]:
        """Messages of a text by the role that its harness names."""
        if role == "assistant":
            return self.build_messages(Role.ASSISTANT, content, at)
        return self.build_user_messages(content, at, injected=injected or role != "user")

    def _call(self, block: Record, at: datetime | None) -> Event:
        """The call of a block, whose arguments and ids have different names in different harnesses."""
        arguments = block.get("input", block.get("arguments", block.get("args")))
        call_id = text(block.get("id")) or text(block.get("toolCallId")) or text(block.get("tool_call_id"))
        return self.build_call(self.tools.read_call(text(block.get("name")), arguments, call_id), at)

    def _result(self, block: Record, at: datetime | None) -> Event:
        """The result in a block. Whether it failed is unknown unless a flag records it."""
        failed = block.get("is_error", block.get("isError"))
        call_id = text(block.get("tool_use_id")) or text(block.get("toolCallId")) or text(block.get("tool_call_id"))
        exit_code = exit_code_or_none(block.get("exitCode"))
        output = content_text(block.get("content", block.get("output")))
        return self.build_result(
            call_id, output, at, failed=failed if isinstance(failed, bool) else None, exit_code=exit_code
        )
