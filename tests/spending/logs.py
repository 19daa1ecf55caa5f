"""Logs in the shape that harnesses write, with the tokens of each response."""

import json
from collections.abc import Iterable

MODEL = "claude-opus-4-8"  # $5 for a million input tokens, $25 for output, $0.50 cached, $6.25 and $10 for cache writes
START = "2026-03-31T11:58:"
THREAD, PARENT = "019f512a-51ec-7f80-9f35-efb5580e025e", "019f5129-0000-7000-8000-000000000000"


def jsonl(records: Iterable[dict]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def message(
    session: str,
    name: str,
    *,
    given: object = 1_000,
    answered: object = 100,
    model: object = MODEL,
    uuid: str = "",
    second: int = 0,
    usage: dict | None = None,
    **fields: object,
) -> dict:
    """A line of Claude Code's log with an assistant message, of 7,500 microdollars unless its tokens are given."""
    tokens = {"input_tokens": given, "output_tokens": answered, "service_tier": "standard", **(usage or {})}
    content = [{"type": "text", "text": f"answer {name}"}]
    body = {"id": f"msg_01{name:0>22}", "role": "assistant", "model": model, "content": content, "usage": tokens}
    return {
        "type": "assistant",
        "uuid": uuid or f"{session}-{name}",
        "sessionId": session,
        "timestamp": f"{START}{second:02}.000Z",
        "version": "2.1.200",
        "message": body,
        **fields,
    }


def prompt(session: str, text: str = "Please fix the build.", **fields: object) -> dict:
    line = {"type": "user", "uuid": f"{session}-{text}", "sessionId": session, "timestamp": f"{START}00.000Z"}
    return {**line, "message": {"role": "user", "content": text}, **fields}


def claude(session: str, *lines: dict) -> bytes:
    return jsonl([prompt(session), *lines])


def codex(*lines: dict, thread: str = THREAD, model: str = "gpt-5.5", **meta: object) -> bytes:
    head = codex_line("session_meta", {"id": thread, "cwd": "/w", "source": "cli", "timestamp": f"{START}00Z", **meta})
    return jsonl([head, codex_line("turn_context", {"model": model, "turn_id": thread}), *lines])


def codex_line(kind: str, payload: dict) -> dict:
    return {"timestamp": f"{START}01.000Z", "type": kind, "payload": payload}


def token_count(given: int, cached: int, answered: int, *, last: tuple[int, int, int] | None = None) -> dict:
    """A running total, and the tokens of the last response."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    info = {"total_token_usage": dict(zip(names, (given, cached, answered), strict=True))}
    if last is not None:
        info["last_token_usage"] = dict(zip(names, last, strict=True))
    return codex_line("event_msg", {"type": "token_count", "info": info})
