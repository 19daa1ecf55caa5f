"""The input and output of the process that builds prompts: an order with all its data; a prompt or an error. Pure."""

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
    """One log; `ids` are the hashes of its records, needed if another log follows. `format` is as in `OwnLog`."""

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


def serialise(prompt_built: Prompt) -> bytes:
    """A prompt as JSON. No pickle: the process that built it has read untrusted data."""
    return json.dumps({**asdict(prompt_built), "citable": sorted(prompt_built.citable)}).encode()


def deserialise(data: bytes) -> Prompt:
    """The prompt that `serialise` wrote. Raises ValueError if it is an error that `serialise_error` wrote."""
    message = json.loads(data)
    if "error" in message:
        raise ValueError(message["error"])
    return Prompt(**{**message, "citable": frozenset(message["citable"])})


def serialise_error(why: str) -> bytes:
    """An error instead of a prompt, as JSON."""
    return json.dumps({"error": why}).encode()
