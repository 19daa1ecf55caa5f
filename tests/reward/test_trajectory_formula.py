"""The formula of trajectory/3: fixed signs, and effort is not success."""

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward.trajectory_formula import LOWEST, WEIGHTS, TrajectoryScore, score
from grading.signals import Signals
from grading.signals import TestState as State

pytestmark = pytest.mark.pure

Seen = dict[str, Any]
TESTS = {None: {}, True: {"tests_at_end": State.GREEN}, False: {"broke_tests": True}}
counts = st.integers(0, 50)
seen = st.fixed_dictionaries(
    {
        "units": st.floats(0, 30),
        "did_something": st.booleans(),
        "last_tests": st.sampled_from([None, True, False]),
        "failed_calls": counts,
        "known_results": counts,
        "user_turns": counts,
        "dead_start": st.booleans(),
        "empty_results": counts,
        "must_print": counts,
        "repeats": counts,
        "repeatable": counts,
    }
)
DONE = {"units": 1.0, "did_something": True, "user_turns": 1}


def scored(observed: Seen, *, lowest: float = LOWEST, highest: float = 1.0, **changes: Any) -> TrajectoryScore:
    """The sum for a log with these signals, `last_tests` among them, and for the `units` and `did_something`."""
    fields = {"units": 0.0, "did_something": False, "last_tests": None, **observed, **changes}
    units, did_something = fields.pop("units"), fields.pop("did_something")
    signals = Signals(**TESTS[fields.pop("last_tests")], **fields)
    return score(signals, units=units, did_something=did_something, lowest=lowest, highest=highest)


def value(observed: Seen, **changes: Any) -> float:
    return scored(observed, **changes).value


@given(seen)
def test_the_grade_is_a_number_between_0_and_1_and_its_rows_add_up_to_it(observed: Seen):
    found = scored(observed)
    assert LOWEST <= found.value <= 1
    assert sum(row.adds for row in found.contributions) == pytest.approx(found.value)
    assert all(-1 <= row.factor <= 1 for row in found.contributions)


@given(seen, st.floats(0, 10))
def test_one_more_confirmed_thing_never_lowers_the_grade(observed: Seen, units: float):
    observed["failed_calls"] = min(observed["failed_calls"], observed["known_results"])
    more = {**observed, "units": observed["units"] + units, "did_something": True}
    assert value(more) >= value(observed)
    assert value(more, known_results=observed["known_results"] + 1) >= value(observed)


@given(seen, st.integers(1, 10))
def test_more_errors_never_raise_it(observed: Seen, errors: int):
    known = observed["known_results"]
    failed = observed["failed_calls"] = min(observed["failed_calls"], known)
    assert value(observed, failed_calls=failed + errors, known_results=known + errors) <= value(observed)


@given(seen, st.sampled_from(["user_turns", "empty_results", "repeats", "failed_calls"]), st.integers(1, 20))
def test_nothing_that_a_session_does_too_often_raises_it(observed: Seen, name: str, more: int):
    assert value(observed, **{name: observed[name] + more}) <= value(observed)


@given(seen, st.integers(1, 1_000))
def test_length_without_failures_adds_nothing(observed: Seen, more: int):
    calm = {**observed, "failed_calls": 0, "empty_results": 0, "repeats": 0}
    longer = {name: calm[name] + more for name in ("known_results", "must_print", "repeatable")}
    assert value(calm, **longer) == value(calm)


@given(seen)
def test_repeats_take_away_at_most_their_weight(observed: Seen):
    assert value(observed, repeats=0) - value(observed) <= -WEIGHTS.repeats + 1e-9


@given(seen)
def test_limits_hold_and_keep_the_order(observed: Seen):
    assert value(observed, highest=0.2) == min(value(observed), 0.2)
    assert value(observed, lowest=0.35) == max(value(observed), 0.35)


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [
        ({}, 0.55, 0.60),
        ({"units": 5.0, "known_results": 40, "failed_calls": 2}, 0.60, 0.80),
        ({"units": 5.0, "last_tests": True, "known_results": 40, "failed_calls": 2}, 0.85, 1.0),
        ({"last_tests": False}, 0.25, 0.35),
        ({"units": 0.0, "did_something": False, "last_tests": False}, LOWEST, 0.10),
    ],
)
def test_the_scale_is_one_that_people_can_read(changes: dict, low: float, high: float):
    assert low <= value(DONE, **changes) <= high


