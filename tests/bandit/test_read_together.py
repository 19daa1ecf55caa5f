"""What several policies share in reading the same rows moves no bit of any of them."""

from collections import Counter
from datetime import date, timedelta
from random import Random

import numpy as np
import pytest

from bandit.core import change
from bandit.core.agents import agent_caps
from bandit.core.calibration import FallbackCalibration, KindEstimate
from bandit.core.policy import Policy
from bandit.core.posterior import fold, plain_means
from bandit.core.table import MICRO, RewardRow, RewardRows, distinct, sum_by_key

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
ARMS = ("a", "b", "c")
WEIGHTS = {"judge": 1.0, "human": 1.0, "journal": 0.3, "trajectory": 0.2}
TRAJECTORY = KindEstimate(source="trajectory", shift=0.1, difference=-0.05, pairs={"a": 7})
CALIBRATION = FallbackCalibration(sources=("journal", "trajectory"), kinds=(TRAJECTORY,))
POLICIES = [
    Policy(weights=WEIGHTS, follows_change=True, agent_cap=3, **numbers)
    for numbers in (
        {},
        {"calibration": CALIBRATION, "standings": {"stale": 0.3}},
        {"offsets": {("a", "judge", ""): 0.1, ("b", "journal", ""): -0.2}},
        {"baseline": {"code": 0.05, "news": -0.1}, "half_life": 5.0},
        {"varies_by_day": True, "standings": {"stale": 0.3}},
    )
]


def some_rows(dice: Random) -> list[RewardRow]:
    found = []
    for _ in range(300):
        values = [dice.randint(0, MICRO) for _ in range(dice.randint(1, 6))]
        row = RewardRow(
            arm=dice.choice(ARMS),
            source=dice.choice((*WEIGHTS, "judge")),
            day=TODAY - timedelta(days=dice.choice((0, 1, dice.randrange(300)))),
            n=len(values),
            s=sum(values),
            q=sum(value**2 for value in values),
            context=dice.choice(("code", "news")),
            judge=dice.choice(("one", "another")),
            witness=dice.choice(("claimed", "observed")),
            standing=dice.choice(("", "stale")),
            agent=dice.choice(("alice", "bob")),
        )
        found.append(row)
    return found


def bits(rows, policy):
    read = fold(rows, arms=ARMS, policy=policy, today=TODAY)
    means = plain_means(rows, arms=ARMS, policy=policy, today=TODAY)
    return read.alpha.tobytes(), read.beta.tobytes(), read.evidence, means


@pytest.mark.parametrize("seed", range(6))
def test_rows_read_by_several_policies_say_what_each_says_alone(seed):
    rows = some_rows(Random(seed))
    held = RewardRows.from_rows(rows)
    together = [bits(held, policy) for policy in POLICIES * 2]
    alone = []
    for policy in POLICIES:
        change._detect_changes.cache_clear()
        alone.append(bits(rows, policy))
    assert together == alone * 2


@pytest.mark.parametrize("far", [1, 2**40])
def test_sums_by_keys_are_in_the_keys_order_however_far_apart_these_are(far):
    dice = np.random.default_rng(3)
    keys = dice.integers(-3, 4, (500, 3)) * far
    columns = np.column_stack((dice.integers(-1, 2, 500), dice.integers(0, 10**12, 500)))
    found: dict[tuple[int, ...], list[int]] = {}
    for key, (n, s) in zip(map(tuple, keys.tolist()), columns.tolist(), strict=True):
        total = found.setdefault(key, [0, 0])
        total[0], total[1] = total[0] + n, total[1] + s
    kept, sums = sum_by_key(keys, columns)
    assert [tuple(key) for key in kept.tolist()] == sorted(key for key, (n, _) in found.items() if n)
    assert sums.tolist() == [found[tuple(key)] for key in kept.tolist()]


@pytest.mark.parametrize("values", [[], [7], [3, 1, 3, 2, 1], [-4, 9, -4, 0], [10**15, 3, 10**15, -5]])
def test_distinct_numbers_and_their_places_are_those_that_sorting_gives(values):
    held = np.array(values, dtype=np.int64)
    numbers, places = distinct(held)
    assert (numbers.tolist(), numbers[places].tolist()) == (sorted(set(values)), values)


def test_all_that_caps_may_leave_is_in_order_and_each_row_has_its_own():
    said = [("ann", n, TODAY - timedelta(days=day)) for day in range(1, 5) for n in range(1, 3 + day)]
    said += [("bob", 12, TODAY - timedelta(days=9)), ("", 5, TODAY)]
    rows = RewardRows.from_rows(
        RewardRow(arm="a", source="judge", day=day, n=1, s=n, q=n * n, agent=agent)
        for agent, count, day in said
        for n in range(count)
    )
    caps = agent_caps(rows, 3, TODAY)
    factors, factor = caps.factor_table(rows)
    assert factors.tolist() == sorted(set(factors.tolist()))
    counts = Counter((row.agent, row.day) for row in rows)
    expected = [min(1.0, 3 / counts[row.agent, row.day]) if row.agent else 1.0 for row in rows]
    assert factors[factor].tolist() == caps.factors(rows).tolist() == expected


def test_an_agent_alone_in_an_arm_has_the_higher_cap_until_another_one_works_there():
    def rows(arm, agent, n, age):
        return RewardRow(arm=arm, source="judge", day=TODAY - timedelta(days=age), n=n, s=0, q=0, agent=agent)

    ann, others = rows("a", "ann", 20, 1), rows("b", "bob", 10, 2)
    caps = agent_caps([ann, others], 3, TODAY, alone=10)
    assert caps.factors(RewardRows.from_rows([ann, others])).tolist() == [0.5, 1.0]
    for age, factor in ((0, 0.5), (1, 0.15)):
        caps = agent_caps([ann, others, rows("a", "bob", 1, age)], 3, TODAY, alone=10)
        assert caps.factors(RewardRows.from_rows([ann])).tolist() == [factor]
