"""Which abstentions are judged first: each by chance, and never none of many."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward.reserve import draw_next, may_go_first
from tests.examples import examples

pytestmark = pytest.mark.pure


def play(numbers, share):
    """What is drawn of an arm's abstentions in a row."""
    found, passed_over = [], 0
    for number in numbers:
        one = draw_next(number, share, passed_over)
        passed_over = 0 if one.drawn else passed_over + 1
        found.append(one)
    return found


@examples(100)
@given(st.lists(st.floats(0, 1, exclude_max=True), max_size=200), st.floats(0.005, 1))
def test_no_fewer_are_drawn_than_the_share_and_none_has_less_of_a_chance(numbers, share):
    found = play(numbers, share)
    for n in range(len(found) + 1):
        assert sum(each.drawn for each in found[:n]) >= int(share * n + 1e-9)
    assert all(each.chance >= share for each in found)


@pytest.mark.parametrize(("share", "of"), [(0.1, 10), (0.05, 20), (0.15, 6), (0.3, 3), (0.7, 1), (1, 1), (1 / 3, 3)])
def test_the_last_of_as_many_as_the_share_says_is_drawn_for_certain(share, of):
    found = play([0.999999] * 3 * of, share)
    assert [each.drawn for each in found] == ([False] * (of - 1) + [True]) * 3
    assert [each.chance for each in found] == ([share] * (of - 1) + [1.0]) * 3


def test_nothing_is_drawn_where_the_share_is_none():
    assert play([0.0] * 100, 0) == [draw_next(0.0, 0, 0)] * 100
    assert (draw_next(0.0, 0, 99).drawn, draw_next(0.0, 0, 99).chance) == (False, 0)


def test_a_share_of_a_tenth_draws_as_many_as_the_formula_says():
    rng = random.Random(1)
    found = play([rng.random() for _ in range(100_000)], 0.1)
    assert sum(each.drawn for each in found) / len(found) == pytest.approx(0.1 / (1 - 0.9**10), abs=0.004)


def test_each_stands_for_as_many_as_its_chance_says():
    """Abstentions that grow worse and worse: the drawn ones, weighted by 1/chance, have the mean of all."""
    worth, means = [1 - n / 400 for n in range(400)], []
    for seed in range(400):
        rng = random.Random(seed)
        found = play([rng.random() for _ in worth], 0.1)
        weight = [each.drawn / each.chance for each in found]
        means.append(sum(w * v for w, v in zip(weight, worth, strict=True)) / len(worth))
    assert sum(means) / len(means) == pytest.approx(sum(worth) / len(worth), abs=0.02)


@pytest.mark.parametrize(
    ("served", "of", "share", "first"),
    [
        (0, 0, 0.2, True),
        (1, 1, 0.2, False),
        (1, 4, 0.2, False),  # 1 < .2 · 5 is not so
        (1, 5, 0.2, True),
        (10, 50, 0.2, True),
        (11, 50, 0.2, False),
        (0, 0, 0, False),
        (3, 3, 1, True),
    ],
)
def test_they_go_first_as_long_as_they_had_less_than_their_share(served, of, share, first):
    assert may_go_first(served, of, share) is first
