"""Codex CLI: rollout logs (`~/.codex/sessions/…/rollout-*.jsonl`), their legacy form, and `codex exec --json`.

A log belongs to the session whose id is in its first `session_meta`. A forked thread's log begins with its parent's
history, rewritten with new times: everything from a `session_meta` of another id up to the first turn begun in this
thread is skipped, tokens included, and noted as a problem, because a commit belongs to one session. Turn and thread
ids are UUIDv7, which sort by time: a turn whose id sorts before the thread's own was copied. Since 0.147 history may
be paginated: records have an ordinal, and a fork only refers to its parent's history by `history_base`. A subagent's
log may still begin with its parent's, up to `subagent_history_start_ordinal`.
"""

import re
from collections import Counter
from datetime import datetime
from typing import Any, Final

from grading.formats.codex import tools
from grading.formats.codex.calls import Calls
from grading.formats.codex.exec_items import ITEM_EVENTS, ExecItems
from grading.formats.events import ApiError, Boundary, Event, Role, TranscriptHeader
from grading.formats.failures import failure_reason
from grading.formats.lines import Problems
from grading.formats.reader import LIKELY, NO, SURE, FormatTier, Parser, Record, digest_json
from grading.formats.usage import ReportedTokens, read_tokens
from grading.formats.values import (
    content_text,
    count_or_none,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    word_set,
)

