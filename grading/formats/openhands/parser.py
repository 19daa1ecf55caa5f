"""OpenHands: a session's events as one JSON document, or its evaluations' `output.jsonl` with a session on each line.

An action has an `action`, an observation an `observation` and its action's id as `cause`. In early versions the fields
of an action stand beside each other, and there are no ids: an observation belongs to the action before it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from grading.formats.events import ApiError, Boundary, Clarity, Event, Role, ToolCall, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems, RecentKeys
from grading.formats.reader import NO, SURE, Form, FormatTier, Parser, Record
from grading.formats.usage import ReportedTokens
from grading.formats.values import (
    content_text,
    count_or_none,
    exit_code_or_none,
    items,
    kind_by_name,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    usd_or_none,
    word_set,
)

KINDS: Final = kind_by_name(
    {
        "shell": "run",
        "write": "write",
        "edit": "edit",
        "read": "read",
        "web": "browse browse_interactive",
        "agent": "delegate",
        "plan": "task_tracking",
        "other": "call_tool_mcp mcp run_ipython",
    }
)
EDITOR_KINDS: Final = {"create": "write", "view": "read"}
OPAQUE: Final = word_set("call_tool_mcp mcp run_ipython")
SILENT_ACTIONS: Final = word_set(
    "change_agent_state condensation_request loop_recovery null pause recall reject resume start think"
)
SILENT_OBSERVATIONS: Final = word_set("agent_state_changed condense loop_detection null recall success think")
RESULTS: Final = word_set(
    "browse delegate download edit error mcp read run run_ipython task_tracking user_rejected write"
)
RUNNING: Final = -1
"""A shell's exit code while its command still runs."""
FAILURES: Final = ("ERROR:", "[Error", "Error:", "Traceback (most recent call last)")


class OpenHands(Parser):
    format = "openhands"
    title = "OpenHands"
    tier = FormatTier.FULL
    logs = "a saved trajectory; output.jsonl of an evaluation"
    samples, sources = 5, 1
    forms = frozenset({Form.LINES, Form.DOCUMENT})
    paths = frozenset({"item", "trajectory.item"})
    has_common_digests = True
    custom_tools = OPAQUE

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._title: str | None = None
        self._configured_model = ""
        self._last_call = ""
        self._has_message = False
        """Whether the session that is being read has a message."""
        self._responses = RecentKeys()
        self._cost: float | None = None
        """The session's cost so far, as its last event that has one says."""

    @staticmethod
    def score(record: Record) -> float:
        """Recognises an evaluation's line by its first event."""
        if not {"instance_id", "issue", "instruction"} & record.keys():
            return NO
        first = next(iter(_flatten(record.get("history"))), {})
        return SURE if {"action", "observation"} & first.keys() else NO

    @staticmethod
    def score_document(document: Any) -> float:
        events = document if isinstance(document, list) else mapping(document).get("trajectory")
        first = next(iter(mappings(events)), {})
        is_event = bool({"action", "observation"} & first.keys()) and {"source", "message"} <= first.keys()
        return SURE if is_event else NO

    def feed(self, record: Record) -> list[Event] | None:
        if "path" in record:
            return self._event(mapping(record.get("value")))
        events = list(self._finish_session())
        self._has_message = False
        metadata = mapping(record.get("metadata"))
        self._title = self._title or text_or_none(record.get("instance_id"))
        self._configured_model = text(mapping(metadata.get("llm_config")).get("model"))
        self.note_setting("model", self._configured_model)
        for item in _flatten(record.get("history")):
            events += self._event(item) or []
        self._cost = usd_or_none(mapping(record.get("metrics")).get("accumulated_cost"))
        if error := text(record.get("error")):
            events.append(ApiError(number=self.next_number(), reason=failure_reason(error), text=error))
        return events

    def finish(self) -> list[Event]:
        return list(self._finish_session())

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record.get("value", record))

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            model=self.model or self._configured_model or None,
            title=self._title,
        )

    def _finish_session(self) -> Iterator[Event]:
        """The cost of the session that was read, if its events have one."""
        cost, self._cost = self._cost, None
        if cost:
            yield self.build_usage(ReportedTokens(), model=self.model or self._configured_model, at=None, cost=cost)

    def _event(self, event: Record) -> list[Event] | None:
        """The events of an action or an observation; None if its kind is unknown."""
        at = self.note_time(parse_time(event.get("timestamp")))
        if cost := usd_or_none(mapping(event.get("llm_metrics")).get("accumulated_cost")):
            self._cost = cost
        events = list(self._usage(mapping(mapping(event.get("tool_call_metadata")).get("model_response")), at))
        if kind := text(event.get("observation")):
            return events + self._observation(event, kind, at)
        kind = text(event.get("action"))
        if kind in SILENT_ACTIONS:
            return events + self._thought(event, at)
        if kind in ("message", "system", "finish", "condensation") or kind in KINDS:
            return events + self._action(event, kind, at)
        self.note_unknown(f"action {kind}")
        return None

    def _thought(self, event: Record, at: datetime | None) -> list[Event]:
        """What the agent wrote beside its action."""
        if event.get("source", "agent") != "agent":
            return []
        return self.build_messages(Role.ASSISTANT, content_text(_arguments(event).get("thought")), at)

    def _action(self, event: Record, kind: str, at: datetime | None) -> list[Event]:
        """Events of an action: a message, a compaction, the final answer, or a call with the thought beside it."""
        arguments = _arguments(event)
        if kind == "message":
            # In early versions only the first message, the task, was a person's, and nothing says who wrote it.
            is_user = event.get("source") == "user" or ("source" not in event and not self._has_message)
            self._has_message = True
            return self.build_messages(Role.USER if is_user else Role.ASSISTANT, text(arguments.get("content")), at)
        if kind == "system":
            return self.build_messages(Role.SCAFFOLD, text(arguments.get("content")), at)
        if kind == "condensation":
            return [Boundary(number=self.next_number(), at=at, kind="compaction")]
        if kind == "finish":
            answer = text(arguments.get("final_thought")) or text(event.get("message"))
            return self._thought(event, at) or self.build_messages(Role.ASSISTANT, answer, at)
        events = self._thought(event, at)
        call = self.build_call(_read_call(kind, arguments), at)
        self._last_call = str(event["id"]) if "id" in event else f"action-{call.number}"
        return [*events, replace(call, call_id=self._last_call)]

    def _observation(self, event: Record, kind: str, at: datetime | None) -> list[Event]:
        """A call's result; a failed model call or a person's stop, if the agent's state says so."""
        extras = mapping(event.get("extras"))
        if kind == "agent_state_changed":
            reason = text(extras.get("reason"))
            if extras.get("agent_state") == "error" and reason:
                return [ApiError(number=self.next_number(), at=at, reason=failure_reason(reason), text=reason)]
            if extras.get("agent_state") in ("paused", "stopped"):
                self.note_interruption()
            return []
        if kind in SILENT_OBSERVATIONS:
            return []
        if kind not in RESULTS:
            self.note_unknown(f"observation {kind}")
        content = content_text(event.get("content"))
        call_id = str(event["cause"]) if "cause" in event else self._last_call
        code = mapping(extras.get("metadata")).get("exit_code", extras.get("exit_code", event.get("exit_code")))
        exit_code = None if kind == "run" and code == RUNNING else exit_code_or_none(code)
        return [
            self.build_result(call_id, content, at, failed=_has_failed(kind, content, exit_code), exit_code=exit_code)
        ]

    def _usage(self, response: Record, at: datetime | None) -> Iterator[Event]:
        """The usage of a response, once: each of its actions and observations repeats it."""
        usage, response_id = mapping(response.get("usage")), text(response.get("id"))
        if not usage or not response_id or self._responses.check_and_add(response_id):
            return
        model = text(response.get("model"))
        self.count_response(model)
        tokens = _read_tokens(usage)
        if not tokens.is_empty:
            yield self.build_usage(tokens, model=model, at=at, message=response_id)


