"""Agents that pick among decisions, and agents that stand apart: what is chance, and what is told."""

import datetime as dt
import random

import numpy as np
import pytest

from bandit.core.table import MICRO, RewardRow
from grading.monitoring.apart import find_outliers
from grading.monitoring.picking import ONE_IN, DrawnDecision, find_picking

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
    found = find_picking(decisions)
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
        total += find_picking(drawn).money * np.prod([odds[arm] for arm in arms])
    assert total == pytest.approx(1)


@pytest.mark.parametrize("number", range(5))
def test_who_drops_one_arm_is_named_with_it(number):
    dice = np.random.default_rng(number)
    made = decided(dice, lambda arm: arm != "news", 60)
    found = find_picking(made)
    assert is_told(made)
    assert (found.arm, found.is_of_used) == ("news", False)
    assert found.count == found.n > 2 * found.expected


def test_who_keeps_the_least_likely_arm_alone_is_named_after_its_fifth():
    odds = {"code": 0.96, "infra": 0.04}
    kept = [DrawnDecision(arm="infra", odds=odds, used=True)] * 5
    dropped = [DrawnDecision(arm="code", odds=odds, used=False)] * 120
    assert is_told(kept + dropped)
    found = find_picking(kept + dropped)
    assert (found.arm, found.is_of_used, found.count) == ("infra", True, 5)


def test_what_was_no_draw_says_nothing():
    assert find_picking([]) is None
    assert find_picking([DrawnDecision(arm="code", odds={"code": 1.0}, used=False)] * 50) is None


# --- apart

FIRST = dt.date(2026, 3, 1)


def rewarded(arm, agent, value, day=0):
    micro = round(min(max(value, 0), 1) * MICRO)
    return RewardRow(
        arm=arm, source="judge", agent=agent, day=FIRST + dt.timedelta(days=day), n=1, s=micro, q=micro * micro
    )


def honest(seed):
    """Rewards of two to five agents in three to six arms over 28 days, up to 60 of each in an arm. Skills differ by up
    to .1, arms have good and bad days; some agents begin late and some keep to one arm. With the days' variance beside
    that within them.
    """
    chance = random.Random(seed)
    arms = [f"arm-{number}" for number in range(chance.randint(3, 6))]
    spread = chance.choice([0.0, 0.04, 0.08])
    usual = {arm: chance.uniform(0.4, 0.65) for arm in arms}
    mood = {(arm, day): chance.gauss(0, spread) for arm in arms for day in range(28)}
    made = []
    for number in range(chance.randint(2, 5)):
        skill, since = chance.uniform(0, 0.1), chance.choice([0, 0, 20, 27])
        for arm in chance.choice([arms, arms, arms[:1]]):
            for _ in range(chance.choice([2, 4, 8, 14, 30, 60])):
                day = chance.randint(since, 27)
                mean = usual[arm] + skill + mood[arm, day]
                made.append(rewarded(arm, f"agent-{number}", chance.gauss(mean, 0.18), day))
    return made, (spread / 0.18) ** 2


def two_arms(seed, *lies):
    """Two honest agents' 14 rewards of each of two arms, and eve's: how many of which value."""
    chance = random.Random(seed)
    made = [
        rewarded(arm, agent, chance.gauss(mean, 0.18), day)
        for arm, mean in (("code", 0.62), ("news", 0.58))
        for agent in ("alice", "bob")
        for day in range(14)
    ]
    return made + [rewarded(arm, "eve", value, 14) for arm, count, value in lies for _ in range(count)]


def names(rows, day_variance=0.0):
    return {(found.arm, found.agent) for found in find_outliers(rows, day_variance)}


def test_honest_agents_are_not_named():
    """In 80 honest worlds, looked at every other day, nobody is named."""
    told = {}
    for seed in range(80):
        rows, day_variance = honest(seed)
        for day in range(1, 28, 2):
            until = FIRST + dt.timedelta(days=day)
            if found := names([row for row in rows if row.day <= until], day_variance):
                told[seed, day] = found
    assert told == {}


@pytest.mark.parametrize(("count", "value"), [(10, 0.95), (10, 0.1), (40, 0.95)])
def test_who_has_one_arm_look_otherwise_is_named_alone(count, value):
    """On each of ten sites the liar is named, with its arm, and nobody else."""
    for seed in range(10):
        assert names(two_arms(seed, ("news", count, value))) == {("news", "eve")}


def test_what_an_agent_forges_elsewhere_is_no_excuse():
    """Skill explains a twentieth at most, so who lifts another arm as well is named all the same."""
    for seed in range(10):
        assert ("news", "eve") in names(two_arms(seed, ("news", 16, 0.95), ("code", 6, 0.95)))


def test_two_agents_that_forge_together_are_named_and_the_honest_ones_are_not():
    """There are as many of them as of the others; but the others were there before."""
    for seed in range(10):
        rows = two_arms(seed, ("news", 8, 0.95))
        rows += [rewarded("news", "eve-2", 0.95, 14) for _ in range(8)]
        assert names(rows) == {("news", "eve"), ("news", "eve-2")}


def test_the_first_agents_are_compared_with_each_other_and_not_with_later_ones():
    """Two agents forge together until they are named; until then nobody else is."""
    for seed in range(60):
        rows = two_arms(seed)
        for _ in range(8):
            rows += [rewarded("news", agent, 0.95, 14) for agent in ("eve", "eve-2")]
            found = {agent for _arm, agent in names(rows)}
            assert found <= {"eve", "eve-2"}
            if found:
                break


def test_an_agent_in_one_arm_is_named_as_soon_where_others_work_in_many():
    """Of forty sites, nearly all name a forger after eight sessions."""
    named = 0
    for seed in range(40):
        chance = random.Random(seed)
        rows = two_arms(seed, ("news", 8, 0.95))
        rows += [
            rewarded(arm, agent, chance.gauss(0.5, 0.18), day)
            for arm in ("docs", "ops", "triage", "plan")
            for agent in ("alice", "bob")
            for day in range(14)
        ]
        named += names(rows) == {("news", "eve")}
    assert named >= 38


def test_forged_rewards_of_one_day_count_less_where_days_differ():
    """A good day lifts all of its rewards, so they say less."""
    rows = two_arms(0, ("news", 8, 0.95))
    assert names(rows) != set()
    assert names(rows, day_variance=0.5) == set()


def test_two_lucky_sessions_name_nobody():
    """Of an agent's two sessions nothing is said, however good they are."""
    assert names(two_arms(0, ("news", 2, 1.0))) == set()
    assert names(two_arms(0, ("news", 8, 1.0))) != set()


def test_of_two_agents_the_one_with_the_higher_rewards_is_named():
    """Both are equally far from each other; an alarm about each would say the same twice."""
    rows = [row for row in two_arms(0, ("news", 12, 0.95)) if row.agent != "bob"]
    assert names(rows) == {("news", "eve")}


def test_one_agent_has_nobody_to_be_compared_with():
    """Nor do rewards of which nobody knows whose they are."""
    rows = [row for row in two_arms(0) if row.agent == "alice"]
    assert find_outliers([*rows, *(rewarded("news", "", 1.0) for _ in range(20))]) == []
    assert find_outliers([]) == []
