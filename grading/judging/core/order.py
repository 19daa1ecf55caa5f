"""What the process that builds prompts gets and returns: an order with all its data, and a prompt or an error. Pure."""

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
    """A case without its events, the logs to read them from, and the other arguments of `prompt.build`."""

    case: Case
    logs: Sequence[LogBytes]
    foreign: frozenset[int]
    rubric: RubricText
    budget: int
    smaller: float
    chars_per_token: float


def fill(order: PromptOrder) -> Prompt:
    """Build the prompt. Raises what reading evidence raises."""
    logs = [
        OwnLog(open=partial(BytesIO, log.data), filename=log.filename, ids=partial(tuple, log.ids), format=log.format)
        for log in order.logs
    ]
    case = replace(order.case, events=own_events(logs, order.foreign))
    return prompt.build(
        case, order.rubric, budget=order.budget, smaller=order.smaller, chars_per_token=order.chars_per_token
    )


def packed(made: Prompt) -> bytes:
    """A prompt as JSON. No pickle: the process that built it has read untrusted data."""
    return json.dumps({**asdict(made), "citable": sorted(made.citable)}).encode()


def unpacked(data: bytes) -> Prompt:
    """The prompt that `packed` or the error that `refused` wrote, raised as ValueError."""
    message = json.loads(data)
    if "error" in message:
        raise ValueError(message["error"])
    return Prompt(**{**message, "citable": frozenset(message["citable"])})


def refused(why: str) -> bytes:
    """An error in the place of a prompt."""
    return json.dumps({"error": why}).encode()
