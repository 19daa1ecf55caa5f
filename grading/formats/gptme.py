"""gptme: `conversation.jsonl`. Calls stand in the assistant's text, results are the system messages after it.

The file carries no session id. Its times have no zone and are taken as UTC: durations are right.
"""

import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from grading.formats import gptme_calls
from grading.formats.events import Clarity, Event, Message, Role, ToolCall, ToolResult, TranscriptHeader
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Parser, Record, digest_of
from grading.formats.scaffold import spoken
from grading.formats.usage import read_tokens
from grading.formats.values import mapping, moment, money, optional, parts_text, text, words

FIELDS: Final = words("call_id content file_hashes files hide id metadata pinned quiet role timestamp")
OWN_FIELDS: Final = words("call_id file_hashes files hide metadata pinned")
VERSION: Final = re.compile(r"You are gptme v([\w.+-]{1,40}?)[,\s]")
RETURN_CODE: Final = re.compile(r"^Return code: (-?\d{1,9})[ \t]*$", re.MULTILINE)
INJECTED: Final = ("<", "# Relevant", "## Relevant", "# Lesson", "Session initialized")
OUTPUT: Final = (
    "Aborted",
    "Appended to",
    "Command timed out",
    "Error",
    "Executed code",
    "Patch",
    "Ran ",
    "Return code",
    "Saved to",
    "Shell command",
    "Timed out",
    "```",
    "✅",
    "❌",
)
SUCCEEDED: Final = ("Appended to", "Patch applied to", "Patch successfully applied", "Saved to", "Task complete")
FAILED: Final = ("Aborted", "Error", "❌", "Command timed out", "Shell command timed out")
READ: Final = ("```", "Pruned to ")
NOT_READ: Final = (
    "Cannot read binary file",
    "File not found",
    "Invalid end_line",
    "Invalid line range",
    "Invalid start_line",
    "No path provided",
    "Not a file",
    "Path traversal detected",
    "Permission denied",
    "Read blocked",
    "Read denied",
)


