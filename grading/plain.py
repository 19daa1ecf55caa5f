"""Text without what databases, JSON or terminals can't take, which transcripts may contain; and counts as text."""

import math
import re
from collections.abc import Mapping
from typing import Any

# NUL, which PostgreSQL rejects in text and JSON, and lone surrogates, which UTF-8 can't encode.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "�"
# Invisible characters and those that change how other text looks: controls (which terminals obey), direction marks,
# other formatting, tags, and line separators. Not the joiners and selectors that scripts and emoji need.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
BREAKS = re.compile("[\t\n]")
# As many decimal digits as always fit into 64 bits.
KEY_DIGITS = 18


def plain_text(text: str, limit: int | None = None) -> str:
    """`text` without NUL and lone surrogates. Cut to `limit` characters, the last of which is then an ellipsis."""
    clean = UNSTORABLE.sub(REPLACEMENT, text)
    return clean if limit is None or len(clean) <= limit else clean[: limit - 1] + "…"


def visible_text(text: str, limit: int | None = None, *, lines: bool = False) -> str:
    """`text` with invisible and reordering characters replaced by names, such as ⟨U+202E⟩.

    Cut to `limit` characters. With `lines`, tabs and line feeds stay.
    """
    # Replacing never shortens the text, so the first `limit` characters are enough.
    named = UNSEEN.sub(_name, text if limit is None else text[: limit + 1])
    return plain_text(named if lines else BREAKS.sub(_name, named), limit)


def counted(count: int, noun: str) -> str:
    """A number with its noun, which takes an s in the plural: "1 session", "1,200 sessions"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def primary_key(text: str) -> int:
    """The primary key in a field of a form or an address; 0, which no row has, for any other text."""
    return int(text) if text.isdecimal() and len(text) <= KEY_DIGITS else 0


def _name(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def plain_json(value: Any) -> Any:
    """`value` as JSON that every database accepts: clean text, finite numbers, plain dicts and lists."""
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
    """A row's columns as every database accepts them: text cut to its column's limit, everything else as JSON."""
    return {
        name: plain_text(value, limits.get(name)) if isinstance(value, str) else plain_json(value)
        for name, value in columns.items()
    }
