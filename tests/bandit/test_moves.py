"""What moves between two outlooks: each arm before and after, in one order, told by the digits that pages show."""

from datetime import date

import pytest

from bandit.core.moves import ArmMove, moves
from bandit.core.policy import Policy
from bandit.core.posterior import Outlook, fold, outlook
from bandit.core.table import RewardRow

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
POLICY = Policy(weights={"judge": 1.0}, evidence_scale=6.0)


def seen(means: dict[str, float], choosable: str = "abc") -> Outlook:
    """The outlook after one reward of each arm."""
    rows = [
        RewardRow(arm=arm, source="judge", day=TODAY, n=1, s=round(mean * 1e6), q=round(mean * 1e6) ** 2)
        for arm, mean in means.items()
    ]
    posterior = fold(rows, arms="abc", policy=POLICY, today=TODAY)
    return outlook(posterior, posterior.chance_of_best(choosable))


def move(before: float = 0.5, after: float = 0.5, shares: tuple[float, float] = (20.0, 20.0)) -> ArmMove:
    share_before, share_after = shares
    return ArmMove(
        bandit="category",
        arm="a",
        mean_before=before,
        mean_after=after,
        share_before=share_before,
        share_after=share_after,
    )


def test_each_arm_has_its_mean_and_its_share_of_both_outlooks():
    before, after = seen({"a": 0.5}), seen({"a": 0.9})
    found = {each.arm: each for each in moves("category", before, after)}
    assert set(found) == {"a", "b", "c"}
    for arm, each in found.items():
        assert each.bandit == "category"
        assert (each.mean_before, each.mean_after) == (before.arms[arm].mean, after.arms[arm].mean)
        assert (each.share_before, each.share_after) == (before.next_100(arm), after.next_100(arm))
    assert found["a"].mean_moves > 0
    # It competes with the others, whose means stay: a reward of today moves no mean but its own arm's.
    assert found["b"].mean_moves == 0
    assert found["b"].share_moves < 0


def test_the_touched_come_first_then_the_most_moved_then_by_name():
    before, after = seen({}), seen({"a": 0.6, "b": 0.9})
    assert [each.arm for each in moves("category", before, after)] == ["b", "a", "c"]
    found = moves("category", before, after, touched={"c"})
    assert [(each.arm, each.touched) for each in found] == [("c", True), ("b", False), ("a", False)]
    assert [each.arm for each in moves("category", before, before)] == ["a", "b", "c"]


def test_where_no_mean_moves_the_most_moved_share_comes_first():
    """An arm that cannot be chosen any more: the others are chosen instead."""
    assert [each.arm for each in moves("category", seen({}), seen({}, "ab"))] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (0.5, 0.5004, 0.0),
        # Less than half a thousandth, and yet another digit.
        (0.5004, 0.5006, 0.001),
        (0.583, 0.603, 0.02),
        (0.603, 0.583, -0.02),
    ],
)
def test_a_mean_moves_by_what_its_three_digits_do(before, after, moved):
    assert move(before, after).mean_moves == moved
    assert move(before, after).is_shown == bool(moved)


@pytest.mark.parametrize(("shares", "moved"), [((14.6, 15.4), 0), ((15.4, 15.6), 1), ((24.0, 15.0), -9)])
def test_a_share_moves_by_whole_ones(shares, moved):
    assert move(shares=shares).share_moves == moved
    assert move(shares=shares).is_shown == bool(moved)
