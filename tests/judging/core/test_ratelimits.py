"""What the headers of an answer say is left, read without trust."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.ratelimits import DIMENSIONS, CallCost, Limit, RateLimits, parse

pytestmark = pytest.mark.pure

GOOD = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2026-11-21T10:00:01Z",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "29000",
    "anthropic-ratelimit-input-tokens-reset": "2026-11-21T11:00:00+01:00",
}


def test_every_dimension_is_read():
    headers = {f"anthropic-ratelimit-{name.replace('_', '-')}-limit": "7" for name in DIMENSIONS}
    assert parse(headers).as_dict() == {name: {"limit": 7} for name in DIMENSIONS}


def test_limit_remaining_and_reset_are_read():
    limits = parse(GOOD)
    assert limits.requests == Limit(limit=50, remaining=0, reset=dt.datetime(2026, 11, 21, 10, 0, 1, tzinfo=dt.UTC))
    assert limits.input_tokens == Limit(
        limit=30_000, remaining=29_000, reset=dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)
    )


def test_what_is_absent_is_none():
    limits = parse(GOOD)
    assert limits.output_tokens == limits.tokens == Limit()
    assert not parse({})


def test_what_a_row_keeps_is_what_was_said():
    assert parse(GOOD).as_dict() == {
        "requests": {"limit": 50, "remaining": 0},
        "input_tokens": {"limit": 30_000, "remaining": 29_000},
    }


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "+5", "0", "1e9", "1.5", "nan", "inf", "１０", "٣", "1_000", "0x10", "1" + 30 * "0", "5\n", "many"],
)
def test_a_limit_that_is_no_positive_number_is_none(text):
    assert parse({"anthropic-ratelimit-requests-limit": text}).requests.limit is None


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-11-21", "2026-11-21T10:00:00", "99999-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"]
)
def test_a_reset_that_is_no_moment_is_none(text):
    assert parse({"anthropic-ratelimit-requests-reset": text}).requests.reset is None


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), st.text(max_size=40)))
def test_nothing_in_a_header_breaks_the_reading(headers):
    for limit in (getattr(parse(headers), name) for name in DIMENSIONS):
        assert limit.limit is None or 1 <= limit.limit <= 10**12
        assert limit.remaining is None or 0 <= limit.remaining <= 10**12


def test_a_cost_counts_in_every_dimension():
    cost = CallCost(input_tokens=1000, output_tokens=200)
    assert cost.by_dimension() == {"requests": 1, "input_tokens": 1000, "output_tokens": 200, "tokens": 1200}


def test_nothing_said_is_false():
    assert not RateLimits()
    assert RateLimits(tokens=Limit(limit=1))
