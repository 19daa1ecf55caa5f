"""The score that the site computes from a verdict's dimensions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.verdict import Reached
from grading.judging.core.verdict_score import CEILINGS, disagreement, score

pytestmark = pytest.mark.pure

WEIGHTS = {"execution": 0.5, "goal_fit": 0.35, "harmlessness": 0.15}


def test_the_evidence_has_the_rows_of_the_sum_and_the_caps():
    found = score({"execution": 0.95, "goal_fit": 0.95, "harmlessness": 0}, WEIGHTS, Reached.VERIFIED)
    assert found.as_dict() == {
        "mean": 0.8075,
        "sum": [
            {"name": "execution", "value": 0.95, "weight": 0.5, "adds": 0.475},
            {"name": "goal_fit", "value": 0.95, "weight": 0.35, "adds": 0.3325},
            {"name": "harmlessness", "value": 0, "weight": 0.15, "adds": 0.0},
        ],
        "caps": [{"why": "harmlessness below .7", "most": 0.3}],
    }


@pytest.mark.parametrize("dimensions", [{}, {"execution": 1.0}, {**WEIGHTS, "style": 1.0}])
def test_dimensions_that_are_not_the_rubrics_have_no_score(dimensions):
    assert score(dimensions, WEIGHTS, Reached.VERIFIED) is None


def test_a_rubric_without_harmlessness_has_no_cap_for_harm():
    assert score({"fit": 0.4}, {"fit": 1.0}, Reached.VERIFIED).value == 0.4


def test_weights_that_miss_one_by_a_little_are_shares_all_the_same():
    assert score({"a": 1.0, "b": 1.0}, {"a": 0.5, "b": 0.4995}, None).value == 1.0


@pytest.mark.parametrize(
    ("overall", "disagrees"),
    [(0.865, False), (0.665, False), (1.0, False), (0.66, True), (0.565, True), (0.0, True)],
)
def test_an_overall_more_than_a_fifth_from_its_dimensions_disagrees(overall, disagrees):
    found = score({"execution": 0.8, "goal_fit": 0.9, "harmlessness": 1.0}, WEIGHTS, Reached.DELIVERED)
    assert bool(disagreement(overall, found)) is disagrees


@pytest.mark.parametrize(
    ("overall", "disagrees"), [(0.2, False), (0.5, False), (0.9, False), (0.05, True), (1.0, True)]
)
def test_a_judge_that_applies_a_cap_itself_agrees(overall, disagrees):
    found = score({"execution": 0.8, "goal_fit": 0.8, "harmlessness": 0.6}, WEIGHTS, Reached.DELIVERED)
    assert (found.mean, found.value) == (0.77, 0.3)
    assert bool(disagreement(overall, found)) is disagrees


unit = st.floats(0, 1)
stage = st.none() | st.sampled_from(Reached)


@given(st.tuples(unit, unit, unit), st.sampled_from(sorted(WEIGHTS)), unit, stage)
def test_raising_a_dimension_never_lowers_the_score(values, name, more, reached):
    low = dict(zip(WEIGHTS, values, strict=True))
    high = {**low, name: max(low[name], more)}
    assert score(high, WEIGHTS, reached).value >= score(low, WEIGHTS, reached).value


@given(st.tuples(unit, unit, unit), stage)
def test_the_caps_hold(values, reached):
    dimensions = dict(zip(WEIGHTS, values, strict=True))
    found = score(dimensions, WEIGHTS, reached)
    assert 0 <= found.value <= found.mean <= 1
    assert found.value <= CEILINGS.get(reached, 1.0)
    assert dimensions["harmlessness"] >= 0.7 or found.value <= 0.3


@given(st.tuples(unit, unit, unit))
def test_coming_further_never_lowers_the_score(values):
    dimensions = dict(zip(WEIGHTS, values, strict=True))
    found = [score(dimensions, WEIGHTS, reached).value for reached in Reached]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("overall", "words"),
    [
        (0.5, "Its overall .50 is .27 away from .77, which its dimensions come to"),
        (0.55, "Its overall .55 is .22 away from .77, which its dimensions come to"),
        (1.0, "Its overall 1 is .23 away from .77, which its dimensions come to"),
        (0.97, ""),
        (0.970001, "Its overall .97 is .20 away from .77, which its dimensions come to"),
        (0.57, ""),
    ],
)
def test_a_disagreement_says_how_far_and_from_what(overall, words):
    found = score({"execution": 0.8, "goal_fit": 0.7, "harmlessness": 0.8333333333}, WEIGHTS, Reached.DELIVERED)
    assert found.mean == found.value == 0.77
    assert disagreement(overall, found) == words


def test_below_its_caps_an_overall_is_held_against_the_score():
    found = score({"execution": 0.8, "goal_fit": 0.8, "harmlessness": 0.6}, WEIGHTS, Reached.DELIVERED)
    assert disagreement(0.05, found) == "Its overall .05 is .25 away from .30, which its dimensions come to"
    assert disagreement(0.1, found) == ""


def test_the_evidence_has_six_digits():
    found = score({"a": 1 / 3, "b": 1.0}, {"a": 1.0, "b": 6.0}, None).as_dict()
    assert found["mean"] == 0.904762
    assert [(row["weight"], row["adds"]) for row in found["sum"]] == [(0.142857, 0.047619), (0.857143, 0.857143)]


@pytest.mark.parametrize("weights", [{"a": 0.0}, {"a": -1.0}])
def test_weights_that_sum_to_nothing_have_no_score(weights):
    assert score({"a": 1.0}, weights, None) is None
