"""Agents that pick among decisions, and agents that stand apart: what is chance, and what is told."""

import random

import numpy as np
import pytest

from grading.monitoring.apart import AgentReward, apart
from grading.monitoring.picking import ONE_IN, DrawnDecision, picking

pytestmark = pytest.mark.pure

ARMS = ("code", "infra", "news", "triage")


def decided(dice, uses, n):
    """Decisions by chances that differ from one to the next; `uses` says whether a session comes of an arm's."""
    made = []
    for _ in range(n):
        odds = dice.dirichlet(np.ones(len(ARMS)))
        arm = ARMS[dice.choice(len(ARMS), p=odds)]
        made.append(DrawnDecision(arm=arm, odds=dict(zip(ARMS, odds.tolist(), strict=True)), used=uses(arm)))
    return made


def is_told(decisions):
    found = picking(decisions)
    return found is not None and found.money >= ONE_IN


def test_whoever_drops_decisions_whatever_their_arm_is_seldom_named():
    """Forty agents' years, looked at each week: 1 in 1,000 a window at most, and the windows of a year are thirteen."""
    dice = np.random.default_rng(3)
    named = 0
    for _ in range(40):
        year = decided(dice, lambda _arm: bool(dice.random() < 0.6), 4 * 365)
        named += any(is_told(year[at - 112 : at]) for at in range(112, len(year), 28))
    assert named <= 1


def test_money_never_grows_by_expectation():
    """Two arms, all outcomes: the mean of what the bet becomes is 1."""
    odds = {"code": 0.3, "infra": 0.7}
    total = 0.0
    for number in range(2**6):
        arms = ["code" if number >> at & 1 else "infra" for at in range(6)]
        drawn = [DrawnDecision(arm=arm, odds=odds, used=at % 2 == 0) for at, arm in enumerate(arms)]
        total += picking(drawn).money * np.prod([odds[arm] for arm in arms])
    assert total == pytest.approx(1)


@pytest.mark.parametrize("number", range(5))
def test_who_drops_one_arm_is_named_with_it(number):
    dice = np.random.default_rng(number)
    made = decided(dice, lambda arm: arm != "news", 60)
    found = picking(made)
    assert is_told(made)
    assert (found.arm, found.kept) == ("news", False)
    assert found.seen == found.n > 2 * found.expected


def test_who_keeps_the_least_likely_arm_alone_is_named_after_its_fifth():
    odds = {"code": 0.96, "infra": 0.04}
    kept = [DrawnDecision(arm="infra", odds=odds, used=True)] * 5
    dropped = [DrawnDecision(arm="code", odds=odds, used=False)] * 120
    assert is_told(kept + dropped)
    found = picking(kept + dropped)
    assert (found.arm, found.kept, found.seen) == ("infra", True, 5)


def test_what_was_no_draw_says_nothing():
    assert picking([]) is None
    assert picking([DrawnDecision(arm="code", odds={"code": 1.0}, used=False)] * 50) is None


# --- apart


def lived(seed, *, agents=3, each=30, levels=0.1, own=0.05, **lies):
    """Rewards of agents that differ by so much in general, and so much by arm. A lie: what an agent gives one arm."""
    chance = random.Random(seed)
    made = []
    for name in (f"agent-{number}" for number in range(agents)):
        level = chance.gauss(0, levels)
        for arm in ARMS:
            mean = 0.5 + level + chance.gauss(0, own)
            made += [AgentReward(key=0, arm=arm, agent=name, value=chance.gauss(mean, 0.2)) for _ in range(each)]
    for arm, (count, value) in lies.items():
        made += [AgentReward(key=key, arm=arm, agent="eve", value=value) for key in range(count)]
    return made


def test_agents_that_differ_as_agents_do_are_seldom_named():
    """Windows of two weeks: of 300, in which each agent has a level of its own and moods by arm, five at most."""
    assert sum(bool(apart(lived(seed))) for seed in range(300)) <= 5


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_who_has_one_arm_look_otherwise_is_named_within_ten_sessions(value):
    for seed in range(20):
        (found,) = apart(lived(seed, levels=0.05, news=(8, value)))
        assert (found.arm, found.agent, len(found.own)) == ("news", "eve", 8)
        assert found.mean == value


def test_a_better_model_is_better_everywhere_and_is_not_named():
    rewards = lived(1, levels=0, own=0)
    rewards += [AgentReward(key=0, arm=arm, agent="best", value=0.85) for arm in ARMS for _ in range(20)]
    assert apart(rewards) == []


def test_one_agent_has_nobody_to_be_compared_with():
    assert apart(lived(1, agents=1)) == []
    assert apart([]) == []
