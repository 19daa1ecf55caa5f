"""Reading fields of hostile JSON: each function returns the value if it is what it should be, else an empty one."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MAX_COUNT = 2**53
"""Above this an integer is no count of anything (and no longer exact as a JSON number)."""
MAX_USD = 1_000_000
"""The most that a session may cost, also if its caller says so."""

NOTHING: Mapping[str, Any] = {}


def words(listed: str) -> frozenset[str]:
    """The words of a text as a set, for the long lists of names that a format has."""
    return frozenset(listed.split())


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def optional(value: object) -> str | None:
    """A non-empty string, or None for "not recorded"."""
    return value if isinstance(value, str) and value else None


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else NOTHING


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in items(value) if isinstance(item, dict)]


def count(value: object) -> int | None:
    """A whole number from 0 to `MAX_COUNT`, else None: a boolean, a fraction, a number of 4,000 digits is no count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= MAX_COUNT or value != int(value):
        return None
    return int(value)


def exit_status(value: object) -> int | None:
    """A process's exit code, else None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < 2**31 else None


def money(value: object) -> float | None:
    """An amount of dollars from 0 to `MAX_USD`, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_USD else None


def moment(value: object) -> datetime | None:
    """An aware UTC time from ISO 8601 text or epoch seconds or milliseconds; None where it is neither.

    A time without a zone is taken as UTC: durations are right, the time of day may be off by the machine's offset.
    """
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        seconds = count(value)
        if seconds is None:
            return None
        return datetime.fromtimestamp(seconds / 1000 if seconds > 10**11 else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def parts_text(value: object) -> str:
    """The text of a content field: a string, one block, or a list of blocks; an image becomes `[image]`."""
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
