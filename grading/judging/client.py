"""One call to the judge through the SDK: no retries of its own, an explicit timeout, a typed answer whatever comes."""

import logging
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anthropic
from anthropic.types import Message, OutputConfigParam, Usage
from django.conf import settings
from django.utils import timezone

from grading.core import api_errors, verdict
from grading.core.prompt import Prompt
from grading.core.sanitise import visible
from grading.core.verdict import Deferred, Result, Scope
from grading.core.vocabulary import Reason
from grading.models import Rubric

logger = logging.getLogger(__name__)

MAX_OUTPUT_TOKENS = 4096
DEFAULT_HOST = "api.anthropic.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call. Token counts are None where the reply did not say; `row` are the attempt's other columns."""

    result: Result
    model: str = ""
    row: dict[str, Any] = field(default_factory=dict)

    @property
    def cost_usd(self) -> float | None:
        cost: float | None = self.row.get("cost_usd")
        return cost


def route() -> str:
    """Where the judge is reached: part of its identity (L14)."""
    host = urlsplit(settings.ANTHROPIC_BASE_URL).netloc or DEFAULT_HOST
    return f"simulated {host}" if settings.SIMULATED else host


def ask(prompt: Prompt, rubric: Rubric) -> Answer:
    """Send the prompt, once. Never raises: what went wrong is in the answer."""
    dimensions = [dimension["name"] for dimension in rubric.dimensions]
    output: OutputConfigParam = {"format": {"type": "json_schema", "schema": verdict.schema(dimensions)}}
    try:
        with _client() as client:
            response = client.messages.with_raw_response.create(
                model=settings.JUDGE_MODEL,
                max_tokens=MAX_OUTPUT_TOKENS,
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                output_config=output,
            )
            return _answered(response.parse(), response.request_id or "", prompt, dimensions)
    except Exception as error:  # noqa: BLE001 - classified, recorded, and logged where nobody expected it
        return _failed(error)


def _client() -> anthropic.Anthropic:
    """A client for one call: a new connection costs little beside a verdict, and none is left to go stale."""
    return anthropic.Anthropic(
        api_key=settings.ANTHROPIC_API_KEY,
        base_url=settings.ANTHROPIC_BASE_URL or f"https://{DEFAULT_HOST}",
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
    price_in, price_out = price(model)
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_input_tokens,
        "cost_usd": round((usage.input_tokens * price_in + usage.output_tokens * price_out) / 1_000_000, 9),
    }


def price(model: str) -> tuple[float, float]:
    """Dollars per million tokens, in and out. A dated name has the price of the name it begins with."""
    prices: dict[str, tuple[float, float]] = settings.JUDGE_PRICES
    named = [name for name in prices if model.startswith(name)]
    return prices[max(named, key=len, default="other")]


def _failed(error: Exception) -> Answer:
    found = api_errors.identity(error)
    result = api_errors.classify(error, timezone.now())
    if result.reason is Reason.NEEDS_ATTENTION:
        logger.error("the judge's answer needs attention: %s", result.detail, exc_info=error)
    return Answer(
        result=result,
        row={"http_status": found.http_status, "error_type": found.error_type, "request_id": found.request_id},
    )
