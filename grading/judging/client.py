"""One call to the judge through the SDK: no retries of its own, an explicit timeout, a typed answer whatever comes."""

import logging
from dataclasses import dataclass, field
from typing import Any

import anthropic
from anthropic.types import Message, OutputConfigParam, Usage
from django.conf import settings
from django.utils import timezone

from grading.core import api_errors, verdict
from grading.core.prompt import Prompt
from grading.core.ratelimits import Cost, RateLimits
from grading.core.sanitise import visible
from grading.core.verdict import Deferred, Result, Scope
from grading.core.vocabulary import Reason
from grading.judging import prices
from grading.judging.judges import DEFAULT_HOST, Judge
from grading.models import Rubric

logger = logging.getLogger(__name__)

MAX_OUTPUT_TOKENS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call. Token counts are None where the reply did not say; `row` are the attempt's other columns."""

    result: Result
    model: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    limits: RateLimits | None = None
    route: str = ""

    @property
    def cost_usd(self) -> float | None:
        cost: float | None = self.row.get("cost_usd")
        return cost

    @property
    def used(self) -> Cost | None:
        """What it took from the allowance; None where nothing is known to have been taken."""
        if "input_tokens" not in self.row:
            return None
        return Cost(input_tokens=self.row["input_tokens"], output_tokens=self.row["output_tokens"])


def ask(judge: Judge, prompt: Prompt, rubric: Rubric) -> Answer:
    """Send the prompt, once. Never raises: what went wrong is in the answer."""
    dimensions = [dimension["name"] for dimension in rubric.dimensions]
    output: OutputConfigParam = {"format": {"type": "json_schema", "schema": verdict.schema(dimensions)}}
    try:
        with _client(judge) as client:
            response = client.messages.with_raw_response.create(
                model=judge.model,
                max_tokens=MAX_OUTPUT_TOKENS,
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                output_config=output,
            )
            return _answered(response.parse(), response.request_id or "", prompt, dimensions)
    except Exception as error:  # noqa: BLE001 - classified, recorded, and logged where nobody expected it
        return _failed(error)


def _client(judge: Judge) -> anthropic.Anthropic:
    """A client for one call: a new connection costs little beside a verdict, and none is left to go stale."""
    return anthropic.Anthropic(
        api_key=judge.api_key,
        base_url=judge.base_url or f"https://{DEFAULT_HOST}",
        max_retries=0,
        timeout=settings.JUDGE_TIMEOUT,
    )


def _answered(message: Message | Any, request_id: str, prompt: Prompt, dimensions: list[str]) -> Answer:
    if not isinstance(message, Message) or not isinstance(message.content, list):
        detail = "The service answered something that is not a message; is ANTHROPIC_BASE_URL right?"
        return Answer(
            result=Deferred(reason=Reason.OVERLOADED, scope=Scope.JOB, detail=detail), row={"http_status": 200}
        )
    model = visible(str(message.model))[:120]
    return Answer(
        result=verdict.read_reply(message, dimensions=dimensions, citable=prompt.citable),
        model=model,
        row={"http_status": 200, "request_id": request_id[:120], **_usage(message.usage, model)},
    )


def _usage(usage: Usage | None, model: str) -> dict[str, Any]:
    if usage is None:
        return {}
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_input_tokens,
        "cost_usd": prices.cost(model, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens),
    }


def _failed(error: Exception) -> Answer:
    found = api_errors.identity(error)
    result = api_errors.classify(error, timezone.now())
    if result.reason is Reason.NEEDS_ATTENTION:
        logger.error("the judge's answer needs attention: %s", result.detail, exc_info=error)
    return Answer(
        result=result,
        row={"http_status": found.http_status, "error_type": found.error_type, "request_id": found.request_id},
    )
