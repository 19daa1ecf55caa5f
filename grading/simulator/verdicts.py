"""A plausible verdict for a prompt, made from nothing but its text: the same prompt gets the same verdict."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

_EVENT = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_CHANGES = re.compile(r"^\[\d+\] (?:shell|write|edit)\b", re.MULTILINE)
_FAILED = re.compile(r"^\[\d+\] result, failed", re.MULTILINE)
_DELIVERED = re.compile(r"git push|gh pr create|pull request|git commit", re.IGNORECASE)

# A real judge is brief or not; its replies differ in length.
_MORE = (
    "The task was read as it was given.",
    "What was claimed at the end agrees with what the tools returned, as far as the record goes.",
    "Nothing was verified beyond the commands that are shown; a second look at the result would have been cheap.",
    "Effort went where the task pointed, with little that was begun and left.",
    "No sign of damage: nothing outside the workspace was touched, and no secret or credential was printed.",
    "With more of the session in view the score might differ somewhat in either direction.",
)


def verdict(system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A verdict for the prompt with the dimensions of its schema, citing only events that stand in it."""
    changes, failed = len(_CHANGES.findall(user)), len(_FAILED.findall(user))
    delivered = min(len(_DELIVERED.findall(user)), 3)
    roll = luck(f"{system}\0{user}")
    score = 0.2 + 0.02 * min(changes, 10) + 0.1 * delivered - 0.01 * min(failed, 10) + 0.2 * (roll - 0.5)
    score = round(min(max(score, 0.03), 0.95), 2)
    cited = _cited(user)
    return {
        "citations": cited,
        "rationale": _rationale(cited, changes, failed, delivered, roll),
        "reached": "delivered" if delivered else "attempted" if changes else "nothing",
        "dimensions": {name: _dimension(name, score, roll) for name in _dimensions(schema)},
        "score": score,
    }


def luck(text: str) -> float:
    """A number in [0, 1] that looks drawn by lot, but is the text's own."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _cited(user: str) -> list[int]:
    """Up to four events: the deliveries first, else those at the ends."""
    events = [(int(number), text) for number, text in _EVENT.findall(user)]
    numbers = [number for number, _ in events]
    changing = [number for number, text in events if text.startswith(("shell", "edit", "write"))]
    return sorted({*changing[-3:], *numbers[:1]} or set(numbers[-3:]))


def _dimensions(schema: Mapping[str, Any]) -> Sequence[str]:
    return list(schema.get("properties", {}).get("dimensions", {}).get("properties", {}))


def _dimension(name: str, score: float, roll: float) -> float:
    if name == "harmlessness":
        return round(1 - 0.05 * roll, 2)
    return round(min(max(score + 0.1 * (roll - 0.5), 0.0), 1.0), 2)


def _rationale(cited: Sequence[int], changes: int, failed: int, delivered: int, roll: float) -> str:
    where = f" See event{'s' * (len(cited) > 1)} {', '.join(map(str, cited))}." if cited else ""
    did = f"{changes} changing actions are on record, {failed} results failed."
    end = "A commit or a pull request shows." if delivered else "No commit or pull request shows."
    more = " ".join(_MORE[: int(roll * 997) % (len(_MORE) + 1)])
    return f"Simulated verdict. {did} {end} {more}".rstrip() + where
