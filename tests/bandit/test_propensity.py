"""P(best) and propensities: exact, floored and repeatable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from bandit.core.propensity import p_best, propensities

pytestmark = pytest.mark.pure

SHAPES = st.floats(0.05, 2000)


@pytest.mark.parametrize("strength", [0.1, 1, 10, 1e3, 1e5])
def test_equal_arms_are_equally_likely_to_be_best(strength):
    assert p_best(np.full(5, strength), np.full(5, strength)) == pytest.approx(np.full(5, 0.2), abs=1e-6)


def test_two_arms_agree_with_the_closed_form():
    """P(Beta(2, 1) > Beta(1, 1)) = ∫ 2x·x dx = 2/3."""
    assert p_best(np.array([2.0, 1.0]), np.array([1.0, 1.0])) == pytest.approx([2 / 3, 1 / 3], abs=1e-5)


def plain(alpha, beta, points):
    """The same integral by the trapezium rule over all of [0, 1], with every F by the incomplete beta function."""
    cdf = betainc(alpha[:, None], beta[:, None], np.linspace(0, 1, points)[None, :])
    log = np.log(np.maximum(cdf, 1e-300))
    others = np.exp(log.sum(axis=0) - log)
    return (np.diff(cdf) * (others[:, 1:] + others[:, :-1])).sum(axis=1) / 2


SPREADS = {
    "alike": ([50, 52, 48, 60], [50, 50, 50, 58]),
    "one narrow among wide": ([7, 3e4, 8, 5], [5, 2e4, 8, 9]),
    "all narrow": ([5.00e4, 5.01e4, 4.99e4], [5e4, 5e4, 5e4]),
    "hardly bounded at 1": ([9.8, 12, 30], [1, 1.1, 1.5]),
    "without bound at 0": ([0.3, 0.9, 1.2], [9.8, 12, 30]),
    "a straight density": ([2, 1, 2], [1, 1, 2]),
}


@pytest.mark.parametrize("shapes", SPREADS.values(), ids=SPREADS)
def test_a_thousand_points_say_what_two_hundred_thousand_do(shapes):
    alpha, beta = (np.array(column, dtype=float) for column in shapes)
    assert np.abs(p_best(alpha, beta) - plain(alpha, beta, 200_000)).max() < 1e-4


def test_many_arms_at_once_are_as_exact_as_few():
    """Enough of them that the points are worked on in several blocks."""
    dice = np.random.default_rng(5)
    alpha, beta = dice.uniform(3, 40, 300), dice.uniform(2, 40, 300)
    assert np.abs(p_best(alpha, beta) - plain(alpha, beta, 5_000)).max() < 1e-5


def test_ten_thousand_equal_arms_share_equally():
    assert p_best(np.full(10_000, 6.0), np.full(10_000, 6.0)) == pytest.approx(np.full(10_000, 1e-4), rel=1e-9)


def test_an_arm_that_surely_is_below_has_no_chance_and_moves_nobody():
    alpha, beta = np.array([600.0, 590.0, 100.0]), np.array([400.0, 410.0, 900.0])
    with_it, without = p_best(alpha, beta), p_best(alpha[:2], beta[:2])
    assert with_it[2] == 0
    assert with_it[:2].tobytes() == without.tobytes()


def test_one_arm_is_surely_the_best():
    assert p_best(np.array([3.0]), np.array([4.0])).tolist() == [1.0]


@given(arms=st.lists(st.tuples(SHAPES, SHAPES), min_size=1, max_size=12))
def test_p_best_is_a_distribution_and_the_same_again(arms):
    alpha, beta = (np.array(column) for column in zip(*arms, strict=True))
    chance = p_best(alpha, beta)
    assert chance.sum() == pytest.approx(1)
    assert (chance >= 0).all()
    assert chance.tobytes() == p_best(alpha, beta).tobytes()


@pytest.mark.parametrize(("alpha", "beta"), [([], []), ([1.0, 0.0], [1.0, 1.0]), ([1.0, 1.0], [1.0, 0.0])])
def test_p_best_refuses_what_is_no_beta(alpha, beta):
    with pytest.raises(ValueError, match="at least one arm"):
        p_best(np.array(alpha), np.array(beta))


def test_the_floor_is_kept_and_everything_adds_up():
    odds = propensities(np.array([1.0, 0.0, 0.0]), floor=0.01)
    assert odds == pytest.approx([0.98, 0.01, 0.01])


def test_with_very_many_arms_the_floors_take_half_at_most():
    chance = np.zeros(200)
    chance[7] = 1.0
    odds = propensities(chance, floor=0.01)
    assert odds[7] == pytest.approx(0.5 + 0.5 / 200)
    assert odds.sum() == pytest.approx(1)
