"""Each rule of advice, on both sides of its threshold: the sentence says what is seen, the numbers, what to do."""

from datetime import date, timedelta

import pytest

from bandit.core.advice import AdviceKind, ArmFacts, BanditFacts, advise, jump
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import MICRO, RewardRow

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
SOUND = {
    "rewards": 60,
    "mean": 0.5,
    "observed_mean": 0.5,
    "evidence": 100.0,
    "jump": 0.02,
    "chance": 0.3,
    "decisions": 60,
}


def arm(name="code", **numbers):
    return ArmFacts(name=name, **{**SOUND, **numbers})


def kinds(*arms, **about):
    return [advice.kind for advice in advise(BanditFacts(arms=arms, **about))]


def seen(*arms, **about):
    (advice,) = advise(BanditFacts(arms=arms, **about))
    return advice.observation


def spread(*means):
    return [arm(f"arm-{place}", mean=mean, observed_mean=mean) for place, mean in enumerate(means)]


def test_nothing_is_said_of_sound_numbers():
    assert kinds(*spread(0.4, 0.5, 0.6), decisions=100, pairs=20) == []
    assert kinds() == []


def test_arms_within_a_hair_of_each_other_are_flat_i69():
    """A9: four of five within .02; I71's means were .482 to .498."""
    assert kinds(*spread(0.482, 0.49, 0.495, 0.498, 0.6)) == [AdviceKind.FLAT]
    said = seen(*spread(0.482, 0.49, 0.495, 0.498, 0.6))
    assert said.startswith("4 of 5 arms with 50 rewards and more lie within .02 of each other, from .482 to .498")
    assert kinds(*spread(0.482, 0.49, 0.495, 0.55, 0.6)) == []
    assert kinds(*spread(0.5, 0.51)) == [], "two arms are alike by chance"
    young = [arm(f"arm-{place}", mean=0.5, rewards=49) for place in range(5)]
    assert kinds(*young) == [], "few rewards say nothing of the means"


def test_an_arm_that_no_reward_moves_is_frozen_i76():
    assert kinds(arm(jump=0.0019)) == [AdviceKind.FROZEN]
    assert "code by 0.0019 at most" in seen(arm(jump=0.0019))
    assert kinds(arm(jump=0.002)) == []
    assert kinds(arm(jump=0.0001, live=False)) == []


def test_fifteen_thousand_undecayed_rewards_freeze_an_arm_until_something_forgets_i76():
    day = TODAY - timedelta(days=1)
    rows = [
        RewardRow(arm="code", source="judge", day=day, n=15_000, s=8_000 * MICRO, q=5_000 * MICRO**2),
        RewardRow(arm="news", source="judge", day=day, n=5, s=3 * MICRO, q=2 * MICRO**2),
    ]

    def jumps(**numbers):
        policy = Policy(long_run_half_life=1e6, evidence_scale=1.0, weights={"judge": 1.0}, **numbers)
        found = fold(rows, arms=["code", "news"], policy=policy, today=TODAY)
        return {name: jump(arm, found.evidence_scale) for name, arm in found.arms.items()}

    assert jumps(half_life=1e6)["code"] < 0.002 < jumps(half_life=1e6)["news"]
    assert jumps(half_life=0.1)["code"] > 0.002
    assert jumps(half_life=1e6, evidence_cap=100.0)["code"] > 0.002


def test_a_jump_is_nearly_what_one_reward_does():
    """It leaves out the long-run mean, which an arm with many rewards hardly feels."""
    rows = [RewardRow(arm="code", source="judge", day=TODAY - timedelta(days=3), n=90, s=60 * MICRO, q=50 * MICRO**2)]
    policy = Policy(weights={"judge": 1.0, "journal": 0.3})
    before = fold(rows, arms=["code", "news"], policy=policy, today=TODAY)
    bad = RewardRow(arm="code", source="judge", day=TODAY, n=1, s=0, q=0)
    after = fold([*rows, bad], arms=["code", "news"], policy=policy, today=TODAY)
    moved = before.arms["code"].mean - after.arms["code"].mean
    assert jump(before.arms["code"], before.evidence_scale) == pytest.approx(moved, rel=0.15)
    assert after.arms["news"] == before.arms["news"]


def test_decisions_that_never_come_back_are_warned_of_then_worried_about_a13():
    assert kinds(arm(unfinished=5)) == []
    assert kinds(arm(unfinished=6)) == [AdviceKind.UNFINISHED]
    assert "a lot to be still running" in seen(arm(unfinished=10))
    assert "chosen 11 times since" in seen(arm(unfinished=11))
    assert "choosing it teaches nothing" in seen(arm(unfinished=11))


def test_ten_decisions_without_a_reward_are_no_learning_a6():
    assert kinds(arm(decisions=10, rewards=0)) == [AdviceKind.NOT_LEARNING]
    assert "code chosen 10 times, and not one reward came of it" in seen(arm(decisions=10, rewards=0))
    assert kinds(arm(decisions=9, rewards=0)) == []
    assert kinds(arm(decisions=10, rewards=1)) == []


def test_evidence_that_is_mostly_fallback_is_said():
    assert kinds(arm(evidence=10.0, fallback=3.1)) == [AdviceKind.FALLBACK]
    assert "code 31 % of the evidence" in seen(arm(evidence=10.0, fallback=3.1))
    assert kinds(arm(evidence=10.0, fallback=3.0)) == []
    assert kinds(arm(evidence=1.0, fallback=1.0, rewards=4)) == []


def test_optimism_is_said_and_caution_is_not_a8_i75():
    assert kinds(arm(mean=0.66, observed_mean=0.5)) == [AdviceKind.OPTIMISTIC]
    assert "code .660 against .500" in seen(arm(mean=0.66, observed_mean=0.5))
    assert kinds(arm(mean=0.34, observed_mean=0.5)) == [], "a rightly sceptical arm is left alone"
    assert kinds(arm(mean=0.66, observed_mean=0.5, rewards=49)) == []
    assert kinds(arm(mean=0.66, observed_mean=None)) == []


def test_an_arm_without_work_is_supply_bound_i97():
    arms = [arm("docs", chance=0.6, unsupplied=18), arm("code", chance=0.4)]
    assert kinds(*arms, decisions=20) == [AdviceKind.SUPPLY]
    assert "docs 18 of 20" in seen(*arms, decisions=20)
    assert kinds(arm("docs", chance=0.6), arm("code"), decisions=20) == []
    assert kinds(arm("docs", chance=0.1, unsupplied=20), arm("code"), decisions=20) == [], "it would not be chosen"


def test_machines_that_nobody_checked_are_uncalibrated():
    assert kinds(arm(), pairs=19) == [AdviceKind.UNCALIBRATED]
    assert "graded 1 session of the random slice" in seen(arm(), pairs=1)
    assert kinds(arm(), pairs=20) == []
    assert kinds(arm(), pairs=None) == []
    assert kinds(arm(rewards=0, decisions=0), pairs=0) == [], "there is nothing to check yet"


def test_many_arms_are_named_three_by_three():
    said = seen(*(arm(f"arm-{place}", unfinished=6, mean=place / 5, observed_mean=place / 5) for place in range(5)))
    assert said.count("chosen 6 times") == 3
    assert "and 2 more since" in said
