"""One call to a judge through the SDK: no retries, a deadline, and a typed outcome whatever happens."""

import atexit
import logging
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings

from grading import clock
from grading.judging.allowance import prices
from grading.judging.core import api_errors, ratelimits, verdict
from grading.judging.core.prompt import Prompt
from grading.judging.core.ratelimits import CallCost, RateLimits
from grading.judging.core.sanitise import visible
from grading.judging.core.verdict import DeferralScope, Deferred, Result
from grading.judging.judges import DEFAULT_HOST, Judge
from grading.models import Rubric
from grading.vocabulary import Reason

# Importing the SDK would double the time to load the site: a process imports it for its first call.
if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

logger = logging.getLogger(__name__)

MAX_OUTPUT_TOKENS, GREETING_TOKENS = 4096, 8
# A host that takes longer to accept a connection, in seconds, is unreachable.
CONNECT_SECONDS = 10
LARGEST_COUNT = 2**31 - 1
# A 4xx answer comes before any work is done.
REJECTED = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """The outcome of a call. `row` has columns of the attempt: HTTP status, and token counts and cost if known.

    `limits` are the rate limits in the reply's headers, None without a reply. An empty `route` means the judge's route.
    """

    result: Result
    model: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    limits: RateLimits | None = None
    route: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON, for `from_dict`; without the limits."""
        return {
            "result": verdict.result_as_dict(self.result),
            "model": self.model,
            "row": self.row,
            "route": self.route,
        }

    @property
    def cost_usd(self) -> float | None:
        cost: float | None = self.row.get("cost_usd")
        return cost

    def used(self, expected: CallCost, *, characters: int) -> CallCost | None:
        """What the call used of the rate limits, by the reply's token counts; `expected` if they are unknown, None if
        the call was rejected. `characters` is the length of the prompt.
        """
        if self.row.get("http_status") in REJECTED:
            return None
        input_tokens = self.row.get("input_tokens")
        output_tokens = self.row.get("output_tokens")
        if input_tokens is None or output_tokens is None:
            return expected
        input_tokens += self.row.get("cache_write_tokens") or 0
        return CallCost(input_tokens=input_tokens, output_tokens=output_tokens, characters=characters)


def from_dict(stored: Mapping[str, Any]) -> CallOutcome:
    """The outcome that `CallOutcome.as_dict` wrote."""
    return CallOutcome(**{**stored, "result": verdict.result_from_dict(stored["result"])})


def send(judge: Judge, prompt: Prompt, rubric: Rubric) -> CallOutcome:
    """Send the prompt, once, within JUDGE_TIMEOUT seconds. Never raises: errors are in the outcome."""
    import httpx2

    from grading.judging import deadline

    seconds = settings.JUDGE_TIMEOUT
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
    limits = None
    try:
        call = sdk(judge).messages.with_raw_response  # importing the SDK is not part of the deadline
        with deadline.within(seconds):
            response = call.create(**request(judge, prompt, rubric), timeout=timeout)
        limits = ratelimits.parse(response.headers)
        request_id = response.request_id or ""
        outcome = read_message(response.parse(), rubric, prompt.citable, evidence=prompt.user, request_id=request_id)
        return replace(outcome, limits=limits)
    except Exception as error:  # noqa: BLE001 - classified and recorded, and logged if unexpected
        return outcome_of_error(error, limits)


def greet(judge: Judge, *, seconds: float) -> tuple[Deferred | None, str, dict[str, Any]]:
    """Make the smallest possible call, with a timeout in seconds, to test the key, model and address.

    Returns the error or None, the model that answered, and the reply's token counts and cost. Never raises.
    """
    import httpx2

    from grading.judging import deadline

    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
    try:
        messages = sdk(judge).messages
        with deadline.within(seconds):
            reply = messages.create(
                model=judge.model,
                max_tokens=GREETING_TOKENS,
                messages=[{"role": "user", "content": "Reply with OK."}],
                timeout=timeout,
            )
    except Exception as error:  # noqa: BLE001 - classified and returned
        return api_errors.classify(error, clock.now()), "", {}
    not_a_message = _check_message(reply)
    if not_a_message is not None:
        return not_a_message, "", {}
    return None, visible(str(reply.model))[:120], _token_counts(reply)


def request(judge: Judge, prompt: Prompt, rubric: Rubric) -> "MessageCreateParamsNonStreaming":
    """The body of the call, alone or in a batch."""
    return {
        "model": judge.model,
        "max_tokens": MAX_OUTPUT_TOKENS,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        "output_config": {"format": {"type": "json_schema", "schema": verdict.schema(_dimensions(rubric))}},
    }


def _dimensions(rubric: Rubric) -> list[str]:
    return [dimension["name"] for dimension in rubric.dimensions]


# --- the clients: one for each key and address, so that connections are reused ---------------------------------------

_clients: dict[tuple[str, str], "anthropic.Anthropic"] = {}
_lock = threading.Lock()


def sdk(judge: Judge) -> "anthropic.Anthropic":
    """The process's client for a judge's key and address, without retries; `deadline.within` limits its calls."""
    import anthropic
    import httpx2

    from grading.judging import deadline

    with _lock:
        key = (judge.api_key, judge.base_url)
        if key not in _clients:
            # An idle connection is given up before any server or gateway drops it, so that no call finds a dead one.
            pool = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=3)
            _clients[key] = anthropic.Anthropic(
                api_key=judge.api_key,
                base_url=judge.base_url or f"https://{DEFAULT_HOST}",
                max_retries=0,
                http_client=deadline.keep_deadline(anthropic.DefaultHttpxClient(limits=pool)),
            )
        return _clients[key]


@atexit.register
def close() -> None:
    """Close every client. The next call makes a new one."""
    with _lock:
        while _clients:
            _key, client = _clients.popitem()
            client.close()


# --- reading replies -------------------------------------------------------------------------------------------------


def read_message(
    message: object,
    rubric: Rubric,
    citable: Collection[int],
    *,
    evidence: str = "",
    request_id: str = "",
    batch: bool = False,
) -> CallOutcome:
    """The outcome that a reply means: the verdict, or why it has none, with token counts and cost.

    `citable` are the event numbers of the prompt. `evidence` is what the judge read, to detect a copied rationale. With
    `batch`, the cost is at the price of a batch.
    """
    not_a_message = _check_message(message)
    if not_a_message is not None:
        return CallOutcome(result=not_a_message, row={"http_status": 200})
    reply = cast("Message", message)
    return CallOutcome(
        result=verdict.read_reply(reply, dimensions=_dimensions(rubric), citable=citable, evidence=evidence),
        model=visible(str(reply.model))[:120],
        row={"http_status": 200, "request_id": request_id[:120], **_token_counts(reply, batch=batch)},
    )


def _check_message(reply: object) -> Deferred | None:
    """The error if a reply is not a message, else None."""
    from anthropic.types import Message

    if isinstance(reply, Message) and isinstance(reply.content, list):
        return None
    detail = "The service answered something that is not a message; is its base URL right?"
    return Deferred(reason=Reason.OVERLOADED, scope=DeferralScope.JOB, detail=detail)


def _token_counts(message: "Message", *, batch: bool = False) -> dict[str, Any]:
    """The token counts of a reply and its cost in dollars, as columns of an attempt. Unreadable values are None."""
    usage = message.usage
    row: dict[str, Any] = {
        "input_tokens": _token_count(usage, "input_tokens"),
        "output_tokens": _token_count(usage, "output_tokens"),
        "cache_write_tokens": _token_count(usage, "cache_creation_input_tokens"),
        "cache_read_tokens": _token_count(usage, "cache_read_input_tokens"),
    }
    cost = None
    if row["input_tokens"] is not None and row["output_tokens"] is not None:
        counts = {name: count or 0 for name, count in row.items()}
        cost = prices.cost(visible(str(message.model))[:120], batch=batch, **counts)
    return {**row, "cost_usd": cost}


def _token_count(usage: object, name: str) -> int | None:
    """A token count of a reply. None if it is missing, not a count, or too large for a column."""
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and 0 <= value <= LARGEST_COUNT else None


def outcome_of_error(error: Exception, limits: RateLimits | None = None) -> CallOutcome:
    """The outcome of a call that raised `error`. `limits` are the rate limits of its reply, if one had arrived."""
    import anthropic

    result = api_errors.classify(error, clock.now())
    if result.reason is Reason.NEEDS_ATTENTION:
        logger.error("the judge's answer needs attention: %s", result.detail, exc_info=error)
    if isinstance(error, anthropic.APIStatusError):
        limits = ratelimits.parse(error.response.headers)
    return CallOutcome(result=result, row=api_errors.error_columns(error), limits=limits)
