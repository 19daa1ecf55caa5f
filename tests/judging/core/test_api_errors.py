"""An error of the judge's service has one meaning, as an answer and in the results of a batch."""

import datetime as dt
import json
import time

import anthropic
import httpx2
import pytest

from grading.judging.core.api_errors import (
    NotItsProtocol,
    classify,
    classify_batched,
    error_columns,
    first_of_next_month,
)
from grading.judging.core.verdict import DeferralScope
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 3, 31, 12, 4, tzinfo=dt.UTC)
REQUEST = httpx2.Request("POST", "https://example.test/v1/messages")
# One for all errors: each of its own would read the certificates of every authority.
SDK = anthropic.Anthropic(api_key="k")


def error(status, words="", *, kind="api_error", code="", **headers):
    body = {"type": "error", "error": {"type": kind, "message": words}}
    if code:
        body["error"]["details"] = {"error_code": code}
    response = httpx2.Response(
        status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()}, request=REQUEST
    )
    return SDK._make_status_error_from_response(response)


def unsaid(status):
    """An answer that is not even JSON."""
    response = httpx2.Response(status, text="no body", request=REQUEST)
    return SDK._make_status_error_from_response(response)


def caused(came, cause):
    came.__cause__ = cause
    return came


USAGE = "You have reached your specified {}API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."
TABLE = [
    # what comes back, reason, scope, when to ask again
    (error(429, retry_after="7"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=7)),
    (error(429), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=30)),
    (
        error(429, code="ramp_limit_exceeded", retry_after="2"),
        Reason.RATE_LIMITED,
        DeferralScope.PACE,
        NOW + dt.timedelta(seconds=2),
    ),
    (error(429, retry_after="nonsense"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=30)),
    (error(429, retry_after="86400"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, NOW + dt.timedelta(days=1)),
    (
        error(429, code="enforced_spend_limit_reached"),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        dt.datetime(2026, 4, 1, tzinfo=dt.UTC),
    ),
    (error(429, code="contract_spend_limit_reached"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, None),
    (
        error(429, "Extra usage is required for long context requests"),
        Reason.INPUT_TOO_LARGE,
        DeferralScope.INPUT,
        None,
    ),
    (error(400, USAGE.format("")), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, dt.datetime(2026, 4, 1, tzinfo=dt.UTC)),
    (
        error(400, USAGE.format("workspace ")),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        dt.datetime(2026, 4, 1, tzinfo=dt.UTC),
    ),
    (
        error(400, "Your credit balance is too low to access the API."),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        None,
    ),
    (error(402, kind="billing_error"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, None),
    (
        error(400, "prompt is too long: 250000 tokens > 200000 maximum"),
        Reason.INPUT_TOO_LARGE,
        DeferralScope.INPUT,
        None,
    ),
    (error(400, "something new"), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(401), Reason.AUTH, DeferralScope.CONFIGURATION, None),
    (error(403), Reason.AUTH, DeferralScope.CONFIGURATION, None),
    (error(404, "model: x", kind="not_found_error"), Reason.NEEDS_ATTENTION, DeferralScope.CONFIGURATION, None),
    (error(408), Reason.TIMEOUT, DeferralScope.JOB, None),
    (error(413), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (error(418), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(422), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(500), Reason.OVERLOADED, DeferralScope.JOB, None),
    (error(503, retry_after="9"), Reason.OVERLOADED, DeferralScope.JOB, NOW + dt.timedelta(seconds=9)),
    (error(504), Reason.TIMEOUT, DeferralScope.JOB, None),
    (error(529, kind="overloaded_error"), Reason.OVERLOADED, DeferralScope.JOB, None),
    (ValueError("a bug"), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(429, retry_after="600"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(minutes=10)),
    (error(429, retry_after="601"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, NOW + dt.timedelta(seconds=601)),
    (error(429, retry_after="0"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW),
    (error(429, retry_after="-1"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=30)),
    (error(429, retry_after="1e30"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=30)),
    (
        error(429, code="enforced_spend_limit_reached", retry_after="60"),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        NOW + dt.timedelta(seconds=60),
    ),
    (error(429, "EXTRA USAGE is required for LONG CONTEXT"), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (
        error(400, "You have REACHED your specified workspace\napi usage LIMITS"),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        None,
    ),
    (
        error(400, f"{USAGE.format('')}".replace("00:00", "09:30").replace("regain", "REGAIN")),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        dt.datetime(2026, 4, 1, 9, 30, tzinfo=dt.UTC),
    ),
    (
        error(400, USAGE.format("").replace(" at 00:00 UTC", "")),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        dt.datetime(2026, 4, 1, tzinfo=dt.UTC),
    ),
    (error(400, "CREDIT balance is too low"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, None),
    (error(400, "PROMPT is too long"), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (error(400, "This exceeds the maximum"), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (error(400, "These exceed the context window"), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (error(400, "input length and `max_tokens` are too much"), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (error(401, retry_after="5"), Reason.AUTH, DeferralScope.CONFIGURATION, NOW + dt.timedelta(seconds=5)),
    (error(499), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
]


@pytest.mark.parametrize(("came", "reason", "scope", "retry_at"), TABLE, ids=lambda value: str(value)[:50])
def test_every_error_has_one_meaning(came, reason, scope, retry_at):
    found = classify(came, NOW)
    assert (found.reason, found.scope, found.retry_at) == (reason, scope, retry_at)
    assert found.detail


def test_an_unreadable_reset_is_none():
    said = "You have reached your specified API usage limits. You will regain access on 2026-13-45 at 00:00 UTC."
    found = classify(error(400, said), NOW)
    assert (found.scope, found.retry_at) == (DeferralScope.QUOTA, None)


@pytest.mark.parametrize(
    ("now", "first"),
    [(NOW, (2026, 4, 1)), (dt.datetime(2026, 12, 31, 23, tzinfo=dt.UTC), (2027, 1, 1))],
)
def test_spend_limits_reset_on_the_first(now, first):
    assert first_of_next_month(now) == dt.datetime(*first, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "said", "code", "reason", "scope", "status"),
    [
        (
            "invalid_request_error",
            "Your credit balance is too low",
            "",
            Reason.QUOTA_EXHAUSTED,
            DeferralScope.QUOTA,
            400,
        ),
        (
            "invalid_request_error",
            "prompt is too long: 210000 tokens",
            "",
            Reason.INPUT_TOO_LARGE,
            DeferralScope.INPUT,
            400,
        ),
        ("invalid_request_error", "never heard of", "", Reason.NEEDS_ATTENTION, DeferralScope.JOB, 400),
        ("authentication_error", "invalid x-api-key", "", Reason.AUTH, DeferralScope.CONFIGURATION, 401),
        ("billing_error", "billing details", "", Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, 402),
        ("permission_error", "no", "", Reason.AUTH, DeferralScope.CONFIGURATION, 403),
        ("not_found_error", "model: x", "", Reason.NEEDS_ATTENTION, DeferralScope.CONFIGURATION, 404),
        ("request_too_large", "too large", "", Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, 413),
        ("rate_limit_error", "slow down", "", Reason.RATE_LIMITED, DeferralScope.PACE, 429),
        ("rate_limit_error", "spent", "enforced_spend_limit_reached", Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, 429),
        ("api_error", "Internal server error", "", Reason.OVERLOADED, DeferralScope.JOB, 500),
        ("timeout_error", "timed out", "", Reason.TIMEOUT, DeferralScope.JOB, 504),
        ("overloaded_error", "Overloaded", "", Reason.OVERLOADED, DeferralScope.JOB, 529),
        ("a_new_error", "what is this", "", Reason.NEEDS_ATTENTION, DeferralScope.JOB, "a_new_error"),
    ],
)
def test_each_type_of_error_has_its_meaning(kind, said, code, reason, scope, status):
    found = classify_batched(kind, said, NOW, code=code)
    assert (found.reason, found.scope, found.detail) == (reason, scope, f"{status}: {said}")


@pytest.mark.parametrize(
    ("came", "reason", "detail"),
    [
        (anthropic.APITimeoutError(REQUEST), Reason.TIMEOUT, "The judge did not answer in time"),
        (
            caused(anthropic.APIConnectionError(request=REQUEST), OSError("refused")),
            Reason.CONNECTION,
            "The judge could not be reached: refused",
        ),
        (
            anthropic.APIConnectionError(message="gone", request=REQUEST),
            Reason.CONNECTION,
            "The judge could not be reached: gone",
        ),
        (
            anthropic.APIResponseValidationError(httpx2.Response(200, request=REQUEST), None, message="no JSON"),
            Reason.OVERLOADED,
            "The service answered something that is not its protocol: no JSON",
        ),
        (
            json.JSONDecodeError("no value", "", 0),
            Reason.OVERLOADED,
            "The service answered something that is not its protocol: no value: line 1 column 1 (char 0)",
        ),
        (
            NotItsProtocol("a web page"),
            Reason.OVERLOADED,
            "The service answered something that is not its protocol: a web page",
        ),
        (ValueError("a bug"), Reason.NEEDS_ATTENTION, "ValueError: a bug"),
        (error(500, "Internal"), Reason.OVERLOADED, "500: Internal"),
        (error(400, "something new"), Reason.NEEDS_ATTENTION, "400: something new"),
        (error(429, "slow\0 down"), Reason.RATE_LIMITED, "429: slow\\u{0} down"),
        (unsaid(503), Reason.OVERLOADED, "503: no body"),
        (ValueError("x" * 3_000), Reason.NEEDS_ATTENTION, f"ValueError: {'x' * 2_000}"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_deferral_says_what_the_service_said(came, reason, detail):
    found = classify(came, NOW)
    assert (found.reason, found.detail) == (reason, detail)


def test_trouble_on_the_way_is_that_of_one_job():
    for came in (
        anthropic.APITimeoutError(REQUEST),
        anthropic.APIConnectionError(request=REQUEST),
        NotItsProtocol("x"),
    ):
        found = classify(came, NOW)
        assert (found.scope, found.retry_at) == (DeferralScope.JOB, None)


def test_an_unknown_type_in_a_batch_is_kept_with_its_words():
    found = classify_batched("a_new_error", "what is this" * 200, NOW)
    assert found.detail == f"a_new_error: {'what is this' * 200}"[:2_000]


def test_in_a_batch_nobody_says_when_to_come_back():
    found = classify_batched("rate_limit_error", "slow down", NOW)
    assert found.retry_at == NOW + dt.timedelta(seconds=30)
    spent = classify_batched("rate_limit_error", "spent", NOW, code="enforced_spend_limit_reached")
    assert spent.retry_at == dt.datetime(2026, 4, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("month", range(1, 13))
def test_the_first_of_the_next_month_is_one_of_utc(month):
    abroad = dt.timezone(dt.timedelta(hours=5))
    late = dt.datetime(2026, month, 1, 2, tzinfo=abroad)  # the day before, in UTC
    assert first_of_next_month(late) == dt.datetime(2026, month, 1, tzinfo=dt.UTC)


def test_the_first_of_the_next_month_is_that_of_utc_wherever_the_machine_is(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        late = dt.datetime(2026, 3, 31, 20, tzinfo=dt.UTC)  # April has begun in Tokyo
        assert first_of_next_month(late) == dt.datetime(2026, 4, 1, tzinfo=dt.UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        (error(429, code="enforced_spend_limit_reached"), (429, "enforced_spend_limit_reached", "")),
        (error(429, kind="rate_limit_error", request_id="req_7"), (429, "rate_limit_error", "req_7")),
        (unsaid(503), (503, "ServiceUnavailableError", "")),
        (error(400, code="c" * 100, request_id="r" * 200), (400, "c" * 80, "r" * 120)),
        (error(400, code="a\0b"), (400, "a�b", "")),
        (ValueError("a bug"), (None, "ValueError", "")),
        (anthropic.APITimeoutError(REQUEST), (None, "APITimeoutError", "")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_attempt_keeps_what_identifies_an_error(came, expected):
    found = error_columns(came)
    assert (found["http_status"], found["error_type"], found["request_id"]) == expected
