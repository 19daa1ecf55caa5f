"""What a policy may ask of evidence beyond its age and source: circumstances, salience, caps and cost."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.residual import baseline
from bandit.core.table import RewardRow

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
POLICY = Policy(weights={"judge": 1.0, "journal": 0.3}, evidence_scale=6.0, half_life=21)


def row(arm, value, *, n=1, age=1, source="judge", **rest):
    s = n * round(value * 1e6)
    day = TODAY - timedelta(days=age)
    return RewardRow(arm=arm, source=source, day=day, n=n, s=s, q=n * round(value**2 * 1e12), **rest)


def read(rows, policy=POLICY, arms=("a", "b")):
    return fold(rows, arms=arms, policy=policy, today=TODAY)


def evidence(posterior, arm):
    return {each.source: each.pseudo for each in posterior.arms[arm].evidence}


# --- salience --------------------------------------------------------------------------------------------------------


def test_an_arm_that_had_no_part_in_a_session_learns_a_third_of_it():
    """I109: ten lessons were injected, one was used, and all ten got the whole reward."""
    policy = replace(POLICY, salience_floor=0.3)
    used, idle = row("a", 0.9, age=0), row("b", 0.9, age=0, salience=0)
    posterior = read([used, idle], policy)
    prior = 12 * 0.5
    learnt = {arm: posterior.alpha[i] - 12 * posterior.long_run_mean[i] for i, arm in enumerate("ab")}
    assert learnt["a"] == pytest.approx(6 * 0.9)
    assert learnt["b"] == pytest.approx(0.3 * 6 * 0.9)
    assert read([], policy).alpha[0] == prior


def test_full_salience_changes_no_bit():
    rows = [row("a", 0.7, age=age, n=3) for age in range(5)]
    plain, other = read(rows), read(rows, replace(POLICY, salience_floor=0.9))
    assert plain.alpha.tobytes() == other.alpha.tobytes()


# --- caps ------------------------------------------------------------------------------------------------------------


def test_a_capped_source_amounts_to_no_more_than_its_cap():
    rows = [row("a", 0.3, source="journal", n=100, age=0), row("a", 0.7, age=0, n=4)]
    capped = read(rows, replace(POLICY, caps={"journal": 10.0}))
    pulled = capped.alpha + capped.beta - 12
    assert pulled[0] == pytest.approx(10 + 4 * 6)
    assert capped.arms["a"].mean > read(rows).arms["a"].mean


def test_a_cap_on_all_evidence_keeps_the_newest_so_that_a_reward_moves_the_mean_still():
    """I76: an undecayed bandit stood at 15,000 observations, and no grade could move it."""
    many = [row("a", 0.55, n=150, age=age) for age in range(1, 101)]
    moved, strength = {}, {}
    for cap in (None, 600.0):
        policy = replace(POLICY, half_life=10_000, long_run_half_life=10_000, evidence_cap=cap)
        before, after = read(many, policy), read([*many, row("a", 1.0, age=0)], policy)
        moved[cap] = after.arms["a"].mean - before.arms["a"].mean
        strength[cap] = float(after.alpha[0] + after.beta[0])
    assert moved[None] < 0.0001
    assert moved[600.0] > 0.002
    assert strength[600.0] == pytest.approx(600 + 12)


def test_a_cap_keeps_the_newest_days_whole():
    rows = [row("a", 0.9, n=10, age=1), row("a", 0.1, n=10, age=2)]
    arm = read(rows, replace(POLICY, half_life=10_000, long_run_half_life=10_000, evidence_cap=60.0)).arms["a"]
    assert arm.alpha - 12 * arm.long_run_mean == pytest.approx(60 * 0.9, rel=0.001)


def test_capping_one_arm_leaves_the_others_bit_identical():
    rows = [row("a", 0.55, n=150), row("b", 0.4, n=150, age=2), row("b", 0.4, n=150, age=3)]
    capped = replace(POLICY, evidence_cap=300.0)
    before, after = read(rows, capped), read([*rows, row("a", 0.1, n=50, age=0)], capped)
    assert before.alpha[1].tobytes() == after.alpha[1].tobytes()


def test_a_cap_that_is_not_reached_changes_no_bit():
    rows = [row("a", 0.7, age=age, n=3) for age in range(5)]
    capped = replace(POLICY, caps={"judge": 1e6}, evidence_cap=1e6)
    assert read(rows).alpha.tobytes() == read(rows, capped).alpha.tobytes()


def test_without_rewards_caps_cap_nothing():
    assert read([], replace(POLICY, caps={"judge": 1.0}, evidence_cap=1.0)).alpha[0] == 6.0


# --- cost ------------------------------------------------------------------------------------------------------------


def test_a_dear_arm_loses_what_its_sessions_cost():
    """I141, the reward cannot see the bill: impossible. Raw and cost-adjusted rewards stand side by side; the price of
    a dollar is the policy's.
    """
    rows = [row("a", 0.7, n=50, cost=100_000_000, costed=50), row("b", 0.6, n=50, cost=25_000_000, costed=50)]
    raw, adjusted = read(rows), read(rows, replace(POLICY, cost_weight=0.1))
    assert raw.arms["a"].mean > raw.arms["b"].mean
    assert adjusted.arms["a"].mean < adjusted.arms["b"].mean
    assert [each.mean for each in adjusted.arms["a"].evidence] == [pytest.approx(0.7)]


def test_an_unknown_cost_is_taken_for_a_usual_one_and_never_for_nothing():
    known = [row("a", 0.7, n=50, cost=100_000_000, costed=50)]
    policy = replace(POLICY, cost_weight=0.1)
    half = [row("a", 0.7, n=25, cost=50_000_000, costed=25), row("a", 0.7, n=25, source="journal")]
    same = [
        row("a", 0.7, n=25, cost=50_000_000, costed=25),
        row("a", 0.7, n=25, source="journal", cost=50_000_000, costed=25),
    ]
    assert read(half, policy).alpha == pytest.approx(read(same, policy).alpha)
    stranger = read([*known, row("b", 0.7, n=50)], policy)
    assert stranger.arms["b"].mean == pytest.approx(stranger.arms["a"].mean)


def test_without_any_known_cost_a_price_changes_no_bit():
    rows = [row("a", 0.7, n=5)]
    assert read(rows).alpha.tobytes() == read(rows, replace(POLICY, cost_weight=0.5)).alpha.tobytes()


# --- baselines -------------------------------------------------------------------------------------------------------


def categories(**means):
    return [row(name, mean, n=40, age=age) for name, mean in means.items() for age in range(1, 15)]


def taken_from(rows):
    return baseline(rows, POLICY, TODAY)


def test_a_lesson_is_not_blamed_for_the_categories_it_was_used_in():
    """I112: category means from .316 to .567 leaked into the credit of lessons."""
    held = taken_from(categories(strategic=0.567, content=0.316))
    policy = replace(POLICY, baseline=held.offsets)
    in_content, in_strategic = row("a", 0.316, n=60, context="content"), row("b", 0.567, n=60, context="strategic")
    posterior = read([in_content, in_strategic], policy)
    assert posterior.arms["a"].mean == pytest.approx(posterior.arms["b"].mean, abs=0.005)
    assert posterior.arms["a"].mean == pytest.approx(held.mean, abs=0.02)


@given(st.permutations(range(10)))
def test_a_baseline_knows_no_order(order):
    rows = categories(strategic=0.567, content=0.316)
    parts = [rows[i::10] for i in order]
    assert taken_from([each for part in parts for each in part]) == taken_from(rows)


def test_a_category_with_few_rewards_has_no_baseline_of_its_own():
    held = taken_from([*categories(code=0.6), row("new", 0.1, n=9)])
    assert set(held.offsets) == {"code"}


def test_what_happens_today_moves_no_baseline():
    rows = categories(code=0.6, content=0.3)
    assert taken_from([*rows, row("code", 0.0, n=100, age=0)]) == taken_from(rows)


def test_an_arm_that_is_better_stays_better_by_as_much():
    """I71: normalising along the arm's own axis erased the signal; +.2 is to stay apart by more than .1."""
    held = taken_from(categories(code=0.6, content=0.3))
    rng = np.random.default_rng(5)
    rows = []
    for arm, lift in (("a", 0.2), ("b", 0.0)):
        for context, mean in (("code", 0.5), ("content", 0.2)):
            values = np.clip(rng.normal(mean + lift, 0.1, 150), 0, 1)
            rows += [
                row(arm, float(value), context=context, age=int(age))
                for value, age in zip(values, rng.integers(0, 30, 150), strict=True)
            ]
    posterior = read(rows, replace(POLICY, baseline=held.offsets))
    assert posterior.arms["a"].mean - posterior.arms["b"].mean > 0.1
