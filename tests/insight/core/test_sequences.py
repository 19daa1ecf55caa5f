"""The interval that holds at every time: its formula, and how often it is wrong."""

import math

import numpy as np
import pytest

from grading.insight.core.sequences import anytime_p, half_width

pytestmark = pytest.mark.pure


def test_formula():
    """I = 400, scale .05 so that λ = 1/.05² = 400: √(800 · log(800 / (400 · .1²))) / 400 = .1628."""
    assert half_width(400, 0.05) == pytest.approx(math.sqrt(800 * math.log(200)) / 400)
    assert half_width(400, 0.05) == pytest.approx(0.1628, abs=1e-4)


@pytest.mark.parametrize("miss", [0.01, 0.1, 0.3])
def test_p_value_is_where_the_interval_reaches_zero(miss):
    assert anytime_p(half_width(900, 0.05, miss), 900, 0.05) == pytest.approx(miss)


def test_p_value_of_nothing_is_one():
    assert anytime_p(0.0, 900, 0.05) == 1.0


def test_looking_every_day_for_two_years_is_rarely_wrong():
    """Brownian motion, looked at 700 times: outside at any time in at most 10 % of 2,000 runs, give or take 2 %."""
    rng = np.random.default_rng(1)
    information = 25.0 * np.arange(1, 701)
    paths = np.cumsum(rng.normal(0, 5.0, (2000, 700)), axis=1) / information
    bounds = np.array([half_width(each, 0.05) for each in information])
    assert (np.abs(paths) > bounds).any(axis=1).mean() <= 0.12
