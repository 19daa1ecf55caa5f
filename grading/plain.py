"""Hostile text made storable: what a transcript says may hold characters that a database or JSON refuses."""

import math
import re
from collections.abc import Mapping
from typing import Any

# NUL, which PostgreSQL refuses in text and JSON, and lone surrogates, which are no UTF-8.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "�"
# What changes how other text looks, or cannot be seen itself: controls (terminals obey them), marks of direction, other
# formatting, tags, and separators of lines. Not the joiners and selectors that scripts and emoji are written with.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
BREAKS = re.compile("[\t\n]")


def plain_text(text: str, limit: int | None = None) -> str:
    """`text` without NUL and lone surrogates, cut to `limit` characters with an ellipsis for the last."""
    clean = UNSTORABLE.sub(REPLACEMENT, text)
    return clean if limit is None or len(clean) <= limit else clean[: limit - 1] + "…"


def visible_text(text: str, limit: int | None = None, *, lines: bool = False) -> str:
    """`text` as people can trust it to look: each character that hides or moves others is named, as ⟨U+202E⟩.

    Cut to `limit` characters. With `lines`, tabs and line feeds stay what they are.
    """
    # The start is enough: naming only lengthens.
    named = UNSEEN.sub(_name, text if limit is None else text[: limit + 1])
    return plain_text(named if lines else BREAKS.sub(_name, named), limit)


def _name(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found[0]):04X}⟩"


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
