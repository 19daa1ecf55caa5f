"""Hand-made logs of each harness, as small as the hazard allows."""

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from grading.formats import read
from grading.formats.events import Background, Event, ParseReport, TranscriptHeader

FIXTURES = Path(__file__).parents[1] / "data" / "transcripts"
SESSION = "11111111-1111-4111-8111-111111111111"
THREAD = "019f512a-51ec-7f80-9f35-efb5580e025e"
AT = "2026-01-02T03:04:05.678Z"


def jsonl(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def parse(data: bytes, **options: int) -> tuple[list[Event], TranscriptHeader, ParseReport]:
    """The events of the conversation, the header and the report. `background` has the other events."""
    reader = read(BytesIO(data), **options)
    events = [event for event in reader if not isinstance(event, Background)]
    return events, reader.header, reader.report


def background(data: bytes) -> list[Background]:
    return [event for event in read(BytesIO(data)) if isinstance(event, Background)]


def only(events: Iterable[Event], kind: type[Event]) -> list:
    return [event for event in events if isinstance(event, kind)]


def claude(role: str, content: object, *, uuid: str = "", **fields: object) -> dict:
    message = {"role": role, "content": content} | fields.pop("message", {})
    record = {"type": role, "uuid": uuid or f"u-{json.dumps(content)[:200]}", "sessionId": SESSION, "timestamp": AT}
    return record | {"message": message} | fields


def tool_use(name: str, arguments: dict, call_id: str = "t1") -> list:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]


def tool_result(content: object, call_id: str = "t1", **fields: object) -> list:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": content} | fields]


def codex(kind: str, payload: dict, at: str = AT) -> dict:
    return {"timestamp": at, "type": kind, "payload": payload}


def codex_meta(**fields: object) -> dict:
    return codex("session_meta", {"id": THREAD, "timestamp": AT, "cwd": "/w", "source": "cli"} | fields)


def codex_item(kind: str, **fields: object) -> dict:
    return codex("response_item", {"type": kind} | fields)


def token_count(given: int, cached: int, answered: int) -> dict:
    usage = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": answered, "total_tokens": 0}
    return codex("event_msg", {"type": "token_count", "info": {"total_token_usage": usage}})


def copilot(kind: str, /, **data: object) -> dict:
    return {"type": kind, "data": data, "id": f"e-{json.dumps(data)[:200]}", "timestamp": AT, "parentId": None}


def gptme(role: str, content: str, **fields: object) -> dict:
    return {"role": role, "content": content, "timestamp": "2026-01-02T03:04:05.678"} | fields


GPTME_PROMPT = gptme("system", "You are gptme v0.35.1, a general-purpose AI assistant.", pinned=True, hide=True)
