"""The result of a call to the judge, as a sum type, and how a reply is parsed.

A missing verdict is a `Deferred`, `Refused` or `Invalid` with a reason, never an optional float.
"""

import datetime as dt
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from grading.judging.core.sanitise import visible
from grading.vocabulary import Reason

if TYPE_CHECKING:
    from anthropic.types import Message

MAX_REPLY = 2000
# A rationale is compared with the evidence if it has this many letters and digits. A shorter one may occur there by
# chance.
LEAST_COMPARED = 20


class DeferralScope(StrEnum):
    """Which jobs have to wait."""

    JOB = "job"
    READER = "reader"  # this job: its evidence reader was lost
    PACE = "pace"  # all, for a moment
    QUOTA = "quota"  # all, until the quota is back
    CONFIGURATION = "configuration"  # all, until the configuration changes
    INPUT = "input"  # this job: it needs a smaller digest


class Reached(StrEnum):
    """How far a session came: not delivering fails differently from delivering something bad."""

    NOTHING = "nothing"
    ATTEMPTED = "attempted"
    PARTIAL = "partial"
    DELIVERED = "delivered"
    VERIFIED = "verified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A verdict: `score` and each dimension in [0, 1]; `citations` are event numbers that exist in the prompt.

    `score` is the judge's own overall number; the verdict's score is computed from its dimensions. `reached` is None in
    a verdict from before judges were asked for it.
    """

    score: float
    dimensions: Mapping[str, float]
    rationale: str
    citations: tuple[int, ...]
    reached: Reached | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """No verdict yet. `retry_at` (aware UTC) is the time that the answer names, None if it names no time."""

    reason: Reason
    scope: DeferralScope
    detail: str
    retry_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The judge declined."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """A reply that is not a verdict; `reply` is its beginning."""

    detail: str
    reply: str


Result = Graded | Deferred | Refused | Invalid
_ADAPTERS: Mapping[str, TypeAdapter[Result]] = {
    case.__name__: TypeAdapter(case) for case in (Graded, Deferred, Refused, Invalid)
}


def result_as_dict(result: Result) -> dict[str, Any]:
    """A result as JSON, for `result_from_dict`."""
    name = type(result).__name__
    return {"case": name, **_ADAPTERS[name].dump_python(result, mode="json")}


def result_from_dict(stored: Mapping[str, Any]) -> Result:
    """The result that `result_as_dict` wrote. Raises KeyError or ValueError for anything else."""
    fields = {name: value for name, value in stored.items() if name != "case"}
    return _ADAPTERS[stored["case"]].validate_python(fields)


UnitScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]


class Verdict(BaseModel):
    """The JSON that the judge answers. The bounds are checked here: the API does not enforce them."""

    model_config = ConfigDict(extra="forbid")

    citations: list[Annotated[int, Field(ge=1, strict=True)]]
    rationale: Annotated[str, Field(min_length=1, max_length=8000)]
    reached: Reached
    dimensions: dict[str, UnitScore]
    score: UnitScore


def schema(dimensions: Sequence[str]) -> dict[str, object]:
    """The JSON schema for `output_config`, with one number for each rubric dimension. Reasons come before numbers."""
    number = {"type": "number", "description": "from 0 to 1"}
    return _object(
        citations={"type": "array", "items": {"type": "integer"}, "description": "event numbers the score rests on"},
        rationale={"type": "string"},
        reached={"type": "string", "enum": list(Reached)},
        dimensions=_object(**dict.fromkeys(dimensions, number)),
        score=number,
    )


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_reply(
    message: "Message", *, dimensions: Collection[str], citable: Collection[int], evidence: str = ""
) -> Result:
    """The verdict in a reply, or why there is none. Only text blocks are read, not thinking blocks.

    A verdict must score exactly `dimensions`. It must cite only events of `citable`, and at least one unless `citable`
    is empty. Its rationale must not be copied from `evidence`, which is what the judge read: somebody planted it there.
    """
    text = "".join(block.text for block in message.content if block.type == "text")
    if message.stop_reason == "refusal":
        explanation = None if message.stop_details is None else message.stop_details.explanation
        return Refused(detail=truncate(explanation or text) or "The judge declined without a word")
    if message.stop_reason != "end_turn":
        return Invalid(detail=f"The reply stopped early: {message.stop_reason}", reply=truncate(text))
    try:
        verdict = Verdict.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the reply"
        return Invalid(detail=truncate(f"Expected a verdict; {where}: {first['msg']}"), reply=truncate(text))
    problem = ""
    unknown = sorted(set(verdict.citations) - set(citable))
    # Only letters and digits are compared, because a copy may be quoted and wrapped differently.
    rationale = _letters(verdict.rationale)
    if set(verdict.dimensions) != set(dimensions):
        problem = f"Expected scores for {', '.join(sorted(dimensions))}; got {', '.join(sorted(verdict.dimensions))}"
    elif unknown:
        problem = f"It cites events that were not in the evidence: {', '.join(map(str, unknown[:10]))}"
    elif citable and not verdict.citations:
        problem = "It cites no event"
    elif len(rationale) >= LEAST_COMPARED and rationale in _letters(evidence):
        problem = "Its rationale is copied from the evidence"
    if problem:
        return Invalid(detail=truncate(problem), reply=truncate(text))
    return Graded(
        score=round(verdict.score, 6),
        dimensions={name: round(verdict.dimensions[name], 6) for name in sorted(verdict.dimensions)},
        rationale=visible(verdict.rationale.strip()),
        citations=tuple(dict.fromkeys(verdict.citations)),
        reached=verdict.reached,
    )


def truncate(text: str) -> str:
    """The first MAX_REPLY characters of a provider's text, without what a database rejects (NUL, lone surrogates)."""
    return visible(text[:MAX_REPLY])


_DELETE_OTHERS = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())


def _letters(text: str) -> str:
    """The letters and digits of a text. ASCII lines are translated: that is many times faster than the pattern."""
    lines = text.split("\n")
    return "".join(line.translate(_DELETE_OTHERS) if line.isascii() else re.sub(r"[\W_]+", "", line) for line in lines)
