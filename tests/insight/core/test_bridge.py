"""How graders are put on one scale by sessions that several have read."""

import numpy as np
import pytest

from grading.insight.core.bridge import MIN_PAIRS, fit_scale
from grading.insight.core.cells import GraderIdentity

pytestmark = pytest.mark.pure
A, B, C, D = (GraderIdentity("judge", name, "", "") for name in "abcd")


def are_connected(scale, some, other):
    return scale.components[scale.graders.index(some)] == scale.components[scale.graders.index(other)]


def pairs(value, count=MIN_PAIRS):
    """Differences with this mean and a standard deviation of .1."""
    values = np.tile([0.1, -0.1], count)[:count]
    return value + values - values.mean()


def test_offset_is_the_mean_difference():
    """40 sessions that A and B have read, B .05 higher: B is .05 above A."""
    scale = fit_scale([A, B], {(A, B): pairs(0.05, 40)})
    assert scale.offsets == pytest.approx([0, 0.05])
    # .1² · 40/39 / 40 = .000256
    assert scale.covariance[1, 1] == pytest.approx(0.01 / 39)


def test_offsets_add_up_along_a_path():
    """A and C have no common session, but both share some with B: .05 − .02 = .03."""
    scale = fit_scale([A, C], {(A, B): pairs(0.05), (B, C): pairs(-0.02)})
    assert scale.graders == (A, C)
    assert scale.offset_of(C) == pytest.approx(0.03)
    assert are_connected(scale, A, C)
    # The errors of both steps add up.
    assert scale.covariance[1, 1] == pytest.approx(2 * 0.01 / (MIN_PAIRS - 1), rel=0.01)


def test_direction_of_a_pair_does_not_matter():
    forwards, backwards = (fit_scale([A, B], pair) for pair in ({(A, B): pairs(0.05)}, {(B, A): pairs(-0.05)}))
    assert forwards.offsets == pytest.approx(backwards.offsets)


def test_too_few_pairs_connect_nothing():
    scale = fit_scale([A, B, C, D], {(A, B): pairs(0.05, MIN_PAIRS - 1), (C, D): pairs(0.1)})
    assert not are_connected(scale, A, B)
    assert are_connected(scale, C, D)
    assert not are_connected(scale, A, C)
    assert scale.offsets == pytest.approx([0, 0, 0, 0.1])


def test_equal_readings_have_an_error_all_the_same():
    """Readings that never differ would otherwise weigh infinitely much."""
    scale = fit_scale([A, B], {(A, B): np.zeros(50)})
    assert 0 < scale.covariance[1, 1] < 1e-5
