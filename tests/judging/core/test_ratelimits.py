"""What the headers of an answer say is left, read without trust."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.ratelimits import DIMENSIONS, CallCost, parse

pytestmark = pytest.mark.pure

GOOD = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "29000",
}


def test_every_dimension_is_read():
    headers = {f"anthropic-ratelimit-{name.replace('_', '-')}-limit": "7" for name in DIMENSIONS}
    assert parse(headers) == {name: {"limit": 7} for name in DIMENSIONS}


def test_limit_and_remaining_are_read():
    assert parse(GOOD) == {
        "requests": {"limit": 50, "remaining": 0},
        "input_tokens": {"limit": 30_000, "remaining": 29_000},
    }


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "+5", "0", "1e9", "1.5", "nan", "inf", "１０", "٣", "1_000", "0x10", "1" + 30 * "0", "5\n", "many"],
)
def test_a_limit_that_is_no_positive_number_is_left_out(text):
    assert not parse({"anthropic-ratelimit-requests-limit": text})


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), st.text(max_size=40)))
def test_nothing_in_a_header_breaks_the_reading(headers):
    for limit in parse(headers).values():
        assert 1 <= limit["limit"] <= 10**12
        assert 0 <= limit.get("remaining", 0) <= 10**12


def test_a_cost_counts_in_every_dimension():
    cost = CallCost(input_tokens=1000, output_tokens=200)
    assert cost.by_dimension() == {"requests": 1, "input_tokens": 1000, "output_tokens": 200, "tokens": 1200}
