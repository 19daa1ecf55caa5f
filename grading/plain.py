"""Hostile text made storable: what a transcript says may hold characters that a database or JSON refuses."""

import math
import re
from collections.abc import Mapping
from typing import Any

# NUL, which PostgreSQL refuses in text and JSON, and lone surrogates, which are no UTF-8.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "�"


def plain_text(text: str, limit: int | None = None) -> str:
    """`text` without NUL and lone surrogates, cut to `limit` characters with an ellipsis for the last."""
    clean = UNSTORABLE.sub(REPLACEMENT, text)
    return clean if limit is None or len(clean) <= limit else clean[: limit - 1] + "…"


def plain_json(value: Any) -> Any:
    """`value` as JSON that every database takes: clean text, numbers that JSON has, plain dicts and lists."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {plain_text(str(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(item) for item in value]
    return value


def plain_row(limits: Mapping[str, int], **columns: Any) -> dict[str, Any]:
    """The columns of a row as every database takes them: text cut to the limit of its column, anything else as JSON."""
    return {
        name: plain_text(value, limits.get(name)) if isinstance(value, str) else plain_json(value)
        for name, value in columns.items()
    }
