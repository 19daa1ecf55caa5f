"""Rewards that say nothing any more; and fields that are missing too often."""

import pytest

from grading.monitoring.flag_rule import is_too_often
from grading.monitoring.operation import is_missing_too_often
from grading.monitoring.sameness import count_final_zeros, find_repeated_number, find_span_if_alike

pytestmark = pytest.mark.pure

ARMS = "abcd"


def rewards(*values):
    return [(ARMS[n % 4], value) for n, value in enumerate(values)]


def test_thirty_rewards_within_a_hair_are_alike():
    assert find_span_if_alike(rewards(0.1, *[0.5, 0.51] * 15)) == (0.5, 0.51)
    assert find_span_if_alike(rewards(*[0.5] * 29)) is None
    assert find_span_if_alike(rewards(*[0.5] * 29, 0.6)) is None
    assert find_span_if_alike([(ARMS[n % 2], 0.5) for n in range(30)]) is None  # two arms may well do the same work


def test_one_number_too_often_is_named():
    common = find_repeated_number([n / 200 for n in range(100)] + [0.75] * 20)
    assert (common.value, common.count, common.total) == (0.75, 20, 120)
    assert find_repeated_number([n / 100 for n in range(100)]) is None
    assert find_repeated_number([0.75] * 99) is None


def test_eleven_zeros_in_a_row_of_several_arms():
    assert count_final_zeros(rewards(0.4, *[0.0] * 11)) == 11
    assert count_final_zeros(rewards(*[0.0] * 14)) == 14
    assert count_final_zeros(rewards(*[0.0] * 10)) == 0
    assert count_final_zeros(rewards(*[0.0] * 11, 0.1)) == 0
    assert count_final_zeros([("a", 0.0)] * 20) == 0
    assert count_final_zeros([]) == 0


@pytest.mark.parametrize(("missing", "n"), [(3, 3), (6, 20), (14, 100), (100, 100)])
def test_a_field_that_is_missing_too_often(missing, n):
    assert is_missing_too_often(missing, n)
    assert not is_missing_too_often(missing - 1, n) or missing == n > 3


def test_nothing_is_missing_where_there_is_nothing():
    assert not is_missing_too_often(0, 0)
    assert not is_missing_too_often(0, 50)


def test_the_third_flag_in_a_week_is_too_often():
    assert [is_too_often(count) for count in (0, 2, 3)] == [False, False, True]
