"""What may be chosen at all, by one rule after the other; no test here needs a database."""

import datetime as dt

import pytest

from bandit.core.table import RewardRow
from bandit.eligibility import Circumstances, DayUse, consumption_feedback, is_on_probation, out_of_use, reason_against
from bandit.models import Arm, PolicyVersion

RETIRED = dt.datetime(2026, 3, 1, 9, tzinfo=dt.UTC)
TODAY = dt.date(2026, 3, 31)
VERSION = PolicyVersion(
    consumption_per_agent=2,
    consumption_per_day=4,
    probation_sessions=3,
    probation_per_agent=1,
    probation_per_day=3,
    consumption_boost=1.1,
    consumption_penalty=0.8,
    consumption_window_days=14,
    consumption_min_samples=5,
    weights={"judge": 1.0, "floor": 0.0},
)


def arm(name="code", **fields) -> Arm:
    return Arm(pk=7, name=name, **fields)


def now(**changes) -> Circumstances:
    """`consumption` and `decided` are the agent's own; of all agents with `all_` before."""
    said = {
        name: changes.pop(name) for name in list(changes) if name.removeprefix("all_") in {"consumption", "decided"}
    }
    own = DayUse(**{name: said[name] for name in said if not name.startswith("all_")})
    fleet = DayUse(**{name.removeprefix("all_"): said[name] for name in said if name.startswith("all_")})
    usual = {"supply": None, "context": None, "rewarded": {}, "substitutes": {}}
    return Circumstances(version=VERSION, own=own, fleet=fleet, **{**usual, **changes})


READING, TRIED = {"is_consumption": True}, {"probation": True}
TABLE = [
    # arm, circumstances: why it may not be chosen
    ({}, {}, ""),
    ({"retired_at": RETIRED}, {}, "retired on 2026-03-01"),
    ({"retired_at": RETIRED, "paused": True}, {}, "retired on 2026-03-01"),
    ({"paused": True}, {"supply": {}}, "paused"),
    ({}, {"supply": {"code": 1}}, ""),
    ({}, {"supply": {"code": 0}}, "no work available"),
    ({}, {"supply": {"news": 3}}, "not in the supply given"),
    ({}, {"supply": {}}, "not in the supply given"),
    (READING, {"consumption": 1}, ""),
    (READING, {"consumption": 2}, "2 of 2 consumption sessions used today"),
    (READING, {"consumption": 3}, "3 of 2 consumption sessions used today"),
    (READING, {"consumption": 1, "all_consumption": 3}, ""),
    (READING, {"consumption": 1, "all_consumption": 4}, "4 of 4 consumption sessions of all agents used today"),
    (READING, {"consumption": 2, "all_consumption": 4}, "2 of 2 consumption sessions used today"),
    ({}, {"consumption": 9, "all_consumption": 9}, ""),
    ({}, {"substitutes": {7: "news"}}, "substituted: its last 3 sessions today were run by news"),
    ({}, {"substitutes": {8: "news"}}, ""),
    (TRIED, {}, ""),
    (TRIED, {"decided": {7: 1}}, "on probation: 1 of 1 sessions used today"),
    (TRIED, {"decided": {7: 2}}, "on probation: 2 of 1 sessions used today"),
    (TRIED, {"decided": {8: 2}}, ""),
    (TRIED, {"all_decided": {7: 2}}, ""),
    (TRIED, {"all_decided": {7: 3}}, "on probation: 3 of 3 sessions of all agents used today"),
    (TRIED, {"decided": {7: 1}, "rewarded": {"code": 2}}, "on probation: 1 of 1 sessions used today"),
    (TRIED, {"decided": {7: 1}, "rewarded": {"code": 3}}, ""),
    (TRIED, {"decided": {7: 1}, "rewarded": {"news": 3}}, "on probation: 1 of 1 sessions used today"),
    ({}, {"decided": {7: 1}}, ""),
    (
        TRIED,
        {"context": Arm(name="infra")},
        "on probation, so it is chosen only for low-stakes work, and infra is not low-stakes",
    ),
    (TRIED, {"context": Arm(name="triage", is_low_stakes=True)}, ""),
    (
        TRIED,
        {"context": Arm(name="triage", is_low_stakes=True), "decided": {7: 1}},
        "on probation: 1 of 1 sessions used today",
    ),
    ({}, {"context": Arm(name="infra")}, ""),
]


@pytest.mark.parametrize(("fields", "changes", "reason"), TABLE)
def test_why_an_arm_may_not_be_chosen(fields, changes, reason):
    assert reason_against(arm(**fields), now(**changes)) == reason


@pytest.mark.parametrize(
    ("fields", "rewards", "expected"),
    [(TRIED, 0, True), (TRIED, 2, True), (TRIED, 3, False), (TRIED, 4, False), ({}, 0, False)],
)
def test_a_probation_ends_with_the_rewards_that_the_policy_asks_for(fields, rewards, expected):
    assert is_on_probation(arm(**fields), rewards, VERSION) is expected
    assert now(rewarded={"code": rewards}).is_on_probation(arm(**fields)) is expected


def test_an_arm_without_any_reward_is_on_probation():
    assert now(rewarded={"news": 9}).is_on_probation(arm(**TRIED))


def test_an_arm_in_use_has_no_reason_against_it():
    assert not out_of_use(arm())


def reward(name: str, value: float, *, age: int = 0, n: int = 1, source: str = "judge") -> RewardRow:
    micro = round(value * 1e6)
    return RewardRow(arm=name, source=source, day=TODAY - dt.timedelta(days=age), n=n, s=n * micro, q=n * micro**2)


@pytest.mark.parametrize(
    ("rows", "factor"),
    [
        ([], None),
        ([reward("reading", 0.5)], 1.1),
        ([reward("reading", 0.499999)], None),
        ([reward("reading", 0.9, age=13)], 1.1),
        ([reward("reading", 0.9, age=14)], None),
        ([reward("reading", 0.9, source="floor")], None),
        ([reward("reading", 0.9, source="nobody")], None),
        ([reward("other", 0.9)], None),
        ([reward("reading", 0.1, n=5)], 0.8),
        ([reward("reading", 0.1, n=4)], None),
        ([reward("reading", 0.1, n=3), reward("reading", 0.2, n=2, age=3)], 0.8),
        ([reward("reading", 0.2), reward("reading", 0.8)], 1.1),
        ([reward("reading", 0.8), reward("reading", 0.1, n=9, age=20)], 1.1),
    ],
)
def test_what_reading_has_led_to_lately_moves_its_arms_alone(rows, factor):
    found = consumption_feedback(rows, ["reading", "quiet"], VERSION, TODAY)
    assert {name: each.factor for name, each in found.items()} == ({} if factor is None else {"reading": factor})


def test_the_feedback_says_over_which_window():
    found = consumption_feedback([reward("reading", 0.9, n=2)], ["reading"], VERSION, TODAY)
    assert found["reading"].sentence == "14-day average 0.90 over 2 rewards, at least 0.5: boosted, probability × 1.1"


def test_a_probation_of_one_session_ends_with_the_first_reward():
    one = Circumstances(
        version=PolicyVersion(probation_sessions=1),
        supply=None,
        context=None,
        rewarded={"news": 1},
        own=DayUse(),
        fleet=DayUse(),
        substitutes={},
    )
    assert one.is_on_probation(arm(**TRIED))
    assert not one.is_on_probation(arm("news", **TRIED))
