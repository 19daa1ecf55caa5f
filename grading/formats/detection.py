"""Which harness wrote a file, judged by all records in a generous head of it, never by its name or its first line."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from grading.formats.claude_code import METADATA as CLAUDE_METADATA
from grading.formats.claude_code import TITLES as CLAUDE_TITLES
from grading.formats.codex_exec import ITEM_EVENTS
from grading.formats.lines import LineTally, read_objects
from grading.formats.reader import Record
from grading.formats.values import mapping, text, words

HEAD: Final = 256 * 1024
THRESHOLD: Final = 0.5
SURE, LIKELY, NO = 1.0, 0.6, 0.0

CLAUDE_RECORDS: Final = words("assistant attachment progress rate_limit_event result system user")
CODEX_TYPES: Final = words(
    "compacted event_msg inter_agent_communication_metadata response_item session_meta turn_context world_state"
)
CODEX_ITEMS: Final = words("function_call function_call_output local_shell_call message reasoning")
GPTME_FIELDS: Final = words("call_id content file_hashes files hide id metadata pinned quiet role timestamp")
GPTME_OWN: Final = words("call_id file_hashes files hide metadata pinned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """`score` in [0, 1]: the mean over the head's records of how surely each is of that format. None: unknown."""

    format: str | None
    score: float
    reason: str


def claude_code(record: Record) -> float:
    """Its session logs, and its stream-json, which others imitate without `uuid` or `parent_tool_use_id`."""
    kind = text(record.get("type"))
    session = text(record.get("sessionId")) or text(record.get("session_id"))
    if kind == "file-history-snapshot":
        return SURE if {"messageId", "snapshot"} <= record.keys() else NO
    if kind == "summary":
        return SURE if "leafUuid" in record else NO
    if kind in CLAUDE_RECORDS:
        return SURE if session and _is_claude_record(record, kind) else NO
    is_metadata = kind in CLAUDE_METADATA | {"pr-link", *CLAUDE_TITLES} or (not kind and "aiTitle" in record)
    return LIKELY if is_metadata and (session or kind == "file-history-delta") else NO


def _is_claude_record(record: Record, kind: str) -> bool:
    if kind not in ("user", "assistant"):
        return "uuid" in record and "systemPayload" not in record
    message = mapping(record.get("message"))
    is_message = message.get("role") == kind and isinstance(message.get("content"), str | list)
    return is_message and ("uuid" in record or "parent_tool_use_id" in record)


def codex(record: Record) -> float:
    """Rollouts; `codex exec --json`; and the legacy form, whose items have no wrapper."""
    kind = text(record.get("type"))
    if isinstance(record.get("payload"), dict):
        return SURE if kind in CODEX_TYPES and "timestamp" in record else NO
    if kind in ITEM_EVENTS:
        return (
            SURE
            if kind == "error" or {"thread_id", "item", "usage", "error"} & record.keys() or len(record) == 1
            else NO
        )
    if record.get("record_type") == "state" or (not kind and {"id", "timestamp", "instructions"} <= record.keys()):
        return SURE
    is_item = kind in CODEX_ITEMS and (
        {"call_id", "summary"} & record.keys() or isinstance(record.get("content"), list)
    )
    return LIKELY if is_item and not {"message", "session_id", "sessionId", "parentId"} & record.keys() else NO


def gptme(record: Record) -> float:
    """Messages without a type, of exactly gptme's fields."""
    role, content = record.get("role"), record.get("content")
    if role not in ("system", "user", "assistant", "tool") or not isinstance(content, str | list):
        return NO
    if "timestamp" not in record or record.keys() - GPTME_FIELDS:
        return NO
    is_own = GPTME_OWN & record.keys() or (role == "system" and text(content).startswith("You are gptme"))
    return SURE if is_own else LIKELY


SCORERS: Final[dict[str, Callable[[Record], float]]] = {"claude-code": claude_code, "codex": codex, "gptme": gptme}


def detect(head: bytes, filename: str = "") -> Detection:
    """The format of a transcript from its first bytes (`HEAD` of them are plenty). The file's name only adds words.

    A format is named where its records make up at least half of the head (`THRESHOLD`), so that a foreign file with
    a few familiar lines is refused rather than misread.
    """
    tally = LineTally()
    records = [record for _, record in read_objects(BytesIO(head), tally)]
    if not records:
        return Detection(format=None, score=0.0, reason=_unreadable(head, tally))
    scores = {name: sum(map(scorer, records)) / len(records) for name, scorer in SCORERS.items()}
    best = max(scores, key=lambda name: scores[name])
    score = round(scores[best], 3)
    if score < THRESHOLD:
        closest = f"; closest is {best} with a score of {score}" if score else ""
        return Detection(format=None, score=score, reason=f"JSON of another kind ({_kinds(records)}){closest}")
    mine = sum(1 for record in records if SCORERS[best](record))
    named = f" in {filename!r}" if filename else ""
    return Detection(format=best, score=score, reason=f"{mine} of {len(records)} records{named} are {best}'s")


def _unreadable(head: bytes, tally: LineTally) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text in UTF-16, not UTF-8"
    if head.lstrip()[:1] in (b"{", b"["):
        is_one_line = tally.torn_tail and b"\n" not in head.strip()
        what = "one line of JSON that does not end" if is_one_line else "a JSON document over several lines"
        return f"{what}, not a log with one object a line"
    return "text or bytes that are not JSON lines"


def _kinds(records: Iterable[dict[str, Any]]) -> str:
    """What the first few records call themselves, or their keys."""
    return "; ".join(list(dict.fromkeys(map(_kind, records)))[:3])


def _kind(record: Record) -> str:
    kind = text(record.get("type"))
    return f"type {kind[:40]!r}" if kind else f"keys {', '.join(sorted(record)[:5])[:80]!r}"
