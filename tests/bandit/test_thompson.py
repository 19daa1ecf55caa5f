"""The draw is the same again, and follows the odds; what reading has led to lately moves them."""

import pytest

from bandit.core.thompson import draw, feedback, uniform

pytestmark = pytest.mark.pure

DRAWS = [
    # bandit, decision: the number in [0, 1)
    ("category", "d-1", 0.9543032921319272),
    ("category", "d-2", 0.8961573502222576),
    ("harness", "d-1", 0.8201451078116248),
    ("category", "ünïcode", 0.5125534861824484),
]


def test_the_draw_follows_the_odds():
    odds = {"a": 0.1, "b": 0.6, "c": 0.3}
    drawn = [draw(odds, uniform("category", f"d{i}")) for i in range(20_000)]
    assert [drawn.count(name) / 20_000 for name in "abc"] == pytest.approx([0.1, 0.6, 0.3], abs=0.01)


def test_the_draw_is_the_same_whatever_the_order():
    assert draw({"a": 0.5, "b": 0.5}, 0.7) == draw({"b": 0.5, "a": 0.5}, 0.7) == "b"


def test_rounding_never_leaves_the_draw_empty_handed():
    assert draw({"a": 0.5, "b": 0.3, "c": 0.2 - 1e-9, "d": 0.0}, 1 - 2**-53) == "c"
    assert draw({"a": 1.0}, 1.0) == "a"


SIZES = {"boost": 1.1, "penalty": 0.8, "window": 14, "min_samples": 5}


@pytest.mark.parametrize(
    ("n", "average", "factor"),
    [
        (0, 0.0, None),
        (1, 0.5, 1.1),
        (9, 0.8, 1.1),
        (9, 0.4999, None),
        (9, 0.3, None),
        (5, 0.2999, 0.8),
        (4, 0.1, None),
    ],
)
def test_seed_000s_feedback(n, average, factor):
    """At least .5 over 14 days: a boost. Below .3 with enough samples: a penalty. Else nothing."""
    found = feedback(n, average, **SIZES)
    assert (found and found.factor) == factor


@pytest.mark.parametrize(("bandit", "decision", "expected"), DRAWS)
def test_a_decision_has_its_number_for_ever(bandit, decision, expected):
    assert uniform(bandit, decision) == expected


@pytest.mark.parametrize(
    ("u", "arm"), [(0.0, "a"), (0.0999, "a"), (0.1, "b"), (0.6999, "b"), (0.7, "d"), (0.9999, "d")]
)
def test_chances_are_laid_end_to_end_by_name(u, arm):
    assert draw({"d": 0.3, "b": 0.6, "c": 0.0, "a": 0.1}, u) == arm


def test_there_must_be_something_to_draw_from():
    with pytest.raises(ValueError, match="nothing to draw from"):
        draw({}, 0.5)


@pytest.mark.parametrize(
    ("n", "average", "sentence"),
    [
        (1, 0.5, "14-day average 0.50 over 1 reward, at least 0.5: boosted, probability × 1.1"),
        (5, 0.1, "14-day average 0.10 over 5 rewards, below 0.3: penalised, probability × 0.8"),
    ],
)
def test_the_feedback_is_told_with_its_numbers(n, average, sentence):
    assert feedback(n, average, **SIZES).sentence == sentence
