"""Claude Code: session logs (`~/.claude/projects/…/<id>.jsonl`) and `--output-format stream-json`.

The log is the session whose id its last conversation line carries: a resumed or forked log begins with lines copied
from another session and is appended to under its own id. Where the id changes, a `Boundary` of kind `session_change`
with the new id says so: what stands before the last of them is another session's work.

A subagent's own log (`<session>/subagents/agent-<id>.jsonl`) carries its parent's session id on every line; its own id
is its `agentId`, which early versions did not write.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from grading.formats.claude_messages import Messages
from grading.formats.events import ApiError, Boundary, Event, PullRequestLink, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, Parser, Record, digest_of, short
from grading.formats.seen import RecentKeys
from grading.formats.usage import read_tokens
from grading.formats.values import count, mapping, moment, money, optional, text, words

RECORDS: Final = words("attachment progress rate_limit_event result system")
METADATA: Final = words(
    "agent-name atis-latch auth_status bridge-session control_request control_response file-history-delta "
    "file-history-snapshot frame-link keep_alive last-prompt mode permission-mode queue-operation relocated started "
    "stream_event streamlined_text tool_progress tool_use_summary worktree-state"
)
TITLES: Final = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
COMPACTIONS: Final = words("compact_boundary microcompact_boundary")
SILENT_SYSTEM: Final = words(
    "api_refusal away_summary bridge_status hook_response hook_started informational model_refusal_fallback "
    "session_start slash_command status stop_hook_summary task_notification task_started turn_duration"
)


class ClaudeCode(Parser):
    format = "claude-code"
    title = "Claude Code"

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._messages = Messages(self)
        self._session: str | None = None
        self._first: dict[str, str] = {}
        """The first value of each field that describes the session."""
        self._titles: dict[str, str] = {}
        self._links = RecentKeys()
        self._nested = RecentKeys()
        self._sides: set[bool] = set()

    @staticmethod
    def score(record: Record) -> float:
        """Its session logs, and its stream-json, which others imitate without `uuid` or `parent_tool_use_id`."""
        kind = text(record.get("type"))
        session = text(record.get("sessionId")) or text(record.get("session_id"))
        if kind == "file-history-snapshot":
            return SURE if {"messageId", "snapshot"} <= record.keys() else NO
        if kind == "summary":
            return SURE if "leafUuid" in record else NO
        if kind in ("user", "assistant"):
            message = mapping(record.get("message"))
            is_message = message.get("role") == kind and isinstance(message.get("content"), str | list)
            is_ours = is_message and ("uuid" in record or "parent_tool_use_id" in record)
            return SURE if session and is_ours else NO
        if kind in RECORDS:
            return SURE if session and "uuid" in record and "systemPayload" not in record else NO
        is_metadata = kind in METADATA | {"pr-link", *TITLES} or (not kind and "aiTitle" in record)
        return LIKELY if is_metadata and (session or kind == "file-history-delta") else NO

    def identity(self, record: Record) -> str:
        return text(record.get("uuid"))

    def copied_as(self, record: Record) -> str:
        if identity := self.identity(record):
            return short(identity)
        return digest_of("pr-link", record.get("prUrl")) if record.get("type") == "pr-link" else ""

    def feed(self, record: Record) -> list[Event] | None:
        kind = text(record.get("type"))
        at = self.saw(moment(record.get("timestamp")))
        described = {
            "session_id": _session_id(record),
            "agent_id": record.get("agentId"),
            "cwd": record.get("cwd"),
            "branch": record.get("gitBranch"),
            "version": record.get("version") or record.get("claude_code_version"),
        }
        for name, value in described.items():
            if name not in self._first and (known := optional(value)):
                self._first[name] = known
        if kind not in ("user", "assistant", "attachment"):
            other = self._other(record, kind, at)
            if other is None:
                self.unknown(kind)
            return other
        if kind != "attachment" and not isinstance(mapping(record.get("message")).get("content"), str | list):
            self.unknown(f"{kind} without content")
            return None
        events: list[Event] = []
        session = _session_id(record)
        if session is not None and session != self._session:
            if self._session is not None:
                self.problems.note(
                    "the session id changes: what is above was copied from, or belongs to, another session"
                )
                events.append(Boundary(number=self.number(), at=at, kind="session_change", detail=session))
            self._session = session
        side = _is_side(record)
        self._sides.add(side)
        messages = self._messages
        told = {"user": messages.user, "assistant": messages.assistant, "attachment": messages.attachment}[kind]
        return [*events, *told(record, at, side=side)]

    def finish(self) -> list[Event]:
        return list(self._messages.drain())

    def header(self) -> TranscriptHeader:
        titles = [title for kind in TITLES if (title := self._titles.get(kind))]
        session = self._session or self._first.get("session_id")
        is_subagent = self._sides == {True}
        return TranscriptHeader(
            harness=self.format,
            session_id=self._first.get("agent_id") if is_subagent else session,
            model=self.model or self._first.get("model"),
            cwd=self._first.get("cwd"),
            branch=self._first.get("branch"),
            harness_version=self._first.get("version"),
            started_at=self.started_at,
            ended_at=self.ended_at,
            title=titles[0] if titles else None,
            is_subagent=is_subagent,
            parent_id=session if is_subagent else None,
        )

    def _other(self, record: Record, kind: str, at: datetime | None) -> list[Event] | None:
        """What is no part of the conversation; None for what is not known."""
        match kind:
            case "pr-link":  # written again at each start of a session; the link is one
                url = text(record.get("prUrl"))
                if url and not self._links.add(url):
                    return [PullRequestLink(number=self.number(), at=at, url=url)]
            case "progress":  # a subagent's messages are logged so (2.1.7 to 2.1.81); the rest only draws a screen
                nested = mapping(mapping(record.get("data")).get("message"))
                speaker, identity = text(nested.get("type")), text(nested.get("uuid"))
                if speaker in ("user", "assistant") and not (identity and self._nested.add(identity)):
                    told = self._messages.assistant if speaker == "assistant" else self._messages.user
                    return [
                        event if event.record or not identity else replace(event, record=short(identity))
                        for event in told(nested, moment(nested.get("timestamp")) or at, side=True)
                    ]
            case "rate_limit_event":
                info = mapping(record.get("rate_limit_info"))
                if info.get("status") == "rejected" and not self._messages.has_failed:
                    self._messages.has_failed = True
                    return [ApiError(number=self.number(), at=at, reason="quota", text=text(info.get("rateLimitType")))]
            case "result":
                return list(self._result(record, at))
            case "system":
                return list(self._system(record, at))
            case _ if kind in TITLES:
                self._titles[kind] = text(record.get(TITLES[kind])) or self._titles.get(kind, "")
            case _ if kind not in METADATA and "aiTitle" not in record:
                return None
        return []

    def _system(self, record: Record, at: datetime | None) -> Iterator[Event]:
        subtype = text(record.get("subtype"))
        if subtype in COMPACTIONS:
            detail = text(mapping(record.get("compactMetadata") or record.get("compact_metadata")).get("trigger"))
            yield Boundary(number=self.number(), at=at, sidechain=_is_side(record), kind="compaction", detail=detail)
        elif subtype in ("api_error", "error"):
            error = mapping(record.get("error"))
            told = text(error.get("formatted")) or text(error.get("message")) or text(record.get("content"))
            cause = f"{told} {text(error.get('message'))} {text(mapping(error.get('error')).get('type'))}"
            reason = failure_reason(cause, count(error.get("status")))
            yield ApiError(number=self.number(), at=at, sidechain=_is_side(record), reason=reason, text=told)
        elif subtype == "init":
            self._first.setdefault("model", text(record.get("model")))
        elif subtype == "local_command":
            yield from self._messages.heard(text(record.get("content")), at, injected=True)
        elif subtype not in SILENT_SYSTEM:
            self.problems.note(f"unknown system record {subtype[:40]!r}")

    def _result(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """The last record of stream-json: its totals cover what the streamed messages did not say."""
        if "subtype" not in record:
            return
        messages = self._messages
        yield from messages.drain()
        rest = read_tokens(mapping(record.get("usage")), self.problems).since(messages.told)
        cost = money(record.get("total_cost_usd"))
        if cost is not None:
            # The total of this run so far. A smaller one than before is another run's, which is added.
            before, messages.told_cost = messages.told_cost, cost
            cost -= before if cost >= before else 0.0
        if not rest.is_empty or cost is not None:
            messages.told = messages.told.plus(rest)
            yield self.usage_of(rest, model=self.model or self._first.get("model", ""), at=at, cost=cost)
        subtype, told = text(record.get("subtype")), text(record.get("result"))
        reason = failure_reason(f"{subtype} {told}")
        if record.get("is_error") is True and reason != "other" and not self._messages.has_failed:
            yield ApiError(number=self.number(), at=at, reason=reason, text=told)
        yield Boundary(number=self.number(), at=at, kind="end", detail=subtype)


def _session_id(record: Record) -> str | None:
    return optional(record.get("sessionId")) or optional(record.get("session_id"))


def _is_side(record: Record) -> bool:
    return record.get("isSidechain") is True or bool(record.get("parent_tool_use_id"))
