"""Claude Code's user and assistant messages, and its attachments, as events."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from grading.formats import claude_tools
from grading.formats.events import ApiError, Event, Message, Role, ToolCall, ToolResult
from grading.formats.failures import failure_reason
from grading.formats.reader import Parser, Record
from grading.formats.scaffold import spoken, without_reminders
from grading.formats.usage import ReportedTokens, Response, Responses, read_tokens
from grading.formats.values import count, items, mapping, money, parts_text, text, words

SYNTHETIC: Final = "<synthetic>"
CALLS: Final = words("mcp_tool_use server_tool_use tool_use")
SILENT_BLOCKS: Final = words("document fallback image redacted_thinking")


class Messages:
    """Turns messages into events for a parser, and keeps what they used."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._responses = Responses()
        self.told = ReportedTokens()
        self.told_cost = 0.0
        self.has_failed = False
        """The harness told of a failed model call and nothing was said since: another record is of the same."""

    def assistant(self, record: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        message = mapping(record.get("message"))
        model = text(message.get("model"))
        if record.get("isApiErrorMessage") is True or (model == SYNTHETIC and record.get("error")):
            if not self.has_failed:
                told = parts_text(message.get("content"))
                reason = failure_reason(f"{text(record.get('error'))} {told}", count(record.get("apiErrorStatus")))
                yield ApiError(number=self._parser.number(), at=at, sidechain=side, reason=reason, text=told)
            self.has_failed = True
            return
        self.has_failed = False
        for block in _blocks(message):
            yield from self._assistant_block(block, at, side=side)
        if model == SYNTHETIC or not isinstance(message.get("usage"), dict):
            return
        tokens = read_tokens(mapping(message.get("usage")), self._parser.problems)
        cost = money(record.get("costUSD"))  # which logs had until May 2025
        response = Response(model=model, tokens=tokens, at=at, sidechain=side, record=self._parser.record, cost=cost)
        key = text(message.get("id")) or text(record.get("requestId")) or text(record.get("uuid"))
        for done in self._responses.add(key, response):
            yield self._handed_out(done)
        if not side:
            self._parser.answered(model)

    def _assistant_block(self, block: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        kind = text(block.get("type"))
        if kind in ("text", "thinking"):
            told = text(block.get(kind))
            if told.strip():
                number, thinking = self._parser.number(), kind == "thinking"
                yield Message(number=number, at=at, sidechain=side, role=Role.ASSISTANT, text=told, thinking=thinking)
        elif kind in CALLS:
            name, arguments = text(block.get("name")), mapping(block.get("input"))
            yield ToolCall(
                number=self._parser.number(),
                at=at,
                sidechain=side,
                call_id=text(block.get("id")),
                name=name,
                kind=claude_tools.kind(name),
                arguments=arguments,
                command=claude_tools.command(name, arguments),
                path=claude_tools.path(arguments),
                clarity=claude_tools.clarity(name, block.get("input")),
            )
        elif kind.endswith("_tool_result"):
            yield self._result(block, parts_text(block.get("content")), at, side=side)
        elif kind not in SILENT_BLOCKS:
            self._parser.problems.note(f"unknown assistant block {kind[:40]!r}")

    def user(self, record: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        is_injected = record.get("promptSource") == "system" or any(
            record.get(flag) is True for flag in ("isMeta", "isCompactSummary")
        )
        self.has_failed = False
        blocks = _blocks(mapping(record.get("message")))
        results = sum(block.get("type") == "tool_result" for block in blocks)
        # What the harness kept beside the one result of a message.
        structured = mapping(record.get("toolUseResult")) if results == 1 else {}
        for block in blocks:
            kind = text(block.get("type"))
            if kind == "tool_result":
                output, reminder = without_reminders(claude_tools.output(block, structured))
                yield self._result(block, output, at, side=side)
                yield from self.heard(reminder, at, side=side, injected=True)
            elif kind == "text":
                yield from self.heard(text(block.get("text")), at, side=side, injected=is_injected)
            elif kind not in SILENT_BLOCKS:
                self._parser.problems.note(f"unknown user block {kind[:40]!r}")

    def attachment(self, record: Record, at: datetime | None, *, side: bool) -> Iterator[Event]:
        attachment = mapping(record.get("attachment"))
        if attachment.get("type") == "queued_command":
            yield from self.heard(parts_text(attachment.get("prompt")), at, side=side)
            return
        told = parts_text(attachment.get("content")) or text(attachment.get("stdout"))
        yield from self.heard(told or text(attachment.get("snippet")), at, side=side, injected=True)

    def heard(self, told: str, at: datetime | None, *, side: bool = False, injected: bool = False) -> Iterator[Event]:
        for role, part in spoken(told, injected=injected):
            yield Message(number=self._parser.number(), at=at, sidechain=side, role=role, text=part)

    def drain(self) -> Iterator[Event]:
        """What is still held back of the responses."""
        for response in self._responses.drain():
            yield self._handed_out(response)

    def _result(self, block: Record, output: str, at: datetime | None, *, side: bool) -> ToolResult:
        """Claude Code marks what failed; the absence of the mark is success."""
        failed = block.get("is_error") is True
        return ToolResult(
            number=self._parser.number(),
            at=at,
            sidechain=side,
            call_id=text(block.get("tool_use_id")),
            text=output,
            failed=failed,
            exit_code=claude_tools.exit_code(output) if failed else None,
        )

    def _handed_out(self, response: Response) -> Event:
        self.told = self.told.plus(response.tokens)
        self.told_cost += response.cost or 0.0
        return self._parser.usage(response)


def _blocks(message: Record) -> list[Any]:
    content = message.get("content")
    blocks = [content] if isinstance(content, str) else items(content)
    return [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in blocks
        if isinstance(block, str | dict)
    ]