class Gptme(Parser):
    format = "gptme"
    title = "gptme"

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._version: str | None = None
        self._spoken_to = False
        self._open: deque[str] = deque(maxlen=1000)
        self._last = ""
        self._kinds: dict[str, str] = {}
        self._said = ""
        self._may_have_called = False
        self._assistant_spoke_last = False

    @staticmethod
    def score(record: Record) -> float:
        """Messages without a type, of exactly gptme's fields."""
        role, content = record.get("role"), record.get("content")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(content, str | list):
            return NO
        if "timestamp" not in record or record.keys() - FIELDS:
            return NO
        is_own = OWN_FIELDS & record.keys() or (role == "system" and text(content).startswith("You are gptme"))
        return SURE if is_own else LIKELY

    def feed(self, record: Record) -> list[Event] | None:
        role, content = text(record.get("role")), parts_text(record.get("content"))
        at = self.saw(moment(record.get("timestamp")))
        if role == "assistant":
            return list(self._assistant(record, content, at))
        if role == "system":
            return list(self._system(record, content, at))
        if role == "tool":
            return [self._result(text(record.get("call_id")) or text(record.get("tool_call_id")), content, at)]
        if role != "user":
            self.unknown(f"role {role}")
            return None
        self._spoken_to = True
        self._assistant_spoke_last = False
        return [
            Message(number=self.number(), at=at, role=speaker, text=part)
            for speaker, part in spoken(content, injected=record.get("hide") is True)
        ]

    def copied_as(self, record: Record) -> str:
        return digest_of(record.get("role"), record.get("timestamp"), record.get("content"))

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            harness=self.format,
            model=self.model,
            harness_version=self._version,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

    def _assistant(self, record: Record, content: str, at: datetime | None) -> Iterator[Event]:
        self._spoken_to = self._assistant_spoke_last = True
        self._open.clear()
        self._kinds.clear()
        self._last = ""
        thought, said = gptme_calls.split_thought(content)
        calls = gptme_calls.find_calls(said)
        said = gptme_calls.visible(said, calls)
        self._said = said
        self._may_have_called = gptme_calls.may_call(said)
        for spoken_text, thinking in ((thought, True), (said, False)):
            if spoken_text.strip():
                yield Message(number=self.number(), at=at, role=Role.ASSISTANT, text=spoken_text, thinking=thinking)
        for call in calls:
            yield self._call(call, at)
        for _ in range(gptme_calls.unread_calls(said)):
            yield self._unread(at)
        metadata = mapping(record.get("metadata"))
        model = text(metadata.get("model"))
        self.answered(model)
        usage, cost = mapping(metadata.get("usage")), money(metadata.get("cost"))
        flat = {key: value for key, value in metadata.items() if key.endswith("_tokens")}
        tokens = read_tokens(usage or flat, self.problems)
        if not tokens.is_empty or cost is not None:
            yield self.usage_of(tokens, model=model, at=at, cost=cost)

    def _call(self, call: gptme_calls.GptmeCall, at: datetime | None) -> ToolCall:
        number = self.number()
        self._last = call.call_id or f"gptme-{number}"
        self._open.append(self._last)
        self._kinds[self._last] = call.kind
        return ToolCall(
            number=number,
            at=at,
            call_id=self._last,
            name=call.name,
            kind=call.kind,
            arguments=call.arguments,
            command=call.command,
            path=call.path,
            clarity=call.clarity,
        )

    def _unread(self, at: datetime | None) -> ToolCall:
        """A call that must be there, by what looks like one or by its output, in a syntax that we do not know."""
        self.problems.note("a tool call in a syntax that was not understood")
        number = self.number()
        self._last = f"gptme-{number}"
        self._open.append(self._last)
        return ToolCall(number=number, at=at, call_id=self._last, name="", kind="other", clarity=Clarity.UNREADABLE)

    def _system(self, record: Record, content: str, at: datetime | None) -> Iterator[Event]:
        call_id, told = optional(record.get("call_id")), content.lstrip()
        # Without a call id: the prompt, what is hidden or pinned, and what looks injected or like no output.
        is_hidden = not self._spoken_to or record.get("hide") is True or record.get("pinned") is True
        # The assistant has written what may be a call, and nobody has spoken since.
        is_awaited = self._may_have_called and self._assistant_spoke_last and not self._last
        looks_injected = told.startswith(INJECTED) or not (self._open or is_awaited or told.startswith(OUTPUT))
        is_tools = optional(mapping(record.get("metadata")).get("tool")) is not None
        if call_id is None and not is_tools and (is_hidden or looks_injected):
            if match := VERSION.match(content):
                self._version = match[1]
            if content.strip():
                yield Message(number=self.number(), at=at, role=Role.SCAFFOLD, text=content)
            return
        if self._assistant_spoke_last and not (call_id or self._open or self._last):
            plain = gptme_calls.find_plain_calls(self._said)
            yield from [self._call(call, at) for call in plain] or [self._unread(at)]
        # An output belongs to the call of its own id, else to the next open call, else to the last one, else to none.
        if call_id is not None:
            if call_id in self._open:
                self._open.remove(call_id)
        elif self._open:
            call_id = self._open.popleft()
        elif self._last:
            call_id = self._last
        else:
            self.problems.note("a tool's output without a call that was read")
        yield self._result(call_id or "", content, at)

    def _result(self, call_id: str, content: str, at: datetime | None) -> ToolResult:
        failed, exit_code = outcome(content, self._kinds.get(call_id, ""))
        return ToolResult(
            number=self.number(), at=at, call_id=call_id, text=content, failed=failed, exit_code=exit_code
        )


def outcome(content: str, kind: str = "") -> tuple[bool | None, int | None]:
    """(failed, exit code) of an output of a tool of a kind, from the words gptme itself puts around it."""
    told = content.lstrip().removeprefix("✅").lstrip()  # newer versions put a mark before what succeeded
    if told.startswith("Ran "):
        codes = RETURN_CODE.findall(told[told.rfind("```") + 1 :][-200:])  # not inside what the program printed
        exit_code = int(codes[-1]) if codes else 0
        return exit_code != 0, exit_code
    if told.startswith(FAILED) or (kind == "read" and told.startswith(NOT_READ)):
        return True, None
    if kind == "read" and told.startswith(READ):
        return False, None
    return (False, None) if told.startswith(SUCCEEDED) else (None, None)
