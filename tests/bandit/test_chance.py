"""Keyed chance: uniform, the same for the same question, and nobody's guess without the key."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from bandit.chance import chance, key_id
from tests.examples import examples

pytestmark = pytest.mark.pure

TEXT = st.text(alphabet=st.characters(), max_size=12)


def test_it_is_the_same_for_the_same_question_and_another_for_another():
    asked = ("abstention", "category", "bob", "session-1")
    assert chance(*asked) == chance(*asked)
    assert len({chance(*asked), *(chance(*asked[:at], "other", *asked[at + 1 :]) for at in range(4))}) == 5


def test_another_key_draws_otherwise_and_has_another_name(settings):
    ids = [f"session-{number}" for number in range(200)]
    before, name = [chance("p", "b", "a", each) for each in ids], key_id()
    settings.CHANCE_KEY = bytes(range(32, 64))
    after = [chance("p", "b", "a", each) for each in ids]
    assert not set(before) & set(after)
    assert abs(np.corrcoef(before, after)[0, 1]) < 0.3
    assert name != key_id()
    assert re.fullmatch("[0-9a-f]{8}", name)


def test_it_is_uniform_from_0_to_below_1(settings):
    settings.CHANCE_KEY = bytes(range(32))
    drawn = [chance("p", "b", "a", str(number)) for number in range(20_000)]
    assert min(drawn) >= 0
    assert max(drawn) < 1
    assert kstest(drawn, "uniform").pvalue > 0.01


@examples(200)
@given(st.lists(TEXT, min_size=4, max_size=4), st.lists(TEXT, min_size=4, max_size=4))
def test_no_separator_in_a_name_makes_two_questions_one(one, other):
    assert (chance(*one) == chance(*other)) == (one == other)


def test_what_moves_from_one_text_to_the_next_is_another_question():
    pieces = [("a|b", "c", "", ""), ("a", "b|c", "", ""), ("a", "b", "c", ""), ("ab", "c", "", ""), ("", "abc", "", "")]
    pieces += [("a\0b", "c", "", ""), ("a", "b\0c", "", ""), ("a\x00\x00\x00\x00\x00\x00\x00\x01b", "", "", "")]
    assert len({chance(*each) for each in pieces}) == len(pieces)


def test_any_text_that_an_agent_may_send_has_a_chance():
    assert 0 <= chance("p", "b", "\ud800", "x" * 10_000) < 1
