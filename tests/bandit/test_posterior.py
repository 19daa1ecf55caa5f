"""Reading: decay by time, a prior that is the arm's own, and the same bits from the same sums."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv

from bandit.core.policy import Policy
from bandit.core.posterior import Outlook, chances, fold, outlook
from bandit.core.table import RewardRow

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
WEIGHTS = {"judge": 1.0, "human": 1.0, "journal": 0.3}
POLICY = Policy(weights=WEIGHTS, evidence_scale=6.0)


def row(arm, value, *, age=0, n=1, source="judge", spread=0.0):
    """`n` rewards around `value`, half of them `spread` above it and half below."""
    q = n * round((value**2 + spread**2) * 1e12)
    return RewardRow(arm=arm, source=source, day=TODAY - timedelta(days=age), n=n, s=n * round(value * 1e6), q=q)


def read(rows, *, arms=("a", "b"), policy=POLICY, today=TODAY):
    return fold(rows, arms=arms, policy=policy, today=today)


def bits(posterior, arm):
    i = posterior.names.index(arm)
    return posterior.alpha[i].tobytes() + posterior.beta[i].tobytes()


def test_without_evidence_every_arm_is_the_prior():
    arm = read([]).arms["a"]
    assert (arm.alpha, arm.beta, arm.mean) == (6.0, 6.0, 0.5)
    assert (arm.low, arm.high) == (betaincinv(6, 6, 0.05), betaincinv(6, 6, 0.95))
    assert arm.evidence == ()


def test_the_formula_by_hand():
    """One reward of .8 today and one of .5 a half-life ago: e = 6, κ = 12, H = 21, H_long = 180."""
    posterior = read([row("a", 0.8), row("a", 0.5, age=21)])
    old = 2 ** (-21 / 180)
    mean = (12 / 2 + 6 * old * 0.5) / (12 + 6 * old)
    centre = (12 * mean + 6 * (0.8 + old * 0.5)) / (12 + 6 * (1 + old))
    arm = posterior.arms["a"]
    assert arm.alpha == pytest.approx(12 * centre + 6 * (0.8 + 0.5 * 0.5))
    assert arm.beta == pytest.approx(12 * (1 - centre) + 6 * (0.2 + 0.5 * 0.5))
    assert arm.long_run_mean == pytest.approx(centre)
    assert posterior.mean == pytest.approx(mean)


def test_a_graded_reward_counts_by_its_value_not_as_a_bit():
    """I69: with a success for every reward above a line, everything works and nothing is explored."""
    arm = read([row("a", 0.3, n=100, spread=0.1)]).arms["a"]
    assert arm.mean == pytest.approx(0.3, abs=0.01)


def test_a_source_counts_by_its_weight_and_an_unknown_one_not_at_all():
    journal = read([row("a", 0.8, source="journal")]).arms["a"]
    assert journal.evidence[0].pseudo == pytest.approx(6 * 0.3)
    assert bits(read([row("a", 0.1, source="floor", n=50)]), "a") == bits(read([]), "a")


def test_evidence_by_source_shows_raw_and_decayed_counts():
    records = read([row("a", 0.8, n=4, age=21), row("a", 0.2, source="human")]).arms["a"].evidence
    assert [(r.source, r.n, r.mean) for r in records] == [("human", 1, 0.2), ("judge", 4, 0.8)]
    assert [r.pseudo for r in records] == pytest.approx([6.0, 12.0])


def test_later_days_are_not_seen_yet():
    assert bits(read([row("a", 0.9, age=-1)]), "a") == bits(read([]), "a")


def test_very_old_days_are_left_out():
    assert bits(read([row("a", 0.9, age=1801)]), "a") == bits(read([]), "a")


def test_updating_one_arm_leaves_the_others_bit_identical():
    """I73: 4,029 updates elsewhere had erased an arm with 261 selections."""
    history = [row("a", 0.7, n=40, age=3, spread=0.1), row("b", 0.4, n=30, age=2, spread=0.2)]
    policy = Policy(weights=WEIGHTS)
    before = read(history, policy=policy)
    after = read([*history, row("a", 0.1, n=4290), row("a", 0.9, n=7, source="human")], policy=policy)
    assert bits(before, "b") == bits(after, "b")
    assert bits(before, "a") != bits(after, "a")


def test_sixty_idle_days_move_a_weak_arm_by_less_than_a_hundredth():
    """I74: a drought pulled an arm at .28 up to the bandit's .5."""
    history = [row("weak", 0.28, n=2, age=age, spread=0.15) for age in range(60)]
    others = [row("strong", 0.55, n=20, age=age, spread=0.15) for age in range(60)]
    arms = ("weak", "strong")
    now = read(history + others, arms=arms).arms["weak"].mean
    later = TODAY + timedelta(days=60)
    busy = [
        RewardRow(arm="strong", source="judge", day=TODAY + timedelta(days=i), n=20, s=11_000_000, q=6_500_000_000_000)
        for i in range(60)
    ]
    then = read(history + others + busy, arms=arms, today=later).arms["weak"].mean
    assert abs(then - now) < 0.01
    assert now == pytest.approx(0.28, abs=0.01)


