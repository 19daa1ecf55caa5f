"""Every mode of the simulated Messages API, and its replies."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from grading.simulator import tokens
from grading.simulator.verdicts import credulous, verdict


class Mode(StrEnum):
    """How the simulator answers a call."""

    VERDICT = "verdict"
    RATE_LIMIT = "rate_limit"
    RAMP_LIMIT = "ramp_limit"
    LONG_CONTEXT = "long_context"
    SPEND_LIMIT = "spend_limit"
    CONTRACT_LIMIT = "contract_limit"
    USAGE_LIMITS = "usage_limits"
    NO_CREDIT = "no_credit"
    BILLING = "billing"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    AUTH = "auth"
    FORBIDDEN = "forbidden"
    UNKNOWN_MODEL = "unknown_model"
    TOO_LARGE = "too_large"
    BAD_REQUEST = "bad_request"
    GARBAGE = "garbage"
    NOT_JSON = "not_json"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    WRONG_SCHEMA = "wrong_schema"
    OUT_OF_RANGE = "out_of_range"
    FALSE_CITATION = "false_citation"
    EMPTY = "empty"
    BARE_ZERO = "bare_zero"
    HANG = "hang"
    DROP = "drop"


# How a call is answered: {"mode": ..., options}.
Step = Mapping[str, Any]


def step(item: str | Mapping[str, Any]) -> Step:
    """A mode, or a mapping with one, as a step. Raises ValueError for an unknown mode."""
    options = {"mode": item} if isinstance(item, str) else item
    return {**options, "mode": Mode(options.get("mode", Mode.VERDICT))}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRequest:
    """The parts of a call to the Messages API that the simulator uses."""

    model: str
    system: str
    user: str
    schema: Mapping[str, Any]
    input_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error reply: HTTP status, error type and code, and a message, which may use `{options}`."""

    status: int
    kind: str
    message: str
    code: str = ""
    retry_after: str = ""


TROUBLES: Mapping[Mode, Trouble] = {
    Mode.RATE_LIMIT: Trouble(
        status=429,
        kind="rate_limit_error",
        message="This request would exceed your organization's rate limit of 50 requests per minute.",
        retry_after="2",
    ),
    Mode.RAMP_LIMIT: Trouble(
        status=429,
        kind="rate_limit_error",
        code="ramp_limit_exceeded",
        message="Your usage is increasing too quickly. Scale up your traffic more gradually.",
        retry_after="2",
    ),
    Mode.LONG_CONTEXT: Trouble(
        status=429, kind="rate_limit_error", message="Extra usage is required for long context requests."
    ),
    Mode.SPEND_LIMIT: Trouble(
        status=429,
        kind="rate_limit_error",
        code="enforced_spend_limit_reached",
        message="Your organization has reached its monthly spend limit.",
    ),
    Mode.CONTRACT_LIMIT: Trouble(
        status=429,
        kind="rate_limit_error",
        code="contract_spend_limit_reached",
        message="Your organization has reached its contract's spend limit.",
    ),
    Mode.USAGE_LIMITS: Trouble(
        status=400,
        kind="invalid_request_error",
        message="You have reached your specified API usage limits. You will regain access on {regain} UTC.",
    ),
    Mode.NO_CREDIT: Trouble(
        status=400,
        kind="invalid_request_error",
        message="Your credit balance is too low to access the API. Please go to Plans & Billing to purchase credits.",
    ),
    Mode.BILLING: Trouble(status=402, kind="billing_error", message="There is an issue with your billing details."),
    Mode.OVERLOADED: Trouble(status=529, kind="overloaded_error", message="Overloaded"),
    Mode.SERVER_ERROR: Trouble(status=500, kind="api_error", message="Internal server error"),
    Mode.AUTH: Trouble(status=401, kind="authentication_error", message="invalid x-api-key"),
    Mode.FORBIDDEN: Trouble(
        status=403,
        kind="permission_error",
        message="Your API key does not have permission to use this resource.",
    ),
    Mode.UNKNOWN_MODEL: Trouble(status=404, kind="not_found_error", message="model: {model}"),
    Mode.TOO_LARGE: Trouble(status=413, kind="request_too_large", message="Request exceeds the maximum size"),
    Mode.BAD_REQUEST: Trouble(
        status=400, kind="invalid_request_error", message="messages.0.content: something this client never heard of"
    ),
}


def reply(mode: Mode, request: MessagesRequest, options: Step, request_id: str) -> Reply:
    """The reply to a request.

    `options` may set message, retry_after, regain, cache_read_tokens, and any field of the verdict. With a score alone,
    the other fields follow from it.
    """
    if mode in TROUBLES:
        error = TROUBLES[mode]
        message = error.message.format(model=request.model, regain=options.get("regain", "2099-01-01 at 00:00"))
        details = {"error_code": error.code} if error.code else {}
        answer = trouble(error.status, error.kind, options.get("message", message), request_id, **details)
        retry_after = str(options.get("retry_after", error.retry_after))
        return replace(answer, headers={"retry-after": retry_after} if retry_after else {})
    if mode is Mode.NOT_JSON:
        return Reply(status=200, body=b"<html>gateway says hello</html>", headers={"content-type": "text/html"})
    text, stop_reason = _TEXTS[mode](request, options)
    cache_read = int(options.get("cache_read_tokens", 0))
    output_tokens = max(1, tokens.count(text))
    body = {
        "id": "msg_" + request_id.removeprefix("req_"),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": request.input_tokens - cache_read,
            "output_tokens": output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cache_read,
        },
    }
    return Reply(status=200, body=json.dumps(body).encode(), output_tokens=output_tokens)


def trouble(status: int, kind: str, message: str, request_id: str = "", **details: str) -> Reply:
    """An error reply in the service's format."""
    error = {"type": kind, "message": message, **({"details": details} if details else {})}
    return Reply(
        status=status, body=json.dumps({"type": "error", "error": error, "request_id": request_id or None}).encode()
    )


def _verdict_text(request: MessagesRequest, options: Step) -> str:
    """A verdict in the requested format, as JSON. `options` replace its fields."""
    score = credulous(request.user) if options.get("credulous") else options.get("score")
    valid_score = score if isinstance(score, int | float) and 0 <= score <= 1 else None
    fields = verdict(request.system, request.user, request.schema, score=valid_score)
    return json.dumps(fields | {key: value for key, value in options.items() if key in fields})


_TEXTS: Mapping[Mode, Callable[[MessagesRequest, Mapping[str, Any]], tuple[str, str]]] = {
    Mode.VERDICT: lambda request, options: (_verdict_text(request, options), "end_turn"),
    Mode.GARBAGE: lambda _request, _options: ("I would say it went rather well, 0.9 or so.", "end_turn"),
    Mode.TRUNCATED: lambda request, options: (_verdict_text(request, options)[:40], "max_tokens"),
    Mode.REFUSAL: lambda _request, _options: ("", "refusal"),
    Mode.WRONG_SCHEMA: lambda _request, _options: ('{"grade": 0.9, "comment": "good"}', "end_turn"),
    Mode.OUT_OF_RANGE: lambda request, options: (_verdict_text(request, {**options, "score": 9.5}), "end_turn"),
    Mode.FALSE_CITATION: lambda request, options: (
        _verdict_text(request, {**options, "citations": [10**9]}),
        "end_turn",
    ),
    Mode.EMPTY: lambda _request, _options: ("", "end_turn"),
    Mode.BARE_ZERO: lambda _request, _options: ("0.0", "end_turn"),
}
