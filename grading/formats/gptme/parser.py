"""gptme: `conversation.jsonl`, and terminal output. Calls are in the assistant's text, results in system messages.

A `conversation.jsonl` has no session id; terminal output names the log's folder. Times have no zone and are taken as
UTC: durations are right.
"""

import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, Final

from grading.formats.events import Clarity, Event, Role, ToolCall, ToolResult, TranscriptHeader
from grading.formats.gptme import calls as call_syntax
from grading.formats.gptme.terminal import is_terminal_output, read_terminal_output
from grading.formats.lines import LineTally, Problems
from grading.formats.reader import LIKELY, NO, SURE, Form, FormatTier, Parser, Record, digest_json
from grading.formats.usage import ReportedTokens, read_tokens
from grading.formats.values import content_text, mapping, parse_time, text, text_or_none, usd_or_none, word_set

FIELDS: Final = word_set("call_id content file_hashes files hide id metadata pinned quiet role timestamp")
OWN_FIELDS: Final = word_set("call_id file_hashes files hide metadata pinned")
VERSION: Final = re.compile(r"You are gptme v([\w.+-]{1,40}?)[,\s]")
RETURN_CODE: Final = re.compile(r"^Return code: (-?\d{1,9})[ \t]*$", re.MULTILINE)
INJECTED_PREFIXES: Final = ("<", "# Relevant", "## Relevant", "# Lesson", "Session initialized")
OUTPUT_PREFIXES: Final = (
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
SUCCESS_PREFIXES: Final = ("Appended to", "Patch applied to", "Patch successfully applied", "Saved to", "Task complete")
FAILURE_PREFIXES: Final = ("Aborted", "Error", "❌", "Command timed out", "Shell command timed out")
READ_SUCCESS_PREFIXES: Final = ("```", "Pruned to ")
READ_FAILURE_PREFIXES: Final = (
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
    tier = FormatTier.FULL
    logs = "~/.local/share/gptme/logs/<session>/conversation.jsonl; terminal output"
    hook = "session.end in ~/.config/gptme/config.toml"
    samples, sources = 58, 2
    forms = frozenset({Form.LINES, Form.TEXT})
    custom_tools = call_syntax.OPAQUE_TOOLS

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._version: str | None = None
        self._terminal: dict[str, str] = {}
        """What the first lines of terminal output show of the session."""
        self._has_started = False
        """Whether a user or assistant message has come."""
        self._open_calls: deque[str] = deque(maxlen=1000)
        """Ids of the last assistant message's calls that have no output yet, in order."""
        self._last_call = ""
        """The id of the last assistant message's last call."""
        self._kinds: dict[str, str] = {}
        """The kind of each call of the last assistant message."""
        self._commands: dict[str, str] = {}
        """The command of each shell call of the last assistant message."""
        self._visible_text = ""
        """The last assistant message without thinking and calls."""
        self._may_have_called = False
        """Whether the last assistant message may contain a call in a syntax that we don't support."""
        self._is_assistant_last = False

    @staticmethod
    def score(record: Record) -> float:
        """Recognises messages without a type that have only gptme's fields."""
        role, content = record.get("role"), record.get("content")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(content, str | list):
            return NO
        if "timestamp" not in record or record.keys() - FIELDS:
            return NO
        is_own = OWN_FIELDS & record.keys() or (role == "system" and text(content).startswith("You are gptme"))
        return SURE if is_own else LIKELY

    @staticmethod
    def score_bytes(head: bytes) -> tuple[float, Form]:
        return (SURE if is_terminal_output(head) else NO), Form.TEXT

    @classmethod
    def read_records(
        cls, stream: BinaryIO, form: Form, tally: LineTally, *, max_line: int
    ) -> Iterator[tuple[bytes, dict[str, Any]]]:
        if form is Form.TEXT:
            return read_terminal_output(stream, tally, max_size=max_line)
        return super().read_records(stream, form, tally, max_line=max_line)

    def feed(self, record: Record) -> list[Event] | None:
        if "terminal" in record:
            return self._terminal_events(mapping(record["terminal"]))
        role, content = text(record.get("role")), content_text(record.get("content"))
        at = self.note_time(parse_time(record.get("timestamp")))
        if role == "assistant":
            return list(self._assistant(record, content, at))
        if role == "system":
            return list(self._system(record, content, at))
        if role == "tool":
            return [self._result(text(record.get("call_id")) or text(record.get("tool_call_id")), content, at)]
        if role != "user":
            self.note_unknown(f"role {role}")
            return None
        self._has_started = True
        self._is_assistant_last = False
        return self.build_user_messages(content, at, injected=record.get("hide") is True)

    def shared_identity(self, record: Record) -> str:
        return digest_json(record.get("role"), record.get("timestamp", record.get("origin")), record.get("content"))

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            session_id=self._terminal.get("logdir", "").rpartition("/")[2] or None,
            model=self.model or self._terminal.get("model"),
            harness_version=self._version,
        )

    def _terminal_events(self, session: Record) -> list[Event]:
        """Take what terminal output shows of the session; its cost is a usage event."""
        self._terminal |= {name: session[name] for name in ("model", "logdir") if text(session.get(name))}
        self.note_setting("model", session.get("model"))
        at = self.note_time(parse_time(session.get("timestamp")))
        cost = usd_or_none(session.get("cost"))
        if not cost:  # rounded to cents: 0 says nothing
            return []
        return [self.build_usage(ReportedTokens(), model=self._terminal.get("model", ""), at=at, cost=cost)]

    def _assistant(self, record: Record, content: str, at: datetime | None) -> Iterator[Event]:
        """Events of an assistant message: its thinking, its visible text, its calls, and the usage in its metadata."""
        self._has_started = self._is_assistant_last = True
        self._open_calls.clear()
        self._kinds.clear()
        self._commands.clear()
        self._last_call = ""
        thinking_text, answer = call_syntax.split_thinking(content)
        calls = call_syntax.find_calls(answer)
        visible_text = call_syntax.remove_calls(answer, calls)
        self._visible_text = visible_text
        self._may_have_called = call_syntax.may_have_calls(visible_text)
        yield from self.build_messages(Role.ASSISTANT, thinking_text, at, thinking=True)
        yield from self.build_messages(Role.ASSISTANT, visible_text, at)
        for call in calls:
            yield self._call(call, at)
        for _ in range(call_syntax.count_unreadable_calls(visible_text)):
            yield self._unreadable_call(at)
        metadata = mapping(record.get("metadata"))
        model = text(metadata.get("model"))
        self.count_response(model)
        usage, cost = mapping(metadata.get("usage")), usd_or_none(metadata.get("cost"))
        flat = {key: value for key, value in metadata.items() if key.endswith("_tokens")}
        tokens = read_tokens(usage or flat, self.problems)
        if not tokens.is_empty or cost is not None:
            yield self.build_usage(tokens, model=model, at=at, cost=cost)

    def _call(self, call: call_syntax.GptmeCall, at: datetime | None) -> ToolCall:
        """The event of a call, which stays open until its output comes."""
        number = self.next_number()
        self._last_call = call.call_id or f"gptme-{number}"
        self._open_calls.append(self._last_call)
        self._kinds[self._last_call] = call.kind
        if call.command:
            self._commands[self._last_call] = call.command
        return ToolCall(
            number=number,
            at=at,
            call_id=self._last_call,
            name=call.name,
            kind=call.kind,
            arguments=call.arguments,
            command=call.command,
            path=call.path,
            clarity=call.clarity,
        )

    def _unreadable_call(self, at: datetime | None) -> ToolCall:
        """A call in a syntax we don't support, inferred from text that looks like one, or from an output."""
        self.problems.note("a tool call in a syntax that was not understood")
        number = self.next_number()
        self._last_call = f"gptme-{number}"
        self._open_calls.append(self._last_call)
        return ToolCall(
            number=number, at=at, call_id=self._last_call, name="", kind="other", clarity=Clarity.UNREADABLE
        )

    def _system(self, record: Record, content: str, at: datetime | None) -> Iterator[Event]:
        """Events of a system message, which is a tool's output or injected text."""
        call_id = text_or_none(record.get("call_id"))
        if call_id is None and self._is_injected(record, content):
            if match := VERSION.match(content):
                self._version = match[1]
                self.note_setting("harness_version", match[1])
            yield from self.build_messages(Role.SCAFFOLD, content, at)
            return
        command = "" if call_id else call_syntax.find_ran_command(content)
        is_whole = bool(command) and not call_syntax.is_shortened(command)
        if self._is_assistant_last and not (call_id or self._open_calls or self._last_call):
            # The output shows that the message had a call: by the rules of 2024, or else in a syntax we don't support.
            plain_calls = call_syntax.find_plain_calls(self._visible_text)
            yield from [self._call(call, at) for call in plain_calls]
            if not plain_calls and not is_whole:
                yield self._unreadable_call(at)
        if command:
            call_id = self._find_call(command)
        if call_id is None and is_whole and self._is_assistant_last:
            # The command is of a call that was not read, because it is in a list, say.
            self.problems.note("a tool call that only its output names")
            unread_call = call_syntax.GptmeCall(start=0, end=0, name="shell", arguments={"command": command})
            call = self._call(unread_call, at)
            yield call
            call_id = call.call_id
        yield self._result(self._take_call(call_id), content, at)

    def _is_injected(self, record: Record, content: str) -> bool:
        """Whether a system message without a call id is injected text, and no tool's output.

        With a tool's name it is an output. Otherwise it is injected if it comes before the first user message, is
        hidden or pinned, or begins like injected text; or if it doesn't begin like an output and no call awaits one.
        """
        if text_or_none(mapping(record.get("metadata")).get("tool")) is not None:
            return False
        is_hidden = not self._has_started or record.get("hide") is True or record.get("pinned") is True
        start = content.lstrip()
        if is_hidden or start.startswith(INJECTED_PREFIXES):
            return True
        # The assistant wrote something that may be a call and wasn't read as one, and no user message came since.
        is_awaited = self._may_have_called and self._is_assistant_last and not self._last_call
        return not (self._open_calls or is_awaited or start.startswith(OUTPUT_PREFIXES))

    def _take_call(self, call_id: str | None) -> str:
        """The id of the call that an output belongs to, which then is no longer open: the one with the output's own id
        or command, else the next open call, else the last call; "" if there is none.
        """
        if call_id is not None:
            if call_id in self._open_calls:
                self._open_calls.remove(call_id)
            return call_id
        if self._open_calls:
            return self._open_calls.popleft()
        if not self._last_call:
            self.problems.note("a tool's output without a call that was read")
        return self._last_call

    def _find_call(self, command: str) -> str | None:
        """The id of the call with the command that an output names: of the first that is open, or of the last call."""
        for call_id in (*self._open_calls, self._last_call):
            if call_id in self._commands and call_syntax.is_same_command(self._commands[call_id], command):
                return call_id
        return None

    def _result(self, call_id: str, content: str, at: datetime | None) -> ToolResult:
        failed, exit_code = read_outcome(content, self._kinds.get(call_id, ""))
        return ToolResult(
            number=self.next_number(), at=at, call_id=call_id, text=content, failed=failed, exit_code=exit_code
        )


def read_outcome(content: str, kind: str = "") -> tuple[bool | None, int | None]:
    """(failed, exit code) of an output of a tool of that kind, from text that gptme itself writes; None if unknown."""
    output = content.lstrip().removeprefix("✅").lstrip()  # newer versions mark success so
    if output.startswith("Ran "):
        after_program_output = output[output.rfind("```") + 1 :]
        codes = RETURN_CODE.findall(after_program_output[-200:])
        exit_code = int(codes[-1]) if codes else 0
        return exit_code != 0, exit_code
    if output.startswith(FAILURE_PREFIXES) or (kind == "read" and output.startswith(READ_FAILURE_PREFIXES)):
        return True, None
    if output.startswith(SUCCESS_PREFIXES) or (kind == "read" and output.startswith(READ_SUCCESS_PREFIXES)):
        return False, None
    return None, None