def test_a_drought_widens_the_interval():
    history = [row("a", 0.28, n=40, spread=0.15)]
    fresh = read(history).arms["a"]
    stale = read(history, today=TODAY + timedelta(days=90)).arms["a"]
    assert stale.high - stale.low > fresh.high - fresh.low


rewards = st.builds(
    RewardRow,
    arm=st.sampled_from(["a", "b"]),
    source=st.sampled_from(["judge", "human", "journal"]),
    day=st.integers(0, 40).map(lambda age: TODAY - timedelta(days=age)),
    n=st.just(1),
    s=st.integers(0, 10**6),
    q=st.integers(0, 10**12),
)


@given(rows=st.lists(rewards, max_size=30), data=st.data())
def test_order_splitting_and_undone_rows_change_no_bit(rows, data):
    """L5: only the sums matter."""
    shuffled = data.draw(st.permutations(rows))
    undone = data.draw(st.lists(rewards, max_size=3))
    back = [RewardRow(arm=r.arm, source=r.source, day=r.day, n=-1, s=-r.s, q=-r.q) for r in undone]
    policy = Policy(weights=WEIGHTS)
    one, other = read(rows, policy=policy), read([*undone, *shuffled, *back], policy=policy)
    assert one.alpha.tobytes() == other.alpha.tobytes()
    assert one.beta.tobytes() == other.beta.tobytes()
    assert one.version == other.version


@pytest.mark.parametrize(("kappa", "expected"), [(2, 3), (5, 6), (20, 8)])
def test_the_evidence_scale_finds_the_spread_of_the_grades(kappa, expected):
    """A Beta of strength κ has σ² = μ(1−μ)/(κ+1): a grade is worth κ + 1 coins, clipped at 8."""
    dice = np.random.default_rng(7)
    grades = np.round(dice.beta(0.6 * kappa, 0.4 * kappa, 3000) * 1e6).astype(int)
    rows = [
        RewardRow(arm="a", source="judge", day=TODAY - timedelta(days=1), n=1, s=int(g), q=int(g) ** 2) for g in grades
    ]
    assert read(rows, policy=Policy(weights=WEIGHTS)).evidence_scale == pytest.approx(expected, rel=0.07)


def test_the_evidence_scale_starts_at_one_and_stays_in_its_range():
    free = Policy(weights=WEIGHTS)
    assert read([], policy=free).evidence_scale == 1.0
    assert read([row("a", 0.5, n=500, age=1)], policy=free).evidence_scale == 8.0
    assert read([row("a", 0.0, n=50, age=1)], policy=free).evidence_scale == 1.0
    assert read([row("a", 0.5, n=500, age=1, source="journal")], policy=free).evidence_scale == 1.0


def test_two_hundredths_of_real_difference_are_not_flattened():
    """I71: scoring within each arm made every arm look alike."""
    dice = np.random.default_rng(3)
    rows = []
    for arm, mean in (("a", 0.4), ("b", 0.6)):
        micros = np.round(dice.beta(6 * mean, 6 * (1 - mean), 300) * 1e6).astype(int)
        rows += [
            RewardRow(arm=arm, source="judge", day=TODAY - timedelta(days=i % 20), n=1, s=int(m), q=int(m) ** 2)
            for i, m in enumerate(micros)
        ]
    arms = read(rows, policy=Policy(weights=WEIGHTS)).arms
    assert arms["b"].mean - arms["a"].mean > 0.1