MAX_DIGESTS: Final = 200_000
RECORD_TYPES: Final = word_set(
    "compacted event_msg inter_agent_communication_metadata response_item session_meta turn_context world_state"
)
LEGACY_ITEMS: Final = word_set("function_call function_call_output local_shell_call message reasoning")
CALLS: Final = word_set("custom_tool_call function_call local_shell_call mcp_call tool_search_call web_search_call")
OUTPUTS: Final = word_set("function_call_output custom_tool_call_output local_shell_call_output tool_search_output")
SILENT_ITEMS: Final = word_set("compaction compaction_trigger ghost_snapshot image_generation_call other")
# Events for the screen, which a response item repeats; and settings.
SILENT_EVENTS: Final = word_set(
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
SESSION_FIELDS: Final = word_set(
    "cli_version cwd forked_from_id git history_base parent_thread_id source subagent_history_start_ordinal "
    "thread_source"
)
METADATA_TYPES: Final = word_set("inter_agent_communication_metadata world_state")
# Ids that are unique to a call and its copies, unlike `item_3` and `call_1`.
RANDOM_ID: Final = re.compile(r"[A-Za-z]{2,12}[_-](?:[A-Za-z0-9]{20,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
MIN_RANDOM_LENGTH: Final = 100
"""Encrypted reasoning longer than this is unique."""
# The message with the instructions of all AGENTS.md files, or of one folder's.
INSTRUCTIONS: Final = re.compile(
    r"\s{0,20}(?:# AGENTS\.md instructions[^\n]{0,1000}\s{1,20}<INSTRUCTIONS>|<user_instructions>)\n?"
    r"(?P<text>.*?)\n?</(?:INSTRUCTIONS|user_instructions)>",
    re.DOTALL,
)
# Fields that a fork rewrites.
REWRITTEN_FIELDS: Final = word_set(
    "call_id completed_at id internal_chat_message_metadata_passthrough session_id started_at thread_id timestamp "
    "turn_id"
)


class Codex(Parser):
    format = "codex"
    title = "Codex CLI"
    tier = FormatTier.FULL
    logs = "~/.codex/sessions/**/rollout-*.jsonl[.zst]; ~/.codex/archived_sessions; codex exec --json"
    hook = "Stop in ~/.codex/hooks.json"
    samples, sources = 53, 5
    has_common_digests = True

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._session_id: str | None = None
        self._meta: Record = {}
        self._title: str | None = None
        self._current_model = ""
        self._total_tokens = ReportedTokens()
        self._in_copied_history = False
        self._in_foreign_session = False
        self._has_inherited_ordinal = False
        """Whether the current record's ordinal shows that it was copied from the session that this one continues."""
        self._exec = ExecItems(self)
        self._calls = Calls(self)
        self._digest_counts: Counter[str] = Counter()
        self._anchor = ""
        """The identity of the last call or thought, or the session's id before the first."""

    @staticmethod
    def score(record: Record) -> float:
        kind = text(record.get("type"))
        # A rollout, which wraps each record in a payload.
        if isinstance(record.get("payload"), dict):
            return SURE if kind in RECORD_TYPES and "timestamp" in record else NO
        # An event of `codex exec --json`.
        if kind in ITEM_EVENTS:
            is_event = {"thread_id", "item", "usage", "error"} & record.keys() or len(record) == 1
            return SURE if kind == "error" or is_event else NO
        # The legacy form: a state record, the first line, or an item without a wrapper.
        if record.get("record_type") == "state" or (not kind and {"id", "timestamp", "instructions"} <= record.keys()):
            return SURE
        has_content = {"call_id", "summary"} & record.keys() or isinstance(record.get("content"), list)
        is_foreign = {"message", "session_id", "sessionId", "parentId"} & record.keys()
        return LIKELY if kind in LEGACY_ITEMS and has_content and not is_foreign else NO

    def feed(self, record: Record) -> list[Event] | None:
        kind, payload, at = text(record.get("type")), record.get("payload"), parse_time(record.get("timestamp"))
        if kind in ITEM_EVENTS:
            return self._exec.feed(kind, record)
        if isinstance(payload, dict):
            self._has_inherited_ordinal = self._is_inherited(record.get("ordinal"))
            return self._wrapped_events(kind, payload, at)
        # The legacy form: a bare meta line, `record_type: state`, and flat items.
        if record.get("record_type") == "state":
            return []
        if not kind and text_or_none(record.get("id")) and "timestamp" in record:
            return self._session_meta(record, at)
        return self._wrapped_events("response_item", record, at)

    def shared_identity(self, record: Record) -> str:
        """A call's own id if it is random; else a digest of the content and of the last call or thought before it.

        Many sessions begin alike, so before the first call the session's id goes into the digest instead.
        """
        payload = mapping(record.get("payload", record))
        kind, payload_kind = text(record.get("type")), text(payload.get("type"))
        call_id, thought = text(payload.get("call_id")), text(payload.get("encrypted_content"))
        if kind in ("session_meta", "thread.started"):
            self._anchor = text(payload.get("id")) or text(payload.get("thread_id"))
            return ""
        if payload_kind in (CALLS | OUTPUTS) and RANDOM_ID.fullmatch(call_id):
            self._anchor = call_id
            return call_id if payload_kind in CALLS else f"{call_id}:output"
        is_legacy_metadata = not kind and not payload_kind
        if is_legacy_metadata or kind == "turn_context":
            return ""
        if len(thought) > MIN_RANDOM_LENGTH:
            self._anchor = digest_json(thought)
            return self._anchor
        return self._digest(payload)

    def _digest(self, payload: Record) -> str:
        """A digest of a record's content, the last call or thought before it, and how often that came so far.

        Records with equal content are distinguished by their order, which a copy preserves.
        """
        body = _without_rewritten(payload)
        if item := mapping(body.get("item")):
            body["item"] = _without_rewritten(item)
        digest = digest_json(self._anchor, body)
        if digest and (digest in self._digest_counts or len(self._digest_counts) < MAX_DIGESTS):
            self._digest_counts[digest] += 1
        occurrence = self._digest_counts[digest]
        return digest if occurrence <= 1 else digest_json(digest, occurrence)

    def finish(self) -> list[Event]:
        self._digest_counts.clear()  # up to MAX_DIGESTS of them: their memory is needed for other things now
        return []

    def header(self) -> TranscriptHeader:
        meta, source = self._meta, mapping(self._meta.get("source"))
        is_subagent = "subagent" in source or meta.get("thread_source") == "subagent"
        spawned = mapping(mapping(source.get("subagent")).get("thread_spawn"))
        parent = text_or_none(meta.get("parent_thread_id")) or text_or_none(spawned.get("parent_thread_id"))
        return TranscriptHeader(
            session_id=self._session_id or self._exec.thread,
            model=self.model or self._current_model or None,
            cwd=text_or_none(meta.get("cwd")),
            branch=text_or_none(mapping(meta.get("git")).get("branch")),
            repository=text_or_none(mapping(meta.get("git")).get("repository_url")),
            harness_version=text_or_none(meta.get("cli_version")),
            title=self._title,
            is_subagent=is_subagent,
            parent_id=(parent or text_or_none(meta.get("forked_from_id"))) if is_subagent else None,
        )

    def _wrapped_events(self, kind: str, payload: Record, at: datetime | None) -> list[Event] | None:
        """Events of a wrapped record, without those of other sessions; tracks where copied history ends."""
        if kind == "session_meta":
            return self._session_meta(payload, at)
        if self._in_foreign_session:
            self.problems.note("a line that stands under another session's id, left out")
            return []
        begins_turn = kind == "turn_context" or payload.get("type") in ("task_started", "turn_started")
        if self._in_copied_history and begins_turn:
            # UUIDv7 sort by time: the turn was copied if its id sorts before the thread's. Other ids don't show that,
            # so then the copied history ends here.
            turn_id, session_id = text(payload.get("turn_id")), self._session_id or ""
            self._in_copied_history = _is_uuid7(turn_id) and _is_uuid7(session_id) and turn_id < session_id
            if not self._in_copied_history:
                self._anchor = session_id  # no longer the last copied call or thought
        is_copied = self._in_copied_history or self._has_inherited_ordinal
        if not is_copied:
            self.note_time(at)
        if kind == "turn_context":
            self._current_model = text(payload.get("model")) or self._current_model
            if not is_copied:
                self._note_turn(payload)
            return []
        if not is_copied:
            return self._content_events(kind, payload, at)
        self.problems.note("a line copied from the thread this one was forked from, left out")
        # This log's running total continues the parent's, so the parent's tokens are its starting point.
        if payload.get("type") == "token_count":
            self._add_total(mapping(payload.get("info")))
        return []

    def _is_inherited(self, ordinal: object) -> bool:
        """Whether a record with that ordinal belongs to the thread that started this subagent."""
        start, number = count_or_none(self._meta.get("subagent_history_start_ordinal")), count_or_none(ordinal)
        return start is not None and number is not None and number < start

    def _note_turn(self, turn: Record) -> None:
        """Note the settings of a turn, and the instructions that it begins with."""
        in_mode = mapping(mapping(turn.get("collaboration_mode")).get("settings"))
        sandbox = turn.get("sandbox_policy")
        sandbox_type = text(sandbox) or text(mapping(sandbox).get("type")) or text(mapping(sandbox).get("mode"))
        self.note_setting("model", turn.get("model"))
        self.note_setting("reasoning_effort", turn.get("effort") or in_mode.get("reasoning_effort"))
        self.note_setting("permission_mode", ", ".join(filter(None, [text(turn.get("approval_policy")), sandbox_type])))
        if instructions := text(turn.get("user_instructions")):
            self.note_instructions("AGENTS.md", instructions)

    def _content_events(self, kind: str, payload: Record, at: datetime | None) -> list[Event] | None:
        """Events of a record by its kind: none if it has nothing to show, None if the kind is unknown."""
        if kind == "response_item":
            return self._item_events(payload, at)
        if kind == "event_msg":
            return self._message_events(payload, at)
        if kind == "compacted":
            boundary = Boundary(number=self.next_number(), at=at, kind="compaction")
            return [boundary, *self.build_messages(Role.SCAFFOLD, text(payload.get("message")), at)]
        if kind in METADATA_TYPES:
            return []
        self.note_unknown(kind)
        return None

    def _session_meta(self, meta: Record, at: datetime | None) -> list[Event]:
        """Take the session's metadata from the first `session_meta`. A later one with another id begins the parent's
        history in a fork, else the lines of another session.
        """
        session_id = text_or_none(meta.get("id"))
        if self._session_id is None:
            self._session_id = session_id
            self._meta = {key: meta[key] for key in SESSION_FIELDS if meta.get(key)}
            self.note_time(parse_time(meta.get("timestamp")) or at)
            self.note_setting("harness_version", meta.get("cli_version"))
            self.note_setting("folder", meta.get("cwd"))
            self.note_setting("repository", mapping(meta.get("git")).get("repository_url"))
            if instructions := text(meta.get("instructions")):
                self.note_instructions("AGENTS.md", instructions)
        elif session_id != self._session_id and "forked_from_id" in self._meta:
            self._in_copied_history = True
        else:
            self._in_foreign_session = session_id != self._session_id
        return []

    def _item_events(self, item: Record, at: datetime | None) -> list[Event] | None:
        """Events of a `response_item`: a call, an output, a message or reasoning. None if its type is unknown."""
        kind = text(item.get("type"))
        if kind in CALLS:
            return list(self._calls.tool_calls(item, kind, at))
        if kind in OUTPUTS:
            return list(self._calls.tool_results(item, at))
        if kind == "message":
            return self._messages(item, at)
        if kind == "reasoning":
            return [
                *self.build_messages(Role.ASSISTANT, content_text(item.get("summary")), at, thinking=True),
                *self.build_messages(Role.ASSISTANT, content_text(item.get("content")), at, thinking=True),
            ]
        if kind == "agent_message":  # between agents of a team
            return self.build_messages(Role.SCAFFOLD, content_text(item.get("content")), at)
        if kind in SILENT_ITEMS:
            return []
        self.note_unknown(f"response_item/{kind}")
        return None

    def _messages(self, item: Record, at: datetime | None) -> list[Event]:
        """The messages of a `message` item, one for each of its parts or of their pieces by role."""
        messages: list[Event] = []
        role = text(item.get("role"))
        for part in mappings(item.get("content")) or [{"text": item.get("content")}]:
            content = content_text(part)
            if role == "assistant":
                messages += self.build_messages(Role.ASSISTANT, content, at)
                continue
            if role == "user" and (match := INSTRUCTIONS.match(content)):
                self.note_instructions("AGENTS.md", match["text"])
            messages += self.build_user_messages(content, at, injected=role != "user")
        return messages

    def _message_events(self, event: Record, at: datetime | None) -> list[Event] | None:
        """Events of an `event_msg`: usage and errors. The other known types yield none, because response items repeat
        them, but may set the title or the end of a call. None if the type is unknown.
        """
        kind = text(event.get("type"))
        if kind == "token_count":  # a running total, whose increase is one response
            added = self._add_total(mapping(event.get("info")))
            if added.is_empty:
                return []
            self.count_response(self._current_model)
            return [self.build_usage(added, model=self._current_model, at=at)]
        if kind in ("error", "stream_error"):
            message = text(event.get("message"))
            cause = tools.to_json(event.get("codex_error_info"))
            return [
                ApiError(number=self.next_number(), at=at, reason=failure_reason(f"{cause} {message}"), text=message)
            ]
        if kind == "thread_name_updated":
            self._title = text_or_none(event.get("thread_name")) or self._title
            return []
        if kind in SILENT_EVENTS:
            if kind == "turn_aborted" and event.get("reason") in (None, "interrupted"):
                self.note_interruption()
            self._calls.note_end(event, kind)
            return []
        self.note_unknown(f"event_msg/{kind}")
        return None

    def _add_total(self, info: Record) -> ReportedTokens:
        """Store the new running total and return its increase. A total that fell was restarted from zero, or else it
        is an earlier one that Codex repeats: then the last response doesn't account for all of it.
        """
        total_usage, last_usage = info.get("total_token_usage"), info.get("last_token_usage")
        if not isinstance(total_usage, dict):
            return ReportedTokens()
        total = read_tokens(total_usage, self.problems, input_has_cached=True)
        if total.is_empty or not total.is_valid:
            return total
        earlier = self._total_tokens
        if earlier.is_empty and "history_base" in self._meta and isinstance(last_usage, dict):
            # The first total of a fork that only refers to its parent's history has the parent's tokens, too.
            self._total_tokens = total
            return read_tokens(last_usage, self.problems, input_has_cached=True)
        has_fallen = (total.output_tokens or 0) < (earlier.output_tokens or 0)
        if has_fallen and isinstance(last_usage, dict):
            is_repeat = read_tokens(last_usage, self.problems, input_has_cached=True) != total
            if is_repeat:
                return ReportedTokens()
        self._total_tokens = total
        return total if has_fallen else total.minus(earlier)


def _without_rewritten(fields: Record) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in REWRITTEN_FIELDS}


def _is_uuid7(identity: str) -> bool:
    return UUID7.fullmatch(identity) is not None