def test_every_row_says_what_it_saw():
    found = scored(DONE, last_tests=True, known_results=4, failed_calls=1)
    rows = {row.kind: row for row in found.contributions}
    assert (rows["tests"].text, rows["tests"].adds) == ("tests passed at the end", 0.26)
    assert (rows["errors"].text, rows["errors"].factor) == ("1 of 4 results are failures", 0.25)
    assert set(rows) == set(asdict(WEIGHTS))


def test_what_was_not_observed_adds_nothing():
    rows = {row.kind: row.adds for row in scored({}).contributions}
    assert [rows[kind] for kind in ("tests", "units", "errors", "empty_results", "repeats")] == [0] * 5


def test_a_limit_is_a_row_of_its_own():
    found = scored(DONE, highest=0.2)
    last = found.contributions[-1]
    assert (last.kind, last.text) == ("limit", "at most 0.2 here")
    assert sum(row.adds for row in found.contributions) == pytest.approx(0.2)


def test_failures_count_only_if_most_results_are_known():
    calls = {"tool_calls": {"shell": 9}, "failed_calls": 1}
    assert value(calls, known_results=4) > value(calls, known_results=5)


def test_without_a_log_conduct_says_nothing_for_or_against_a_session():
    found = score(None, units=1.0, did_something=True)
    assert found.value < value(DONE)
    assert {row.kind for row in found.contributions if row.adds} == {"base", "units", "did_something"}


WORDS = [
    # what was observed: the row, its words and factor
    ({}, "base", "starting value of every session", 1.0),
    ({"last_tests": None}, "tests", "no test run, or its result is not known", 0.0),
    ({"last_tests": True}, "tests", "tests passed at the end", 1.0),
    ({"last_tests": False}, "tests", "it broke tests", -1.0),
    ({"units": 2.0}, "units", "2.0 commit-equivalents of confirmed work", 0.632121),
    ({"did_something": True}, "did_something", "did something", 1.0),
    ({"did_something": False}, "did_something", "no work was seen", 0.0),
    ({"user_turns": 0}, "few_turns", "0 user turns", 1.0),
    ({"user_turns": 1}, "few_turns", "1 user turn", 1.0),
    ({"user_turns": 5}, "few_turns", "5 user turns", 0.5),
    ({"dead_start": True}, "got_going", "dead start", 0.0),
    ({"dead_start": False}, "got_going", "got going", 1.0),
    ({"failed_calls": 2, "known_results": 7}, "errors", "2 of 7 results are failures", 0.285714),
    ({"failed_calls": 9, "known_results": 7}, "errors", "9 of 7 results are failures", 1.0),
    ({"failed_calls": 1, "known_results": 1}, "errors", "1 of 1 results are failures", 1.0),
    ({"empty_results": 1, "must_print": 4}, "empty_results", "1 of 4 results are empty although they can’t be", 0.25),
    ({"repeats": 1, "repeatable": 4}, "repeats", "1 of 4 calls were repeated without need", 0.25),
]


@pytest.mark.parametrize(("changes", "kind", "words", "factor"), WORDS)
def test_each_row_says_in_words_what_it_saw(changes, kind, words, factor):
    (row,) = (row.as_dict() for row in scored(changes).contributions if row.kind == kind)
    assert (row["words"], row["factor"]) == (words, factor)
    assert row["adds"] == pytest.approx(factor * getattr(WEIGHTS, kind), abs=1e-6)


def test_without_a_log_every_row_of_conduct_says_so():
    rows = score(None, units=0.0, did_something=False).contributions
    assert [row.kind for row in rows if row.text == "not known without a log"] == [
        "few_turns",
        "got_going",
        "errors",
        "empty_results",
        "repeats",
    ]


def test_a_limit_says_on_which_side_it_is():
    low, high = scored({}, lowest=0.5), scored(DONE, highest=0.25)
    assert (low.contributions[-1].text, high.contributions[-1].text) == ("at least 0.5 here", "at most 0.25 here")
    assert low.contributions[-1].factor == 1.0
    assert low.contributions[-1].adds == pytest.approx(0.165)


def test_a_sum_between_its_limits_has_no_row_of_a_limit():
    assert [row.kind for row in scored(DONE).contributions if row.kind == "limit"] == []
    exact = value(DONE)
    assert len(scored(DONE, highest=exact, lowest=exact).contributions) == len(asdict(WEIGHTS))
