"""Codex CLI: rollout logs (`~/.codex/sessions/…/rollout-*.jsonl`), their legacy form, and `codex exec --json`.

The log is the session whose id the first `session_meta` carries. A forked thread's log begins with its parent's
history, rewritten with new times: whatever comes after a `session_meta` of another id and before the first turn that
began in this thread is left out, tokens included, and reported (a commit belongs to one session). Turn and thread ids
are UUIDv7, which sort by time, so a turn whose id sorts before the thread's own was copied.
"""

import re
from collections import Counter
from datetime import datetime
from typing import Final

from grading.formats import codex_tools
from grading.formats.codex_calls import Calls
from grading.formats.codex_exec import ITEM_EVENTS, ExecItems
from grading.formats.events import ApiError, Boundary, Event, Message, Role, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, MAX_RECORDS, NO, SURE, Parser, Record, digest_of
from grading.formats.scaffold import spoken
from grading.formats.usage import ReportedTokens, read_tokens
from grading.formats.values import mapping, mappings, moment, optional, parts_text, text, words

TYPES: Final = words(
    "compacted event_msg inter_agent_communication_metadata response_item session_meta turn_context world_state"
)
LEGACY_ITEMS: Final = words("function_call function_call_output local_shell_call message reasoning")
CALLS: Final = words("custom_tool_call function_call local_shell_call mcp_call tool_search_call web_search_call")
OUTPUTS: Final = words("function_call_output custom_tool_call_output local_shell_call_output tool_search_output")
SILENT_ITEMS: Final = words("compaction compaction_trigger ghost_snapshot image_generation_call other")
# Drawn on the screen, and said again by a response item; or settings.
SILENT_EVENTS: Final = words(
    "agent_message agent_message_delta agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break "
    "apply_patch_approval_request background_event collab_agent_interaction_end collab_agent_spawn_end "
    "collab_close_end collab_resume_end collab_waiting_end context_compacted deprecation_notice "
    "dynamic_tool_call_request dynamic_tool_call_response entered_review_mode exec_approval_request "
    "exec_command_begin exec_command_end exec_command_output_delta exited_review_mode guardian_assessment "
    "image_generation_end item_completed item_started mcp_startup_complete mcp_tool_call_begin mcp_tool_call_end "
    "patch_apply_begin patch_apply_end plan_update shutdown_complete sub_agent_activity task_complete task_started "
    "thread_goal_updated thread_rolled_back thread_settings_applied turn_aborted turn_complete turn_diff turn_started "
    "undo_completed undo_started user_message view_image_tool_call warning web_search_begin web_search_end"
)
UUID7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
META: Final = words("cli_version cwd forked_from_id git parent_thread_id source thread_source")
METADATA: Final = words("inter_agent_communication_metadata world_state")
# Ids that are the same in every copy of a call; `item_3` and `call_1` are those of many.
RANDOM_ID: Final = re.compile(r"[A-Za-z]{2,12}[_-](?:[A-Za-z0-9]{20,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
RANDOM_LENGTH: Final = 100
# What a fork writes anew.
REWRITTEN: Final = words(
    "call_id completed_at id internal_chat_message_metadata_passthrough session_id started_at thread_id timestamp "
    "turn_id"
)


class Codex(Parser):
    format = "codex"
    title = "Codex CLI"
    has_common_digests = True

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._id: str | None = None
        self._meta: Record = {}
        self._title: str | None = None
        self._current_model = ""
        self._total = ReportedTokens()
        self._copied = False
        self._foreign = False
        self._exec = ExecItems(self)
        self._calls = Calls(self)
        self._alike: Counter[str] = Counter()
        self._anchor = ""

    @staticmethod
    def score(record: Record) -> float:
        """Rollouts; `codex exec --json`; and the legacy form, whose items have no wrapper."""
        kind = text(record.get("type"))
        if isinstance(record.get("payload"), dict):
            return SURE if kind in TYPES and "timestamp" in record else NO
        if kind in ITEM_EVENTS:
            is_event = {"thread_id", "item", "usage", "error"} & record.keys() or len(record) == 1
            return SURE if kind == "error" or is_event else NO
        if record.get("record_type") == "state" or (not kind and {"id", "timestamp", "instructions"} <= record.keys()):
            return SURE
        has_content = {"call_id", "summary"} & record.keys() or isinstance(record.get("content"), list)
        is_foreign = {"message", "session_id", "sessionId", "parentId"} & record.keys()
        return LIKELY if kind in LEGACY_ITEMS and has_content and not is_foreign else NO

    def feed(self, record: Record) -> list[Event] | None:
        kind, payload, at = text(record.get("type")), record.get("payload"), moment(record.get("timestamp"))
        if kind in ITEM_EVENTS:
            return self._exec.feed(kind, record)
        if isinstance(payload, dict):
            return self._wrapped(kind, payload, at)
        # Before the wrapper: a bare meta line, `record_type: state`, and flat items.
        if record.get("record_type") == "state":
            return []
        if not kind and optional(record.get("id")) and "timestamp" in record:
            return self._session_meta(record, at)
        return self._wrapped("response_item", record, at)

    def copied_as(self, record: Record) -> str:
        """A call's own id where it is random; else a digest of what was said, and after which call or thought.

        Many sessions begin alike: what stands before the first call is told apart by the session's id.
        """
        payload = mapping(record.get("payload", record))
        kind, call_id = text(payload.get("type")), text(payload.get("call_id"))
        if record.get("type") in ("session_meta", "thread.started"):
            self._anchor = text(payload.get("id")) or text(payload.get("thread_id"))
            return ""
        if kind in (CALLS | OUTPUTS) and RANDOM_ID.fullmatch(call_id):
            self._anchor = call_id
            return call_id if kind in CALLS else f"{call_id}:output"
        if not (kind or text(record.get("type"))) or record.get("type") == "turn_context":
            return ""
        if len(thought := text(payload.get("encrypted_content"))) > RANDOM_LENGTH:
            self._anchor = digest_of(thought)
            return self._anchor
        body = {key: value for key, value in payload.items() if key not in REWRITTEN}
        if item := mapping(body.get("item")):
            body["item"] = {key: value for key, value in item.items() if key not in REWRITTEN}
        # Records that say the same are told apart by their order, which a copy keeps.
        digest = digest_of(self._anchor, body)
        if digest and (digest in self._alike or len(self._alike) < MAX_RECORDS):
            self._alike[digest] += 1
        alike = self._alike[digest]
        return digest if alike <= 1 else digest_of(digest, alike)

    def header(self) -> TranscriptHeader:
        meta, source = self._meta, mapping(self._meta.get("source"))
        is_subagent = "subagent" in source or meta.get("thread_source") == "subagent"
        spawned = mapping(mapping(source.get("subagent")).get("thread_spawn"))
        parent = optional(meta.get("parent_thread_id")) or optional(spawned.get("parent_thread_id"))
        return TranscriptHeader(
            harness=self.format,
            session_id=self._id or self._exec.thread,
            model=self.model or self._current_model or None,
            cwd=optional(meta.get("cwd")),
            branch=optional(mapping(meta.get("git")).get("branch")),
            repository=optional(mapping(meta.get("git")).get("repository_url")),
            harness_version=optional(meta.get("cli_version")),
            started_at=self.started_at,
            ended_at=self.ended_at,
            title=self._title,
            is_subagent=is_subagent,
            parent_id=parent or optional(meta.get("forked_from_id")) if is_subagent else None,
        )

    def _wrapped(self, kind: str, payload: Record, at: datetime | None) -> list[Event] | None:
        if kind == "session_meta":
            return self._session_meta(payload, at)
        if self._foreign:
            self.problems.note("a line that stands under another session's id, left out")
            return []
        if self._copied and (kind == "turn_context" or payload.get("type") in ("task_started", "turn_started")):
            turn = text(payload.get("turn_id"))
            self._copied = _is_time_ordered(turn) and _is_time_ordered(self._id or "") and turn < (self._id or "")
            if not self._copied:
                self._anchor = self._id or ""
        if not self._copied:
            self.saw(at)
        if kind == "turn_context":
            self._current_model = text(payload.get("model")) or self._current_model
            return []
        if not self._copied:
            return self._content(kind, payload, at)
        self.problems.note("a line copied from the thread this one was forked from, left out")
        # The parent's tokens go on being counted in this log's running total: they are the base it starts from.
        if payload.get("type") == "token_count":
            self._running_total(mapping(payload.get("info")))
        return []

    def _content(self, kind: str, payload: Record, at: datetime | None) -> list[Event] | None:
        if kind == "response_item":
            return self._item(payload, at)
        if kind == "event_msg":
            return self._event(payload, at)
        if kind == "compacted":
            summary = self._messages(Role.SCAFFOLD, [text(payload.get("message"))], at)
            return [Boundary(number=self.number(), at=at, kind="compaction"), *summary]
        if kind in METADATA:
            return []
        self.unknown(kind)
        return None

    def _session_meta(self, meta: Record, at: datetime | None) -> list[Event]:
        session = optional(meta.get("id"))
        if self._id is None:
            self._id, self._meta = session, {key: meta[key] for key in META if meta.get(key)}
            self.saw(moment(meta.get("timestamp")) or at)
        elif session != self._id and "forked_from_id" in self._meta:
            self._copied = True
        else:
            self._foreign = session != self._id
        return []

    def _item(self, item: Record, at: datetime | None) -> list[Event] | None:
        kind = text(item.get("type"))
        if kind in CALLS:
            return list(self._calls.called(item, kind, at))
        if kind in OUTPUTS:
            return list(self._calls.answered(item, at))
        if kind == "message":
            events: list[Event] = []
            role = text(item.get("role"))
            for part in mappings(item.get("content")) or [{"text": item.get("content")}]:
                told = parts_text(part)
                if role == "assistant":
                    events += self._messages(Role.ASSISTANT, [told], at)
                    continue
                for speaker, said in spoken(told, injected=role != "user"):
                    events += self._messages(speaker, [said], at)
            return events
        if kind == "reasoning":
            thoughts = [parts_text(item.get("summary")), parts_text(item.get("content"))]
            return self._messages(Role.ASSISTANT, thoughts, at, thinking=True)
        if kind == "agent_message":  # one agent of a team to another
            return self._messages(Role.SCAFFOLD, [parts_text(item.get("content"))], at)
        if kind in SILENT_ITEMS:
            return []
        self.unknown(f"response_item/{kind}")
        return None

    def _messages(self, role: Role, texts: list[str], at: datetime | None, *, thinking: bool = False) -> list[Event]:
        return [
            Message(number=self.number(), at=at, role=role, text=told, thinking=thinking)
            for told in texts
            if told.strip()
        ]

    def _event(self, event: Record, at: datetime | None) -> list[Event] | None:
        kind = text(event.get("type"))
        if kind == "token_count":  # the running total; what it grew by is one response
            grown = self._running_total(mapping(event.get("info")))
            if grown.is_empty:
                return []
            self.answered(self._current_model)
            return [self.usage_of(grown, model=self._current_model, at=at)]
        if kind in ("error", "stream_error"):
            told = text(event.get("message"))
            cause = codex_tools.compact(event.get("codex_error_info"))
            return [ApiError(number=self.number(), at=at, reason=failure_reason(f"{cause} {told}"), text=told)]
        if kind == "thread_name_updated":
            self._title = optional(event.get("thread_name")) or self._title
            return []
        if kind in SILENT_EVENTS:
            self._calls.ended(event, kind)
            return []
        self.unknown(f"event_msg/{kind}")
        return None

    def _running_total(self, info: Record) -> ReportedTokens:
        """What the running total grew by; one that fell was started anew."""
        if not isinstance(info.get("total_token_usage"), dict):
            return ReportedTokens()
        total, earlier = read_tokens(info["total_token_usage"], self.problems, input_has_cached=True), self._total
        fell = (total.output_tokens or 0) < (earlier.output_tokens or 0)
        self._total = total
        return total if fell else total.since(earlier)


def _is_time_ordered(identity: str) -> bool:
    """Whether an id is a UUIDv7, which begins with the time it was made."""
    return UUID7.fullmatch(identity) is not None
