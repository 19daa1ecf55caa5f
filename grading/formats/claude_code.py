"""Claude Code: session logs (`~/.claude/projects/…/<id>.jsonl`) and `--output-format stream-json`.

The log is the session whose id its last conversation line carries: a resumed or forked log begins with lines copied
from another session and is appended to under its own id. Where the id changes, a `Boundary` of kind `session_change`
with the new id says so: what stands before the last of them is another session's work.

A subagent's own log (`<session>/subagents/agent-<id>.jsonl`) carries its parent's session id on every line; its own id
is its `agentId`, which early versions did not write.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from grading.formats.claude_messages import Messages
from grading.formats.events import ApiError, Boundary, Event, PullRequestLink, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import Parser, Record, digest_of, short
from grading.formats.seen import RecentKeys
from grading.formats.usage import read_tokens
from grading.formats.values import count, mapping, moment, money, optional, text, words

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
Handler = Callable[[Record, datetime | None], Iterator[Event]]


class ClaudeCode(Parser):
    format = "claude-code"

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._messages = Messages(self)
        self._session: str | None = None
        self._first: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._links = RecentKeys()
        self._nested = RecentKeys()
        self._sides: set[bool] = set()
        self._handlers: dict[str, Handler] = {
            "pr-link": self._pull_request,
            "progress": self._progress,
            "rate_limit_event": self._rate_limit,
            "result": self._result,
            "system": self._system,
            **dict.fromkeys(TITLES, self._entitled),
            **dict.fromkeys(METADATA, _nothing),
        }

    def identity(self, record: Record) -> str:
        return text(record.get("uuid"))

    def copied_as(self, record: Record) -> str:
        if identity := self.identity(record):
            return short(identity)
        return digest_of("pr-link", record.get("prUrl")) if record.get("type") == "pr-link" else ""

    def feed(self, record: Record) -> list[Event] | None:
        kind = text(record.get("type"))
        at = self.saw(moment(record.get("timestamp")))
        self._remember(record)
        if kind in ("user", "assistant", "attachment"):
            return self._conversation(record, kind, at)
        handler = self._handlers.get(kind) or (_nothing if "aiTitle" in record else None)
        if handler is None:
            self.unknown(kind)
            return None
        return list(handler(record, at))

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

    def _remember(self, record: Record) -> None:
        """Keeps the first value of each field that describes the session."""
        found = {
            "session_id": _session_id(record),
            "agent_id": record.get("agentId"),
            "cwd": record.get("cwd"),
            "branch": record.get("gitBranch"),
            "version": record.get("version") or record.get("claude_code_version"),
        }
        for name, value in found.items():
            if name not in self._first and (known := optional(value)):
                self._first[name] = known

    def _conversation(self, record: Record, kind: str, at: datetime | None) -> list[Event] | None:
        if kind != "attachment" and not isinstance(mapping(record.get("message")).get("content"), str | list):
            self.unknown(f"{kind} without content")
            return None
        side = _is_side(record)
        self._sides.add(side)
        messages = self._messages
        told = {"user": messages.user, "assistant": messages.assistant, "attachment": messages.attachment}[kind]
        return [*self._change_of_session(record, at), *told(record, at, side=side)]

    def _change_of_session(self, record: Record, at: datetime | None) -> Iterator[Event]:
        session = _session_id(record)
        if session is None or session == self._session:
            return
        if self._session is not None:
            self.problems.note("the session id changes: what is above was copied from, or belongs to, another session")
            yield Boundary(number=self.number(), at=at, kind="session_change", detail=session)
        self._session = session

    def _entitled(self, record: Record, at: datetime | None) -> Iterator[Event]:
        kind = text(record.get("type"))
        self._titles[kind] = text(record.get(TITLES[kind])) or self._titles.get(kind, "")
        return _nothing(record, at)

    def _progress(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """A subagent's messages are logged inside progress records (2.1.7 to 2.1.81); the rest only draws a screen."""
        nested = mapping(mapping(record.get("data")).get("message"))
        kind, identity = text(nested.get("type")), text(nested.get("uuid"))
        if kind not in ("user", "assistant") or (identity and self._nested.add(identity)):
            return
        told = self._messages.assistant if kind == "assistant" else self._messages.user
        for event in told(nested, moment(nested.get("timestamp")) or at, side=True):
            yield event if event.record or not identity else replace(event, record=short(identity))

    def _system(self, record: Record, at: datetime | None) -> Iterator[Event]:
        subtype = text(record.get("subtype"))
        if subtype in COMPACTIONS:
            detail = text(mapping(record.get("compactMetadata") or record.get("compact_metadata")).get("trigger"))
            yield Boundary(number=self.number(), at=at, sidechain=_is_side(record), kind="compaction", detail=detail)
        elif subtype in ("api_error", "error"):
            yield self._api_error(record, at)
        elif subtype == "init":
            self._first.setdefault("model", text(record.get("model")))
        elif subtype == "local_command":
            yield from self._messages.heard(text(record.get("content")), at, injected=True)
        elif subtype not in SILENT_SYSTEM:
            self.problems.note(f"unknown system record {subtype[:40]!r}")

    def _api_error(self, record: Record, at: datetime | None) -> ApiError:
        error = mapping(record.get("error"))
        told = text(error.get("formatted")) or text(error.get("message")) or text(record.get("content"))
        cause = f"{told} {text(error.get('message'))} {text(mapping(error.get('error')).get('type'))}"
        reason = failure_reason(cause, count(error.get("status")))
        return ApiError(number=self.number(), at=at, sidechain=_is_side(record), reason=reason, text=told)

    def _result(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """The last record of stream-json: its totals cover what the streamed messages did not say."""
        if "subtype" not in record:
            return
        messages = self._messages
        yield from messages.drain()
        rest = read_tokens(mapping(record.get("usage")), self.problems).since(messages.told)
        cost = money(record.get("total_cost_usd"))
        if not rest.is_empty or cost is not None:
            messages.told = messages.told.plus(rest)
            yield self.usage_of(rest, model=self.model or self._first.get("model", ""), at=at, cost=cost)
        subtype, told = text(record.get("subtype")), text(record.get("result"))
        reason = failure_reason(f"{subtype} {told}")
        if record.get("is_error") is True and reason != "other" and not self._messages.has_failed:
            yield ApiError(number=self.number(), at=at, reason=reason, text=told)
        yield Boundary(number=self.number(), at=at, kind="end", detail=subtype)

    def _rate_limit(self, record: Record, at: datetime | None) -> Iterator[Event]:
        info = mapping(record.get("rate_limit_info"))
        if info.get("status") == "rejected" and not self._messages.has_failed:
            self._messages.has_failed = True
            yield ApiError(number=self.number(), at=at, reason="quota", text=text(info.get("rateLimitType")))

    def _pull_request(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """Written again at each start of a session; the link is one."""
        url = text(record.get("prUrl"))
        if url and not self._links.add(url):
            yield PullRequestLink(number=self.number(), at=at, url=url)


def _nothing(record: Record, at: datetime | None) -> Iterator[Event]:
    """A record that says nothing we grade by."""
    del record, at
    return iter(())


def _session_id(record: Record) -> str | None:
    return optional(record.get("sessionId")) or optional(record.get("session_id"))


def _is_side(record: Record) -> bool:
    return record.get("isSidechain") is True or bool(record.get("parent_tool_use_id"))
