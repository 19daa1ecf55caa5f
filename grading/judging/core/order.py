"""All that one prompt is made of, as bytes and values: what goes to the process that makes it. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from io import BytesIO

from grading.formats.own import OwnLog, own_events
from grading.judging.core import prompt
from grading.judging.core.prompt import Case, Prompt, RubricText


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBytes:
    """One log; `ids` are the hashes of its records, needed where another log follows. `format` as `OwnLog` has it."""

    data: bytes
    filename: str
    ids: tuple[int, ...] = ()
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOrder:
    """A case without its events, the logs that they are read from, and what `prompt.build` wants besides."""

    case: Case
    logs: Sequence[LogBytes]
    foreign: frozenset[int]
    rubric: RubricText
    budget: int
    smaller: float
    chars_per_token: float


def fill(order: PromptOrder) -> Prompt:
    """The prompt that was ordered. Raises what reading evidence raises."""
    logs = [
        OwnLog(open=partial(BytesIO, log.data), filename=log.filename, ids=partial(tuple, log.ids), format=log.format)
        for log in order.logs
    ]
    case = replace(order.case, events=own_events(logs, order.foreign))
    return prompt.build(
        case, order.rubric, budget=order.budget, smaller=order.smaller, chars_per_token=order.chars_per_token
    )


def packed(made: Prompt) -> bytes:
    """A prompt as it comes back: as text, for whoever made it has read what strangers wrote."""
    return json.dumps({**asdict(made), "citable": sorted(made.citable)}).encode()


def unpacked(data: bytes) -> Prompt:
    """The prompt again, exactly. Raises ValueError, which says why, where there is none."""
    said = json.loads(data)
    if "error" in said:
        raise ValueError(said["error"])
    return Prompt(**{**said, "citable": frozenset(said["citable"])})


def refused(why: str) -> bytes:
    """In the place of a prompt: why there is none."""
    return json.dumps({"error": why}).encode()
