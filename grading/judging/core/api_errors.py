"""Classifies errors of the judge's API by type, status and code. The message is used only if nothing else tells errors
apart, as with the two 400s that mean that the quota is used up.
"""

import datetime as dt
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from grading.judging.core.verdict import DeferralScope, Deferred, truncate
from grading.plain import plain_text
from grading.vocabulary import Reason

# A 429 with a longer wait than this is not about a limit per minute.
SHORT_WAIT = dt.timedelta(minutes=10)
DEFAULT_WAIT = dt.timedelta(seconds=30)

BAD_REQUEST, RATE_LIMITED, SERVER_ERROR = 400, 429, 500
SERVER_FAILURE = (Reason.OVERLOADED, DeferralScope.JOB)
UNFORESEEN = (Reason.NEEDS_ATTENTION, DeferralScope.JOB)
BY_STATUS: Mapping[int, tuple[Reason, DeferralScope]] = {
    401: (Reason.AUTH, DeferralScope.CONFIGURATION),
    402: (Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA),
    403: (Reason.AUTH, DeferralScope.CONFIGURATION),
    404: (Reason.NEEDS_ATTENTION, DeferralScope.CONFIGURATION),
    408: (Reason.TIMEOUT, DeferralScope.JOB),
    413: (Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
    504: (Reason.TIMEOUT, DeferralScope.JOB),
}
_REGAIN = re.compile(r"regain access on (\d{4}-\d{2}-\d{2})(?: at (\d{2}:\d{2}))?", re.IGNORECASE)
_SPENT = re.compile(r"reached your specified\b.*\bAPI usage limits", re.IGNORECASE | re.DOTALL)
_NO_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)
_LONG_CONTEXT = re.compile(r"extra usage is required for long context", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt is too long|exceeds? the (?:maximum|context)|input length and `max_tokens`", re.IGNORECASE
)
SPEND_CODES = frozenset({"enforced_spend_limit_reached", "contract_spend_limit_reached"})
# The HTTP status that an error in a batch's results would have had in a single call.
STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class NotItsProtocol(ValueError):
    """The service's answer does not follow the API's protocol. Is ANTHROPIC_BASE_URL right?"""


def classify(error: Exception, now: dt.datetime) -> Deferred:
    """The deferral that an exception of the SDK means. `now` is aware UTC. Anything unknown is `needs_attention`."""
    import anthropic

    match error:
        case anthropic.APITimeoutError():
            return _job_deferral(Reason.TIMEOUT, "The judge did not answer in time")
        case anthropic.APIConnectionError():
            return _job_deferral(Reason.CONNECTION, f"The judge could not be reached: {_cause(error)}")
        case anthropic.APIStatusError():
            retry_at = None
            with suppress(ValueError, OverflowError):
                seconds = float(error.response.headers.get("retry-after", ""))
                retry_at = now + dt.timedelta(seconds=seconds) if seconds >= 0 else None
            message = error.api_message or error.message
            return _classify(error.status_code, message, error.error_code or "", retry_at, now)
        case anthropic.APIResponseValidationError() | json.JSONDecodeError() | NotItsProtocol():
            # Gateways in front of an overloaded service answer with pages of their own.
            detail = f"The service answered something that is not its protocol: {_cause(error)}"
            return _job_deferral(Reason.OVERLOADED, detail)
        case _:
            return _job_deferral(Reason.NEEDS_ATTENTION, f"{type(error).__name__}: {_cause(error)}")


def classify_batched(kind: str, message: str, now: dt.datetime, *, code: str = "") -> Deferred:
    """The deferral that an error in the results of a batch means, by its type, message and code."""
    status = STATUS_OF_TYPE.get(kind)
    if status is None:
        return _job_deferral(Reason.NEEDS_ATTENTION, truncate(f"{kind}: {message}"))
    return _classify(status, message, code, None, now)


def _classify(status: int, message: str, code: str, retry_at: dt.datetime | None, now: dt.datetime) -> Deferred:
    """The deferral that an HTTP status means, with the error's message and code. `retry_at` is from its headers."""
    by_default = SERVER_FAILURE if status >= SERVER_ERROR else UNFORESEEN
    reason, scope = BY_STATUS.get(status, by_default)
    if status == RATE_LIMITED:
        reason, scope = Reason.RATE_LIMITED, DeferralScope.PACE
        if _LONG_CONTEXT.search(message):
            reason, scope, retry_at = Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None
        elif code in SPEND_CODES:
            reason, scope = Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA
            if retry_at is None and code == "enforced_spend_limit_reached":
                retry_at = first_of_next_month(now)
        elif retry_at is not None and retry_at - now > SHORT_WAIT:
            reason, scope = Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA
        else:
            retry_at = retry_at or now + DEFAULT_WAIT
    elif status == BAD_REQUEST:
        # A 400 can mean that the quota is used up. Only the message says so.
        retry_at = None
        if _SPENT.search(message) or _NO_CREDIT.search(message):
            reason, scope = Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA
            if date := _REGAIN.search(message):  # in UTC
                with suppress(ValueError):
                    retry_at = dt.datetime.fromisoformat(f"{date[1]}T{date[2] or '00:00'}:00+00:00")
        elif _TOO_LONG.search(message):
            reason, scope = Reason.INPUT_TOO_LARGE, DeferralScope.INPUT
    return Deferred(reason=reason, scope=scope, detail=truncate(f"{status}: {message}"), retry_at=retry_at)


def first_of_next_month(now: dt.datetime) -> dt.datetime:
    """Midnight UTC on the first of the month after `now`."""
    utc = now.astimezone(dt.UTC)
    return dt.datetime(utc.year + utc.month // 12, utc.month % 12 + 1, 1, tzinfo=dt.UTC)


def _job_deferral(reason: Reason, detail: str) -> Deferred:
    return Deferred(reason=reason, scope=DeferralScope.JOB, detail=detail)


def _cause(error: BaseException) -> str:
    return truncate(str(error.__cause__ or error))


def error_columns(error: Exception) -> dict[str, Any]:
    """An attempt's columns for an error: HTTP status, type and request id."""
    import anthropic

    if not isinstance(error, anthropic.APIStatusError):
        return {"http_status": None, "error_type": type(error).__name__, "request_id": ""}
    kind = error.error_code or error.type or type(error).__name__
    return {
        "http_status": error.status_code,
        "error_type": plain_text(str(kind))[:80],
        "request_id": plain_text(error.request_id or "")[:120],
    }
