"""Reads fields of untrusted JSON: each function returns the value if it has the expected type, else an empty value."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MAX_COUNT = 2**53
"""Larger integers aren't plausible counts, and aren't exact as JSON numbers."""
MAX_USD = 1_000_000
"""The highest cost accepted for a session, in a log or in a submission."""

NOTHING: Mapping[str, Any] = {}


def word_set(space_separated: str) -> frozenset[str]:
    return frozenset(space_separated.split())


def kind_by_name(names_by_kind: Mapping[str, str]) -> dict[str, str]:
    """The kind of each tool, from the space-separated names of the tools of each kind."""
    return {name: kind for kind, names in names_by_kind.items() for name in names.split()}


def text(value: object) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def text_or_none(value: object) -> str | None:
    """The value if it is a non-empty string, else None, meaning "not recorded"."""
    return value if isinstance(value, str) and value else None


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty mapping."""
    return value if isinstance(value, dict) else NOTHING


def items(value: object) -> list[Any]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list, without its other items; empty if the value isn't a list."""
    return [item for item in items(value) if isinstance(item, dict)]


def count_or_none(value: object) -> int | None:
    """A whole number from 0 to MAX_COUNT as an int, else None; booleans and fractions give None, 3.0 gives 3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= MAX_COUNT or value != int(value):
        return None
    return int(value)


def exit_code_or_none(value: object) -> int | None:
    """A process's exit code, an int of at most 32 bits, else None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < 2**31 else None


def usd_or_none(value: object) -> float | None:
    """An amount in US dollars from 0 to MAX_USD, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_USD else None


def parse_time(value: object) -> datetime | None:
    """An aware UTC datetime from ISO 8601 text, epoch seconds or epoch milliseconds; None if it is none of these.

    A time without a zone is taken as UTC: durations are right, the time of day may be off by the machine's offset.
    """
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            if parsed.tzinfo is UTC:
                return parsed
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            return None
        is_milliseconds = value > 10**11  # in seconds that would be the year 5138
        return datetime.fromtimestamp(value / 1000 if is_milliseconds else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def content_text(value: object) -> str:
    """The text of a content field, which is a string, a block or a list of blocks; an image becomes `[image]`."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    for block in [value] if isinstance(value, dict) else items(value):
        fields = mapping(block)
        if isinstance(block, str):
            parts.append(block)
        elif "image" in text(fields.get("type")):
            parts.append("[image]")
        else:
            parts.append(text(fields.get("text")) or text(fields.get("content")))
    return "\n".join(filter(None, parts))
