"""One call to a judge through the SDK: no retries of its own, a deadline, a typed answer whatever comes."""

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

# Half of what it takes to load the site would be the SDK: a process loads it when it asks for the first time.
if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

logger = logging.getLogger(__name__)

MAX_OUTPUT_TOKENS, GREETING_TOKENS = 4096, 8
# A host that takes longer (seconds) to accept a connection is away.
CONNECT_SECONDS = 10
LARGEST_COUNT = 2**31 - 1
# Answers in 4xx come before any work.
TURNED_AWAY = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What came of a call. `row` are the attempt's other columns, without token counts that the reply did not give.

    `limits` are what the headers of a reply, good or bad, say; None where no reply came.
    """

    result: Result
    model: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    limits: RateLimits | None = None
    # Where it came from, if not from the judge's own address.
    route: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it, for `recalled` to read; what was heard of limits is not in it."""
        return {"result": verdict.packed(self.result), "model": self.model, "row": self.row, "route": self.route}

    @property
    def cost_usd(self) -> float | None:
        cost: float | None = self.row.get("cost_usd")
        return cost

    def used(self, expected: CallCost, *, characters: int) -> CallCost | None:
        """What the call, with a prompt of this many characters, took of the allowance.

        What the reply counted; else as `expected`; None where the call was turned away.
        """
        status = self.row.get("http_status")
        if status in TURNED_AWAY:
            return None
        read, written = self.row.get("input_tokens"), self.row.get("output_tokens")
        if read is None or written is None:
            return expected
        read += self.row.get("cache_write_tokens") or 0
        return CallCost(input_tokens=read, output_tokens=written, characters=characters)


def recalled(said: Mapping[str, Any]) -> CallOutcome:
    """The answer that `CallOutcome.as_dict` wrote."""
    return CallOutcome(**{**said, "result": verdict.unpacked(said["result"])})


def send(judge: Judge, prompt: Prompt, rubric: Rubric) -> CallOutcome:
    """Send the prompt, once, within JUDGE_TIMEOUT seconds. Never raises: what went wrong is in the answer."""
    import httpx2

    from grading.judging import deadline

    seconds = settings.JUDGE_TIMEOUT
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
    limits = None
    try:
        call = sdk(judge).messages.with_raw_response  # loading it is not the judge's time
        with deadline.within(seconds):
            response = call.create(**request(judge, prompt, rubric), timeout=timeout)
        limits = ratelimits.parse(response.headers)
        said, request_id = response.parse(), response.request_id or ""
        answer = read(said, rubric, prompt.citable, evidence=prompt.user, request_id=request_id)
        return replace(answer, limits=limits)
    except Exception as error:  # noqa: BLE001 - classified, recorded, and logged where nobody expected it
        return failed(error, limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What came of `greet`: what went wrong, or None; the model that answered, and the counts as in `CallOutcome`."""

    trouble: Deferred | None
    model: str = ""
    row: dict[str, Any] = field(default_factory=dict)


def greet(judge: Judge, *, seconds: float) -> Greeting:
    """The smallest call there is, with a timeout in seconds, to learn whether key, model and address are right.

    Whatever the model replies will do. Never raises: what went wrong is in the answer.
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
    except Exception as error:  # noqa: BLE001 - classified, and told to whoever asked
        return Greeting(trouble=api_errors.classify(error, clock.now()))
    if (strange := _no_message(reply)) is not None:
        return Greeting(trouble=strange)
    return Greeting(trouble=None, model=visible(str(reply.model))[:120], row=_counts(reply))


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


# --- the clients: one for each key and address, whose connections are used again -------------------------------------

_clients: dict[tuple[str, str], "anthropic.Anthropic"] = {}
_lock = threading.Lock()


def sdk(judge: Judge) -> "anthropic.Anthropic":
    """The process's client for a judge's key and address: retries off; `deadline.within` bounds what it does."""
    import anthropic
    import httpx2

    from grading.judging import deadline

    with _lock:
        who = (judge.api_key, judge.base_url)
        if who not in _clients:
            # An idle connection is given up before any server or gateway drops it, so that no call finds a dead one.
            pool = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=3)
            _clients[who] = anthropic.Anthropic(
                api_key=judge.api_key,
                base_url=judge.base_url or f"https://{DEFAULT_HOST}",
                max_retries=0,
                http_client=deadline.bound(anthropic.DefaultHttpxClient(limits=pool)),
            )
        return _clients[who]


@atexit.register
def close() -> None:
    """Close every client. The next call makes a new one."""
    with _lock:
        while _clients:
            _clients.popitem()[1].close()


# --- reading what came -----------------------------------------------------------------------------------------------


def read(
    message: object,
    rubric: Rubric,
    citable: Collection[int],
    *,
    evidence: str = "",
    request_id: str = "",
    batch: bool = False,
) -> CallOutcome:
    """The answer in a reply to a prompt with `citable` events, alone or in a batch (at a batch's price).

    `evidence` is what the judge was given to read, where that is still at hand.
    """
    if (strange := _no_message(message)) is not None:
        return CallOutcome(result=strange, row={"http_status": 200})
    reply = cast("Message", message)
    return CallOutcome(
        result=verdict.read_reply(reply, dimensions=_dimensions(rubric), citable=citable, evidence=evidence),
        model=visible(str(reply.model))[:120],
        row={"http_status": 200, "request_id": request_id[:120], **_counts(reply, batch=batch)},
    )


def _no_message(said: object) -> Deferred | None:
    """What it means that a reply is no message; None where it is one."""
    from anthropic.types import Message

    if isinstance(said, Message) and isinstance(said.content, list):
        return None
    detail = "The service answered something that is not a message; is its base URL right?"
    return Deferred(reason=Reason.OVERLOADED, scope=DeferralScope.JOB, detail=detail)


def _counts(message: "Message", *, batch: bool = False) -> dict[str, Any]:
    """The tokens of a reply, None where they cannot be read, and its price where they can."""
    used = message.usage
    row: dict[str, Any] = {
        "input_tokens": _count(used, "input_tokens"),
        "output_tokens": _count(used, "output_tokens"),
        "cache_write_tokens": _count(used, "cache_creation_input_tokens"),
        "cache_read_tokens": _count(used, "cache_read_input_tokens"),
    }
    cost = None
    if row["input_tokens"] is not None and row["output_tokens"] is not None:
        counts = {name: count or 0 for name, count in row.items()}
        cost = prices.cost(visible(str(message.model))[:120], batch=batch, **counts)
    return {**row, "cost_usd": cost}


def _count(said: object, name: str) -> int | None:
    value = getattr(said, name, None)
    return value if isinstance(value, int) and 0 <= value <= LARGEST_COUNT else None


def failed(error: Exception, limits: RateLimits | None = None) -> CallOutcome:
    """What an exception of a call means; `limits` are what was heard before it."""
    import anthropic

    found = api_errors.identity(error)
    result = api_errors.classify(error, clock.now())
    if result.reason is Reason.NEEDS_ATTENTION:
        logger.error("the judge's answer needs attention: %s", result.detail, exc_info=error)
    return CallOutcome(
        result=result,
        row={"http_status": found.http_status, "error_type": found.error_type, "request_id": found.request_id},
        limits=ratelimits.parse(error.response.headers) if isinstance(error, anthropic.APIStatusError) else limits,
    )