def _flatten(history: object) -> list[Record]:
    """The events of a history, which in early versions is a list of pairs of an action and its observation."""
    events: list[Record] = []
    for item in items(history):
        events += mappings(item) if isinstance(item, list) else mappings([item])
    return events


def _arguments(event: Record) -> Record:
    """An action's arguments; in early versions they are the action's own fields."""
    return mapping(event["args"]) if "args" in event else event


def _read_call(kind: str, arguments: Record) -> ToolCall:
    """The call of an action, without a number and an id."""
    command, path = text(arguments.get("command")), text(arguments.get("path"))
    named = {name: value for name, value in arguments.items() if name != "thought"}
    clarity = Clarity.OPAQUE if kind in OPAQUE else Clarity.UNDERSTOOD
    if kind == "run" and not isinstance(arguments.get("command"), str):
        clarity = Clarity.UNREADABLE
    name, call_kind = kind, EDITOR_KINDS.get(command, "edit") if kind == "edit" else KINDS[kind]
    if kind in ("mcp", "call_tool_mcp"):
        name = f"mcp__{text(arguments.get('name'))}"
    return ToolCall(
        name=name,
        kind=call_kind,
        arguments=named,
        command=command if call_kind == "shell" else "",
        path=path,
        clarity=clarity,
    )


def _has_failed(kind: str, content: str, exit_code: int | None) -> bool | None:
    """Whether an observation shows that its action failed; None if it shows nothing."""
    if kind in ("error", "user_rejected"):
        return True
    if kind == "run":
        return None if exit_code is None else exit_code != 0
    if kind in ("edit", "read", "write"):
        return content.lstrip().startswith(FAILURES)
    return True if content.lstrip().startswith(FAILURES) else None


def _read_tokens(usage: Record) -> ReportedTokens:
    """A response's tokens. Cached tokens, read or written, are counted as input, and taken off it."""
    details = mapping(usage.get("prompt_tokens_details"))
    return ReportedTokens(
        input_tokens=count_or_none(usage.get("prompt_tokens")),
        output_tokens=count_or_none(usage.get("completion_tokens")),
        cache_read_tokens=count_or_none(usage.get("cache_read_input_tokens", details.get("cached_tokens"))),
        cache_write_tokens=count_or_none(usage.get("cache_creation_input_tokens")),
    ).without_cached_input()