def test_ninety_percent_intervals_cover_at_least_eighty_eight():
    """400 arms whose true means spread around .5, each with 5 to 60 graded sessions of Beta quality, κ = 6."""
    dice = np.random.default_rng(11)
    truth = dice.beta(6, 6, 400)
    rows = []
    for i, mean in enumerate(truth):
        for age in range(dice.integers(5, 61)):
            micro = round(float(dice.beta(6 * mean, 6 * (1 - mean))) * 1e6)
            rows.append(
                RewardRow(
                    arm=f"{i:03d}", source="judge", day=TODAY - timedelta(days=age // 3), n=1, s=micro, q=micro**2
                )
            )
    posterior = read(rows, arms=[f"{i:03d}" for i in range(400)], policy=Policy(weights=WEIGHTS))
    inside = [arm.low <= mean <= arm.high for arm, mean in zip(posterior.arms.values(), truth, strict=True)]
    assert np.mean(inside) >= 0.88


def test_an_arm_is_told_with_all_that_is_believed_of_it():
    posterior = read([row("a", 0.8, n=3)])
    arm = posterior.arms["a"]
    assert (arm.arm, posterior.arms["b"].arm) == ("a", "b")
    assert (arm.alpha, arm.beta) == (posterior.alpha[0], posterior.beta[0])
    assert arm.long_run_mean == posterior.long_run_mean[0]
    assert posterior.arms["b"].evidence == ()
    assert (posterior.names, posterior.day, posterior.policy) == (("a", "b"), TODAY, POLICY)


def test_other_numbers_have_another_name():
    rows = [row("a", 0.8)]
    versions = [
        read(rows).version,
        read([row("a", 0.81)]).version,
        read([*rows, row("b", 0.5)]).version,
        read(rows, arms=("a", "c")).version,
        read(rows, today=TODAY + timedelta(days=1)).version,
        read(rows, policy=replace(POLICY, version="2")).version,
        read(rows, policy=replace(POLICY, floor=0.02)).version,
    ]
    assert len(set(versions)) == len(versions)
    assert {len(version) for version in versions} == {16}
    assert read(rows).version == read(rows, arms=("b", "a", "a")).version


def test_nobody_is_the_best_of_none():
    assert read([]).chance_of_best([]) == {}


def test_what_would_be_chosen_follows_from_what_is_believed():
    posterior = read([row("a", 0.8, n=3), row("b", 0.5, n=3)], arms=("a", "b", "c"))
    seen = outlook(posterior, ["b", "a"])
    best = posterior.chance_of_best(["a", "b"])
    assert list(seen.chances) == ["a", "b"]
    assert seen.chances["a"] == pytest.approx(0.01 + 0.98 * best["a"])
    assert (seen.posterior, seen.arms) == (posterior, posterior.arms)
    assert seen.share_of_next_100("a") == 100 * seen.chances["a"]
    assert seen.share_of_next_100("c") == 0.0
    assert seen.share_of_next_100("a") == 100 * seen.chances["a"]
    assert (seen.share_of_next_100("c"), seen.share_of_next_100("nobody")) == (0.0, 0.0)


def test_whole_shares_of_the_next_hundred_are_a_hundred_together():
    posterior = read([row("a", 0.8, n=3), row("b", 0.5, n=3)])
    seen = Outlook(posterior=posterior, chances={"a": 0.336, "b": 0.337, "c": 0.323, "d": 0.004})
    # 33.6 + 33.7 + 32.3 = 99.6: 33 + 33 + 32 = 98, and the two largest remainders make it 100.
    assert [seen.next_100(name) for name in "abcd"] == [34, 34, 32, pytest.approx(0.4)]
    equal = Outlook(posterior=posterior, chances=dict.fromkeys("abcdefgh", 0.125))
    assert sum(equal.next_100(name) for name in "abcdefgh") == 100
    assert equal.next_100("nobody") == 0


def test_a_factor_moves_a_chance_before_the_floor_does():
    floored, free = replace(POLICY, floor=0.1), replace(POLICY, floor=0.0)
    assert chances({}, floored) == {}
    assert chances({"b": 0.75, "a": 0.25}, floored) == pytest.approx({"b": 0.7, "a": 0.3})
    assert chances({"b": 0.75, "a": 0.25}, free, {"a": 3.0}) == pytest.approx({"b": 0.5, "a": 0.5})
    assert chances({"b": 0.5, "a": 0.5}, free, {"a": 3.0}) == pytest.approx({"b": 0.25, "a": 0.75})


def test_exploration_is_shared_by_all_arms_there_are():
    policy = replace(POLICY, exploration=0.2)
    assert chances({"b": 1.0, "a": 0.0}, policy) == pytest.approx({"b": 0.9, "a": 0.1})
    some = dict.fromkeys("abcdefghij", 0.0) | {"a": 1.0}
    assert chances(some, policy)["a"] == pytest.approx(0.82)
    assert min(chances(some, policy).values()) == pytest.approx(0.02)


def test_a_sharper_policy_tries_less_of_what_is_less_likely_the_best():
    two_draws_agree = {"a": 0.9**2 / (0.9**2 + 0.1**2), "b": 0.1**2 / (0.9**2 + 0.1**2)}
    sharp = replace(POLICY, exploration=0.0, sharpness=2.0)
    assert chances({"a": 0.9, "b": 0.1}, sharp) == pytest.approx(two_draws_agree)


def test_a_row_of_an_unknown_arm_is_refused():
    with pytest.raises(KeyError):
        read([row("z", 0.5)])
