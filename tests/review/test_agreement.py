"""Bias and mean absolute error of a grader against people, with their intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grading.review.agreement import JudgeHumanPair, measure_agreement

pytestmark = pytest.mark.pure

GRADES = st.floats(0, 1)


def pairs(*gaps, probability=0.2):
    return [JudgeHumanPair(judge=0.5 + gap, human=0.5, probability=probability) for gap in gaps]


def test_no_pairs_say_nothing():
    found = measure_agreement([])
    assert (found.n, found.bias, found.error) == (0, None, None)


def test_one_pair_has_a_gap_and_no_interval():
    found = measure_agreement(pairs(-0.2))
    assert found.bias.mean == pytest.approx(-0.2)
    assert found.error.mean == pytest.approx(0.2)
    assert (found.error.low, found.error.high) == (None, None)


def test_the_interval_is_the_ordinary_t_interval_where_all_were_as_likely():
    gaps = [0.1, -0.05, 0.2, 0.0, -0.1, 0.05]
    found = measure_agreement(pairs(*gaps)).bias
    low, high = stats.t.interval(0.9, len(gaps) - 1, loc=sum(gaps) / len(gaps), scale=stats.sem(gaps))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_an_unlikely_pair_stands_for_more_sessions():
    found = measure_agreement([*pairs(0.3, probability=0.1), *pairs(0.0, 0.0, 0.0, probability=0.3)])
    assert found.bias.mean == pytest.approx((10 * 0.3) / (10 + 3 / 0.3))


@given(st.lists(st.tuples(GRADES, GRADES, st.floats(0.01, 1)), min_size=2, max_size=30))
def test_every_figure_lies_in_its_range_and_inside_its_interval(rows):
    found = measure_agreement([JudgeHumanPair(judge=judge, human=human, probability=p) for judge, human, p in rows])
    assert -1 <= found.bias.low <= found.bias.mean + 1e-12
    assert found.bias.mean - 1e-12 <= found.bias.high <= 1
    assert 0 <= found.error.low <= found.error.mean + 1e-12
    assert abs(found.bias.mean) <= found.error.mean + 1e-12
