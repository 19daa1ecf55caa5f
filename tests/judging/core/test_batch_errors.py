"""An error told in the results of a batch means what it means when it is an answer."""

import datetime as dt

import pytest

from grading.judging.core.api_errors import classify_said
from grading.judging.core.verdict import Scope
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "said", "code", "reason", "scope"),
    [
        ("invalid_request_error", "Your credit balance is too low", "", Reason.QUOTA_EXHAUSTED, Scope.QUOTA),
        ("invalid_request_error", "prompt is too long: 210000 tokens", "", Reason.INPUT_TOO_LARGE, Scope.INPUT),
        ("invalid_request_error", "never heard of", "", Reason.NEEDS_ATTENTION, Scope.JOB),
        ("authentication_error", "invalid x-api-key", "", Reason.AUTH, Scope.CONFIGURATION),
        ("billing_error", "billing details", "", Reason.QUOTA_EXHAUSTED, Scope.QUOTA),
        ("permission_error", "no", "", Reason.AUTH, Scope.CONFIGURATION),
        ("not_found_error", "model: x", "", Reason.NEEDS_ATTENTION, Scope.CONFIGURATION),
        ("request_too_large", "too large", "", Reason.INPUT_TOO_LARGE, Scope.INPUT),
        ("rate_limit_error", "slow down", "", Reason.RATE_LIMITED, Scope.PACE),
        ("rate_limit_error", "spent", "enforced_spend_limit_reached", Reason.QUOTA_EXHAUSTED, Scope.QUOTA),
        ("api_error", "Internal server error", "", Reason.OVERLOADED, Scope.JOB),
        ("timeout_error", "timed out", "", Reason.TIMEOUT, Scope.JOB),
        ("overloaded_error", "Overloaded", "", Reason.OVERLOADED, Scope.JOB),
        ("a_new_error", "what is this", "", Reason.NEEDS_ATTENTION, Scope.JOB),
    ],
)
def test_each_type_of_error_has_its_meaning(kind, said, code, reason, scope):
    found = classify_said(kind, said, NOW, code=code)
    assert (found.reason, found.scope) == (reason, scope)
    assert said in found.detail
