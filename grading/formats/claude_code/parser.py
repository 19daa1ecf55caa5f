"""Claude Code: session logs (`~/.claude/projects/…/<id>.jsonl`) and `--output-format stream-json`.

A log belongs to the session whose id is on its last conversation line: a resumed or forked log begins with lines
copied from another session, and continues under its own id. Each change of id yields a `Boundary` of kind
`session_change` with the new id; everything before the last one is another session's work.

A subagent's own log (`<session>/subagents/agent-<id>.jsonl`) has its parent's session id on every line; its own id is
`agentId`, which early versions did not write.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from grading.formats.claude_code.messages import Messages
from grading.formats.events import ApiError, Boundary, Event, PullRequestLink, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems, RecentKeys
from grading.formats.reader import LIKELY, NO, SURE, FormatTier, Parser, Record, digest_json, shorten_identity
from grading.formats.usage import read_tokens
from grading.formats.values import count_or_none, mapping, parse_time, text, text_or_none, usd_or_none, word_set

EVENT_TYPES: Final = word_set("attachment progress rate_limit_event result system")
METADATA: Final = word_set(
    "agent-name atis-latch auth_status bridge-session control_request control_response file-history-delta "
    "file-history-snapshot frame-link keep_alive last-prompt mode permission-mode queue-operation relocated started "
    "stream_event streamlined_text tool_progress tool_use_summary worktree-state"
)
TITLE_FIELDS: Final = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
COMPACTION_SUBTYPES: Final = word_set("compact_boundary microcompact_boundary")
SILENT_SUBTYPES: Final = word_set(
    "api_refusal away_summary bridge_status hook_response hook_started informational model_refusal_fallback "
    "session_start slash_command status stop_hook_summary task_notification task_started turn_duration"
)


class ClaudeCode(Parser):
    format = "claude-code"
    title = "Claude Code"
    tier = FormatTier.FULL
    logs = "~/.claude/projects/<project>/<session>.jsonl; claude -p --output-format stream-json"
    hook = "SessionEnd in ~/.claude/settings.json"
    samples, sources = 68, 12

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._messages = Messages(self)
        self._session: str | None = None
        self._metadata: dict[str, str] = {}
        """The first value of each field that describes the session."""
        self._titles: dict[str, str] = {}
        self._pull_request_urls = RecentKeys()
        self._progress_ids = RecentKeys()
        """The ids of subagents' messages in `progress` records."""
        self._sidechain_flags: set[bool] = set()
        """Whether conversation lines of the main thread (False) and of subagents (True) have occurred."""

    @staticmethod
    def score(record: Record) -> float:
        """Other harnesses imitate stream-json, but without `uuid` and `parent_tool_use_id`: so one is required."""
        kind = text(record.get("type"))
        session = text(record.get("sessionId")) or text(record.get("session_id"))
        if kind == "file-history-snapshot":
            return SURE if {"messageId", "snapshot"} <= record.keys() else NO
        if kind == "summary":
            return SURE if "leafUuid" in record else NO
        if kind in ("user", "assistant"):
            message = mapping(record.get("message"))
            is_message = message.get("role") == kind and isinstance(message.get("content"), str | list)
            has_own_fields = "uuid" in record or "parent_tool_use_id" in record
            return SURE if session and is_message and has_own_fields else NO
        if kind in EVENT_TYPES:
            return SURE if session and "uuid" in record and "systemPayload" not in record else NO
        is_metadata = kind in METADATA | {"pr-link", *TITLE_FIELDS} or (not kind and "aiTitle" in record)
        return LIKELY if is_metadata and (session or kind == "file-history-delta") else NO

    def identity(self, record: Record) -> str:
        return text(record.get("uuid"))

    def shared_identity(self, record: Record) -> str:
        if identity := self.identity(record):
            return shorten_identity(identity)
        return digest_json("pr-link", record.get("prUrl")) if record.get("type") == "pr-link" else ""

    def feed(self, record: Record) -> list[Event] | None:
        kind = text(record.get("type"))
        at = self.note_time(parse_time(record.get("timestamp")))
        session = text_or_none(record.get("sessionId")) or text_or_none(record.get("session_id"))
        version = record.get("version") or record.get("claude_code_version")
        for name, value in (
            ("session_id", session),
            ("agent_id", record.get("agentId")),
            ("cwd", record.get("cwd")),
            ("branch", record.get("gitBranch")),
            ("version", version),
        ):
            if value and name not in self._metadata and isinstance(value, str):
                self._metadata[name] = value
        if kind not in ("user", "assistant", "attachment"):
            self._note_settings(record, kind, version)
            events = self._other_events(record, kind, at)
            if events is None:
                self.note_unknown(kind)
            return events
        if kind != "attachment" and not isinstance(mapping(record.get("message")).get("content"), str | list):
            self.note_unknown(f"{kind} without content")
            return None
        events = self._change_session(session, at)
        self._note_settings(record, kind, version)
        side = _is_sidechain(record)
        self._sidechain_flags.add(side)
        if kind == "user":
            events += self._messages.user(record, at, side=side)
        elif kind == "assistant":
            events += self._messages.assistant(record, at, side=side)
        else:
            events += self._messages.attachment(record, at, side=side)
        return events

    def _change_session(self, session: str | None, at: datetime | None) -> list[Event]:
        """Note the session that a conversation line belongs to, None if it has no id. If another one came before, all
        so far is that one's: then the change is an event.
        """
        previous = self._session
        if session is None or session == previous:
            return []
        self._session = session
        if previous is None:
            return []
        self.problems.note("the session id changes: what is above was copied from, or belongs to, another session")
        self._messages.change_session()
        self.forget_settings()
        return [Boundary(number=self.next_number(), at=at, kind="session_change", detail=session)]

    def _note_settings(self, record: Record, kind: str, version: object) -> None:
        """Note what a record of this kind shows of the session's settings, its instructions and its skills."""
        self.note_setting("harness_version", version)
        self.note_setting("folder", record.get("cwd"))
        self.note_setting("permission_mode", record.get("permissionMode"))
        if kind == "assistant":
            self.note_setting("reasoning_effort", record.get("effort"))
            self.note_setting("skill", record.get("attributionSkill"))
        attachment = mapping(record.get("attachment"))
        if attachment.get("type") == "nested_memory":
            file = mapping(attachment.get("content"))
            path = text(attachment.get("path")) or text(attachment.get("displayPath"))
            self.note_instructions(path, text(file.get("rawContent")) or text(file.get("content")))

    def finish(self) -> list[Event]:
        return list(self._messages.drain())

    def header(self) -> TranscriptHeader:
        titles = [self._titles[kind] for kind in TITLE_FIELDS if self._titles.get(kind)]  # the person's own first
        session = self._session or self._metadata.get("session_id")
        is_subagent = self._sidechain_flags == {True}
        return TranscriptHeader(
            session_id=self._metadata.get("agent_id") if is_subagent else session,
            model=self.model or self._metadata.get("model"),
            cwd=self._metadata.get("cwd"),
            branch=self._metadata.get("branch"),
            harness_version=self._metadata.get("version"),
            title=titles[0] if titles else None,
            is_subagent=is_subagent,
            parent_id=session if is_subagent else None,
        )

    def _other_events(self, record: Record, kind: str, at: datetime | None) -> list[Event] | None:
        """The events of a record outside the conversation; None if its type is unknown."""
        if kind == "pr-link":  # the harness repeats links each time the session is started
            url = text(record.get("prUrl"))
            is_new = bool(url) and not self._pull_request_urls.check_and_add(url)
            return [PullRequestLink(number=self.next_number(), at=at, url=url)] if is_new else []
        if kind == "progress":
            return self._progress_events(mapping(mapping(record.get("data")).get("message")), at)
        if kind == "rate_limit_event":
            info = mapping(record.get("rate_limit_info"))
            if info.get("status") != "rejected" or self._messages.has_failed:
                return []
            self._messages.has_failed = True
            return [ApiError(number=self.next_number(), at=at, reason="quota", text=text(info.get("rateLimitType")))]
        if kind == "result":
            return list(self._result(record, at))
        if kind == "system":
            return list(self._system(record, at))
        if kind in TITLE_FIELDS:
            self._titles[kind] = text(record.get(TITLE_FIELDS[kind])) or self._titles.get(kind, "")
            return []
        is_known = kind in METADATA or "aiTitle" in record
        return [] if is_known else None

    def _progress_events(self, message: Record, at: datetime | None) -> list[Event]:
        """The events of a subagent's message, which versions 2.1.7 to 2.1.81 logged as `progress`.

        Other progress and repeated messages have no events.
        """
        role, identity = text(message.get("type")), text(message.get("uuid"))
        if role not in ("user", "assistant"):
            return []
        is_repeat = bool(identity) and self._progress_ids.check_and_add(identity)
        if is_repeat:
            return []
        read_message = self._messages.assistant if role == "assistant" else self._messages.user
        events = list(read_message(message, parse_time(message.get("timestamp")) or at, side=True))
        if not identity:
            return events
        # Events without an identity of their own get that of the message.
        return [event if event.record else replace(event, record=shorten_identity(identity)) for event in events]

    def _system(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """Events of a `system` record by its subtype: compactions, errors and local commands."""
        subtype, side = text(record.get("subtype")), _is_sidechain(record)
        if subtype in COMPACTION_SUBTYPES:
            detail = text(mapping(record.get("compactMetadata") or record.get("compact_metadata")).get("trigger"))
            yield Boundary(number=self.next_number(), at=at, sidechain=side, kind="compaction", detail=detail)
        elif subtype in ("api_error", "error"):
            error = mapping(record.get("error"))
            message = text(error.get("formatted")) or text(error.get("message")) or text(record.get("content"))
            cause = f"{message} {text(error.get('message'))} {text(mapping(error.get('error')).get('type'))}"
            reason = failure_reason(cause, count_or_none(error.get("status")))
            yield ApiError(number=self.next_number(), at=at, sidechain=side, reason=reason, text=message)
        elif subtype == "init":
            self._metadata.setdefault("model", text(record.get("model")))
            self.note_setting("model", record.get("model"))
        elif subtype == "local_command":
            yield from self.build_user_messages(text(record.get("content")), at, injected=True)
        elif subtype not in SILENT_SUBTYPES:
            self.note_unknown(subtype[:40], "system record")

    def _result(self, record: Record, at: datetime | None) -> Iterator[Event]:
        """Events of the last record of stream-json: the usage that is in its totals and in no message, an error that no
        message reported, and the end. A record without a subtype has no events.
        """
        if "subtype" not in record:
            return
        messages = self._messages
        yield from messages.drain()
        unreported = read_tokens(mapping(record.get("usage")), self.problems).minus(messages.reported_tokens)
        cost = total_cost = usd_or_none(record.get("total_cost_usd"))  # of the run so far
        if total_cost is not None:
            if total_cost >= messages.reported_cost:  # else it is of another run, and counts in full
                cost = total_cost - messages.reported_cost
            messages.reported_cost = total_cost
        if not unreported.is_empty or cost is not None:
            messages.reported_tokens = messages.reported_tokens.plus(unreported)
            yield self.build_usage(unreported, model=self.model or self._metadata.get("model", ""), at=at, cost=cost)
        subtype, result = text(record.get("subtype")), text(record.get("result"))
        reason = failure_reason(f"{subtype} {result}")
        if record.get("is_error") is True and reason != "other" and not self._messages.has_failed:
            yield ApiError(number=self.next_number(), at=at, reason=reason, text=result)
        yield Boundary(number=self.next_number(), at=at, kind="end", detail=subtype)


def _is_sidechain(record: Record) -> bool:
    return record.get("isSidechain") is True or bool(record.get("parent_tool_use_id"))
