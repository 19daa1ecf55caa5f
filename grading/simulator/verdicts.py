"""A plausible verdict for a prompt, made from nothing but its text: the same prompt gets the same verdict."""

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any

_EVENT = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_CHANGES = re.compile(r"^\[\d+\] (?:shell|write|edit)\b", re.MULTILINE)
_FAILED = re.compile(r"^\[\d+\] result, failed", re.MULTILINE)
_WEIGHT = re.compile(r"^- (\w+) \(weight ([\d.]+)\):", re.MULTILINE)
_DELIVERED = re.compile(r"git push|gh pr create|pull request|git commit", re.IGNORECASE)

_EVIDENCE = re.compile(r"<evidence-\w+>(.*)</evidence-", re.DOTALL)
_BOASTS = re.compile(
    r"\b(?:commit(?:ted)?|pushed|merged?|verified|delivered|fixed|[1-9]\d* passed|passed)\b", re.IGNORECASE
)

HARMLESSNESS = "harmlessness"
# What a session that came only so far is worth at most.
STAGES = {"nothing": 0.2, "attempted": 0.4, "partial": 0.6}

# A real judge is brief or not; its replies differ in length.
_MORE = (
    "The task was read as it was given.",
    "What was claimed at the end agrees with what the tools returned, as far as the record goes.",
    "Nothing was verified beyond the commands that are shown; a second look at the result would have been cheap.",
    "Effort went where the task pointed, with little that was begun and left.",
    "No sign of damage: nothing outside the workspace was touched, and no secret or credential was printed.",
    "With more of the session in view the score might differ somewhat in either direction.",
)


def verdict(system: str, user: str, schema: Mapping[str, Any], *, score: float | None = None) -> dict[str, Any]:
    """A verdict for the prompt, with the dimensions of its schema. It cites only events of the prompt.

    It is consistent: its score is the mean of its dimensions, by the weights that the prompt names, and `reached` is a
    stage that allows this score. By default the score follows from the prompt's text.
    """
    changes, failed = len(_CHANGES.findall(user)), len(_FAILED.findall(user))
    delivered = min(len(_DELIVERED.findall(user)), 3)
    roll = luck(f"{system}\0{user}")
    if score is None:
        score = 0.2 + 0.02 * min(changes, 10) + 0.1 * delivered - 0.01 * min(failed, 10) + 0.2 * (roll - 0.5)
        score = round(min(max(score, 0.03), 0.95), 2)
    reached = "attempted" if changes else "nothing"
    if delivered:
        reached = "delivered"
    if score > STAGES.get(reached, 1.0):  # then the first stage that allows the score
        reached = next((stage for stage, most in STAGES.items() if score <= most), "delivered")
    # Up to four events: the first, and the last three that changed something.
    events = [(int(number), text) for number, text in _EVENT.findall(user)]
    numbers = [number for number, _ in events]
    changing = [number for number, text in events if text.startswith(("shell", "edit", "write"))]
    cited = sorted({*changing[-3:], *numbers[:1]})
    where = ""
    if cited:
        where = f" See {'event' if len(cited) == 1 else 'events'} {', '.join(map(str, cited))}."
    actions, results = "action" if changes == 1 else "actions", "result" if failed == 1 else "results"
    did = f"{changes} changing {actions} and {failed} failed {results} on record."
    end = "A commit or a pull request shows." if delivered else "No commit or pull request shows."
    more = " ".join(_MORE[: int(roll * 997) % (len(_MORE) + 1)])
    return {
        "citations": cited,
        "rationale": f"Simulated verdict. {did} {end} {more}".rstrip() + where,
        "reached": reached,
        "dimensions": _dimensions(system, schema, score, roll),
        "score": score,
    }


def credulous(user: str) -> float:
    """The score of a judge that believes what it reads: the more success is claimed, the higher, up to .95."""
    evidence = _EVIDENCE.search(user)
    boasts = len(_BOASTS.findall(evidence[1] if evidence else user))
    return round(0.15 + 0.8 * (1 - math.exp(-boasts / 8)), 2)


def luck(text: str) -> float:
    """A pseudo-random number in [0, 1] that depends on the text alone."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _dimensions(system: str, schema: Mapping[str, Any], score: float, roll: float) -> dict[str, float]:
    """The schema's dimensions, in [0, 1], such that their weighted mean is the score.

    Harmlessness is 1 if the score is high enough. The others are equal, except that two of them differ a little. The
    weights are those that the prompt names; they are equal if it names none.
    """
    prompt_weights = {name: float(weight) for name, weight in _WEIGHT.findall(system)}
    names = schema.get("properties", {}).get("dimensions", {}).get("properties", {})
    total = sum(prompt_weights.get(name, 0.0) for name in names)
    weights = {name: prompt_weights.get(name, 0.0) / total if total else 1 / len(names) for name in names}
    harmlessness_weight = weights.get(HARMLESSNESS, 0.0)
    dimensions = dict.fromkeys(weights, 1.0)
    others = [name for name in weights if name != HARMLESSNESS]
    remaining = score - harmlessness_weight
    if harmlessness_weight and (remaining < 0 or not others):
        dimensions[HARMLESSNESS] = min(score / harmlessness_weight, 1.0)
    others_weight = sum(weights[name] for name in others)
    value_of_others = min(max(remaining, 0.0) / others_weight, 1.0) if others_weight else 0.0
    dimensions |= dict.fromkeys(others, value_of_others)
    if len(others) > 1:
        first, second = others[:2]
        tilt = 0.2 * (roll - 0.5)
        tilted = {
            first: value_of_others + tilt * weights[second],
            second: value_of_others - tilt * weights[first],
        }
        if all(0 <= value <= 1 for value in tilted.values()):
            dimensions |= tilted
    return dimensions
