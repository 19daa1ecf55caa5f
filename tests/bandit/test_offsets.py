"""Moving a stratum's rewards at read: exact, out of reach of order, and without a trace when switched off (L5)."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.offsets import add_offsets
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import MICRO, RewardRow, RewardRows

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
PLAIN = Policy(weights={"judge": 1.0, "human": 1.0, "journal": 0.3})
GOLDEN = (12.080167891678743, 7.8720629134800415, 7.5364970249793135, 4.837387566805727)
KEYS = [(arm, source, stratum) for arm in "ab" for source in ("judge", "journal") for stratum in ("", "flagged")]


def row(value, *, arm="a", source="journal", stratum="", age=0, n=1):
    micro = round(value * MICRO)
    day = TODAY - timedelta(days=age)
    return RewardRow(arm=arm, source=source, stratum=stratum, day=day, n=n, s=n * micro, q=n * micro**2)


def read(rows, offsets=None, *, policy=PLAIN):
    return fold(rows, arms="ab", policy=replace(policy, offsets=offsets or {}), today=TODAY)


def shifted(rows, offsets):
    """The rows, summed and shifted in one group."""
    table = RewardRows.from_rows(rows)
    return add_offsets(table, np.zeros(len(table), dtype=np.int64), offsets, {}, {})[0]


def bits(posterior):
    return posterior.alpha.tobytes(), posterior.beta.tobytes()


@st.composite
def reward(draw):
    micro = draw(st.integers(0, MICRO))
    day = TODAY - timedelta(days=draw(st.integers(0, 30)))
    arm, source = draw(st.sampled_from("ab")), draw(st.sampled_from(["judge", "journal", "human"]))
    stratum = draw(st.sampled_from(["", "flagged"])) if source != "human" else ""
    return RewardRow(arm=arm, source=source, stratum=stratum, day=day, n=1, s=micro, q=micro**2)


rewards = st.lists(reward(), max_size=20)
offsets = st.dictionaries(st.sampled_from(KEYS), st.floats(-1, 1), max_size=8)


def test_the_formula_by_hand():
    """Rewards of .2 and .4, two of each, and δ = .25: S' = 1.2 + 4·.25; Q' = .4 + .5·1.2 + 4·.0625."""
    rows = [row(0.2, n=2), row(0.4, n=2)]
    (moved,) = shifted(rows, {("a", "journal", ""): 0.25})
    assert (moved.n, moved.s, moved.q) == (4, 2_200_000, 1_250_000_000_000)


@pytest.mark.parametrize(("offset", "s", "q"), [(0.9, 2 * MICRO, 2 * MICRO**2), (-0.9, 0, 0)])
def test_no_stratum_leaves_its_range(offset, s, q):
    (moved,) = shifted([row(0.3), row(0.5)], {("a", "journal", ""): offset})
    assert (moved.n, moved.s, moved.q) == (2, s, q)


def test_only_the_named_stratum_moves():
    rows = [row(0.3, stratum="flagged"), row(0.3), row(0.3, source="judge"), row(0.3, arm="b", stratum="flagged")]
    moved = shifted(rows, {("a", "journal", "flagged"): 0.4})
    assert [each.s for each in moved] == [700_000, 300_000, 300_000, 300_000]


def test_an_arm_with_an_offset_is_read_as_if_its_source_had_been_right():
    wrong = [row(0.32, stratum="flagged", age=age) for age in range(10)]
    right = [row(0.80, age=age) for age in range(10)]
    assert bits(read(wrong, {("a", "journal", "flagged"): 0.48})) == bits(read(right))
    assert read(wrong, {("a", "journal", "flagged"): 0.48}).arms["a"].evidence[0].mean == pytest.approx(0.8)


@given(rewards)
def test_without_offsets_strata_change_no_bit(rows):
    """The default must leave every posterior as it was before there were strata, its name included."""
    plain = [replace(each, stratum="") for each in rows]
    assert bits(read(rows)) == bits(read(plain))
    assert read(rows).version == read(plain).version
    unmoved = dict.fromkeys(KEYS, 0.0)
    assert bits(read(rows, unmoved)) == bits(read(plain))


def test_the_numbers_of_before_there_were_strata():
    """Golden: read by the code before offsets, on the same rows."""
    rows = [row(0.2, n=3, age=2), row(0.7, n=5, age=1, source="judge"), row(0.9, arm="b", source="human", age=40)]
    arms = read(rows).arms
    assert (arms["a"].alpha, arms["a"].beta) == pytest.approx((GOLDEN[0], GOLDEN[1]), rel=1e-12)
    assert (arms["b"].alpha, arms["b"].beta) == pytest.approx((GOLDEN[2], GOLDEN[3]), rel=1e-12)
    assert "offsets" not in repr(PLAIN)


@given(rows=rewards, moved=offsets, data=st.data())
def test_order_splitting_and_undone_rewards_change_no_bit_under_offsets(rows, moved, data):
    undone = data.draw(st.lists(reward(), max_size=3))
    back = [replace(each, n=-each.n, s=-each.s, q=-each.q) for each in undone]
    shuffled = data.draw(st.permutations(rows))
    one, other = read(rows, moved), read([*undone, *shuffled, *back], moved)
    assert bits(one) == bits(other)
    assert one.version == other.version


@given(rows=rewards, moved=offsets)
def test_moved_sums_are_sums_of_rewards(rows, moved):
    """As the database asks of buckets: 0 ≤ S ≤ N, and S²/N ≤ Q ≤ S."""
    for each in shifted(rows, moved):
        assert 0 <= each.s <= each.n * MICRO
        assert each.s**2 <= each.q * each.n
        assert each.q <= each.s * MICRO


@given(rows=rewards, moved=offsets)
def test_moving_one_arm_leaves_the_evidence_of_the_others(rows, moved):
    only_a = {key: offset for key, offset in moved.items() if key[0] == "a"}
    policy = replace(PLAIN, evidence_scale=6.0)
    assert read(rows, only_a, policy=policy).evidence.get("b") == read(rows, policy=policy).evidence.get("b")


def test_grades_of_people_are_never_moved():
    with pytest.raises(ValueError, match="human grades are never moved"):
        replace(PLAIN, offsets={("a", "human", ""): 0.1})


@pytest.mark.parametrize("offset", [1.01, -1.01, float("nan"), float("inf")])
def test_an_offset_is_a_number_from_minus_one_to_one(offset):
    with pytest.raises(ValueError, match="a number from -1 to 1"):
        replace(PLAIN, offsets={("a", "journal", ""): offset})
