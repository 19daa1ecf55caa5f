"""An error told in the results of a batch means what it means when it is an answer."""

import datetime as dt

import pytest

from grading.judging.core.api_errors import classify_said
from grading.judging.core.verdict import DeferralScope
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "said", "code", "reason", "scope"),
    [
        ("invalid_request_error", "Your credit balance is too low", "", Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA),
        ("invalid_request_error", "prompt is too long: 210000 tokens", "", Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
        ("invalid_request_error", "never heard of", "", Reason.NEEDS_ATTENTION, DeferralScope.JOB),
        ("authentication_error", "invalid x-api-key", "", Reason.AUTH, DeferralScope.CONFIGURATION),
        ("billing_error", "billing details", "", Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA),
        ("permission_error", "no", "", Reason.AUTH, DeferralScope.CONFIGURATION),
        ("not_found_error", "model: x", "", Reason.NEEDS_ATTENTION, DeferralScope.CONFIGURATION),
        ("request_too_large", "too large", "", Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
        ("rate_limit_error", "slow down", "", Reason.RATE_LIMITED, DeferralScope.PACE),
        ("rate_limit_error", "spent", "enforced_spend_limit_reached", Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA),
        ("api_error", "Internal server error", "", Reason.OVERLOADED, DeferralScope.JOB),
        ("timeout_error", "timed out", "", Reason.TIMEOUT, DeferralScope.JOB),
        ("overloaded_error", "Overloaded", "", Reason.OVERLOADED, DeferralScope.JOB),
        ("a_new_error", "what is this", "", Reason.NEEDS_ATTENTION, DeferralScope.JOB),
    ],
)
def test_each_type_of_error_has_its_meaning(kind, said, code, reason, scope):
    found = classify_said(kind, said, NOW, code=code)
    assert (found.reason, found.scope) == (reason, scope)
    assert said in found.detail
