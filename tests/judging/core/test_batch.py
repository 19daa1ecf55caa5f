"""The arithmetic of batches."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.batch import pack, poll_gap, unpack

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("numbers", "runs"), [([], []), ([5], [[5, 5]]), ([3, 1, 2, 2, 7], [[1, 3], [7, 7]]), ([1, 3], [[1, 1], [3, 3]])]
)
def test_numbers_are_packed_in_runs(numbers, runs):
    assert pack(numbers) == runs


@given(st.sets(st.integers(1, 200)))
def test_unpacking_gives_back_what_was_packed(numbers):
    assert unpack(pack(numbers)) == numbers


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [(0, 30), (10, 30), (20, 60), (200, 600), (1000, 600)],  # a twentieth, from 30 s to ten minutes
)
def test_a_batch_is_asked_after_less_often_as_it_grows_older(minutes, seconds):
    gap = poll_gap(dt.timedelta(minutes=minutes), dt.timedelta(seconds=30))
    assert gap == dt.timedelta(seconds=seconds)
