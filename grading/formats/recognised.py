"""Harnesses whose logs are recognised but not read yet: each is refused by its name."""

from typing import Any, Final

from grading.formats.reader import LIKELY, NO, SURE, Form, Recogniser, Record
from grading.formats.values import mapping, mappings, text, word_set

KIRO_KINDS: Final = word_set("AssistantMessage Clear Compaction Prompt ToolResults")
GROK_TYPES: Final = word_set("assistant backend_tool_call reasoning system tool_result user")
SQLITE: Final = b"SQLite format 3\x00"


class Kiro(Recogniser):
    format = "kiro"
    title = "Kiro"
    logs = "~/.kiro/sessions"

    @staticmethod
    def score(record: Record) -> float:
        if text(record.get("kind")) in KIRO_KINDS and "data" in record and "version" in record:
            return SURE
        is_message = {"id", "timestamp", "payload"} <= record.keys() and "type" not in record
        return LIKELY if is_message and "type" in mapping(record.get("payload")) else NO

    @staticmethod
    def score_document(document: Any) -> float:
        fields = mapping(document)
        if {"executionId", "actionId", "chat"} <= fields.keys() or {"session_id", "session_state"} <= fields.keys():
            return SURE
        return SURE if {"sessionId", "workspaceDirectory", "history"} <= fields.keys() else NO


class Grok(Recogniser):
    format = "grok"
    title = "Grok"
    logs = "~/.grok/sessions"

    @staticmethod
    def score(record: Record) -> float:
        if "model_fingerprint" in record or record.get("type") == "backend_tool_call":
            return SURE
        is_foreign = {"uuid", "sessionId", "session_id", "timestamp", "payload", "message", "data"} & record.keys()
        has_text = {"content", "summary"} & record.keys()
        return LIKELY if text(record.get("type")) in GROK_TYPES and has_text and not is_foreign else NO

    @staticmethod
    def score_document(document: Any) -> float:
        return SURE if {"chat_format_version", "current_model_id"} <= mapping(document).keys() else NO


class Hermes(Recogniser):
    format = "hermes"
    title = "Hermes"
    logs = "~/.hermes/sessions"

    @staticmethod
    def score_document(document: Any) -> float:
        return SURE if {"session_id", "platform", "session_start", "messages"} <= mapping(document).keys() else NO


class ClaudeCodeWeb(Recogniser):
    format = "claude-code-web"
    title = "Claude Code on the web"
    logs = "an exported session"

    @staticmethod
    def score_document(document: Any) -> float:
        return SURE if isinstance(mapping(document).get("loglines"), list) else NO


class Cline(Recogniser):
    """Cline and the programs made from it, such as Roo Code and Kilo Code."""

    format = "cline"
    title = "Cline or Roo Code"
    logs = "ui_messages.json and api_conversation_history.json of a task"

    @staticmethod
    def score_document(document: Any) -> float:
        first = next(iter(mappings(document)), {})
        is_shown = {"ts", "type"} <= first.keys() and bool({"ask", "say"} & first.keys())
        if is_shown:
            return SURE
        is_sent = {"role", "content", "ts"} <= first.keys()
        return LIKELY if is_sent else NO


class Goose(Recogniser):
    format = "goose"
    title = "Goose"
    logs = "~/.local/share/goose/sessions"

    @staticmethod
    def score(record: Record) -> float:
        if {"working_dir", "description", "message_count"} <= record.keys():
            return SURE
        return LIKELY if {"role", "created", "content"} <= record.keys() and "timestamp" not in record else NO


class Amp(Recogniser):
    format = "amp"
    title = "Amp"
    logs = "~/.local/share/amp/threads"

    @staticmethod
    def score_document(document: Any) -> float:
        fields = mapping(document)
        return SURE if text(fields.get("id")).startswith("T-") and {"v", "messages"} <= fields.keys() else NO


class Aider(Recogniser):
    format = "aider"
    title = "Aider"
    logs = ".aider.chat.history.md"

    @staticmethod
    def score_bytes(head: bytes) -> tuple[float, Form]:
        return (SURE if head.lstrip().startswith(b"# aider chat started at") else NO), Form.TEXT


class OpenHandsSdk(Recogniser):
    """OpenHands since version 1, which writes a file for each event."""

    format = "openhands-sdk"
    title = "OpenHands SDK"
    logs = "~/.openhands/conversations/<id>/events"

    @staticmethod
    def score(record: Record) -> float:
        is_event = text(record.get("kind")).endswith("Event") and {"id", "timestamp", "source"} <= record.keys()
        return SURE if is_event else NO


class Predictions(Recogniser):
    """Patches that were submitted to SWE-bench."""

    format = "swe-bench-predictions"
    title = "SWE-bench predictions"
    reason = "predictions for SWE-bench, which are patches without the sessions that made them"

    @staticmethod
    def score(record: Record) -> float:
        return SURE if {"instance_id", "model_patch"} <= record.keys() and "history" not in record else NO

    @staticmethod
    def score_document(document: Any) -> float:
        return Predictions.score(next(iter(mappings(document)), {}))


class Database(Recogniser):
    """A database of a harness that keeps its sessions in one, such as Crush, Kiro and Zed."""

    format = "database"
    title = "SQLite database"
    reason = "an SQLite database, which may be a harness's; not read yet"

    @staticmethod
    def score_bytes(head: bytes) -> tuple[float, Form]:
        return (LIKELY if head.startswith(SQLITE) else NO), Form.ARCHIVE
