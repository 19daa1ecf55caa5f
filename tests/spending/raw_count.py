"""An independent count of what a log's responses cost, from its raw records. It imports nothing of the product."""

import json
from collections.abc import Iterator
from pathlib import Path

# Dollars for a million tokens: input, cached input, cache writes of five minutes and of an hour, output; and from how
# many input tokens on a response costs more, by which factors for input and output. As published in November 2026.
CLAUDE = {
    "claude-opus-4-5": (5, 0.5, 6.25, 10, 25),
    "claude-opus-4-6": (5, 0.5, 6.25, 10, 25),
    "claude-opus-4-7": (5, 0.5, 6.25, 10, 25),
    "claude-opus-4-8": (5, 0.5, 6.25, 10, 25),
    "claude-fable-5": (10, 1, 12.5, 20, 50),
    "claude-sonnet-4-2": (3, 0.3, 3.75, 6, 15),
    "claude-sonnet-4-5": (3, 0.3, 3.75, 6, 15),
    "claude-sonnet-4-6": (3, 0.3, 3.75, 6, 15),
    "claude-sonnet-5": (2, 0.2, 2.5, 4, 10),
    "claude-haiku-4-5": (1, 0.1, 1.25, 2, 5),
    "claude-3-5-haiku": (0.8, 0.08, 1, 1.6, 4),
}
GPT = {
    "gpt-5.4": (2.5, 0.25, 0, 0, 15),
    "gpt-5.5": (5, 0.5, 0, 0, 30),
    "gpt-5.6-sol": (5, 0.5, 0, 0, 30),
    "gpt-5.6-terra": (2.5, 0.25, 0, 0, 15),
}
# A longer prompt costs more. Opus 4.6 and Sonnet 4.6 have one price since 13 March 2026.
LONG_PROMPT = {"claude-sonnet-4-5": 200_000, "claude-opus-4-6": 200_000, "claude-sonnet-4-6": 200_000, "gpt-": 272_000}
ONE_PRICE_SINCE = {"claude-opus-4-6": "2026-03-13", "claude-sonnet-4-6": "2026-03-13"}


def count_tokens_and_dollars(path: Path, kind: str) -> tuple[int, float | None]:
    """(all tokens, dollars or None if a model has no price in the tables) of a log of this kind of harness."""
    tokens, dollars = 0, 0.0
    is_priced = True
    for model, at, (fresh, cached, write, write_hour, output) in (claude if kind == "claude-code" else codex)(path):
        tokens += fresh + cached + write + write_hour + output
        prices = next((price for name, price in {**CLAUDE, **GPT}.items() if model.startswith(name)), None)
        if prices is None:
            is_priced = False
            continue
        start = next((start for name, start in LONG_PROMPT.items() if model.startswith(name)), None)
        since = next((day for name, day in ONE_PRICE_SINCE.items() if model.startswith(name)), "9999")
        is_long = start is not None and at < since and fresh + cached + write + write_hour > start
        counts = (fresh, cached, write, write_hour, output)
        factors = (2, 2, 2, 2, 1.5) if is_long else (1, 1, 1, 1, 1)
        dollars += sum(n * p * f for n, p, f in zip(counts, prices, factors, strict=True)) / 1e6
    return tokens, dollars if is_priced else None


def records(path: Path) -> Iterator[dict]:
    """The JSON objects of a log, also of lines on which two are glued together."""
    decoder = json.JSONDecoder()
    for raw in path.read_text(errors="replace").split("\n"):
        line = raw.strip()
        while line:
            try:
                value, end = decoder.raw_decode(line)
            except ValueError:
                break
            if isinstance(value, dict):
                yield value
            line = line[end:].strip()


def claude(path: Path) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The last record of each message by its id, of the session that the log ends with."""
    last: dict[str, tuple[str, str, tuple[int, ...]]] = {}
    session = None
    for record in records(path):
        if record.get("type") == "progress":
            nested = (record.get("data") or {}).get("message")
            message = nested.get("message") if isinstance(nested, dict) else None
        else:
            message = record.get("message")
            if record.get("type") in ("user", "assistant") and record.get("sessionId") != session:
                session = record.get("sessionId")
                last = {}
        if not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
            continue
        if message.get("model") == "<synthetic>":
            continue
        usage = message["usage"]
        hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0)
        counts = (
            usage.get("input_tokens", 0),
            usage.get("cache_read_input_tokens", 0),
            usage.get("cache_creation_input_tokens", 0) - hour,
            hour,
            usage.get("output_tokens", 0),
        )
        last[message["id"]] = (message["model"], record["timestamp"], counts)
    yield from last.values()


def codex(path: Path) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Each response whose tokens changed the running total, without those of a parent whose history a fork repeats."""
    thread, model, total, is_copied = None, "", None, False
    for record in records(path):
        payload = record.get("payload") or {}
        if record.get("type") == "session_meta":
            thread = thread or payload.get("id")
            is_copied = payload.get("id") != thread
        elif record.get("type") == "turn_context":
            model = payload.get("model") or model
            is_copied = is_copied and payload.get("turn_id", "~") < thread
        elif payload.get("type") == "task_started":
            is_copied = is_copied and payload.get("turn_id", "~") < thread
        elif payload.get("type") == "token_count" and (payload.get("info") or {}).get("total_token_usage"):
            last = payload["info"]["last_token_usage"]
            if payload["info"]["total_token_usage"] != total and not is_copied and any(last.values()):
                cached = last["cached_input_tokens"]
                yield model, record["timestamp"], (last["input_tokens"] - cached, cached, 0, 0, last["output_tokens"])
            total = payload["info"]["total_token_usage"]
