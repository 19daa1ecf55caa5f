"""What moves, in words: the same sentence wherever an arm is told before and after."""

import pytest

from bandit.core.moves import ArmMove
from grading.screens.charts import posteriors
from grading.screens.moves import describe_moves, words

pytestmark = pytest.mark.pure


def move(
    arm: str = "code",
    means: tuple[float, float] = (0.583, 0.603),
    shares: tuple[float, float] = (15.2, 23.8),
    *,
    touched: bool = False,
) -> ArmMove:
    return ArmMove(
        bandit="category",
        arm=arm,
        mean_before=means[0],
        mean_after=means[1],
        share_before=shares[0],
        share_after=shares[1],
        touched=touched,
    )


STILL, EVEN = (0.5, 0.5), (20.0, 20.0)


@pytest.mark.parametrize(
    ("arm", "shares", "said"),
    [
        (move(), True, "code from .583 to .603, 15 to 24 of 100"),
        (move(), False, "code from .583 to .603"),
        (move(shares=EVEN), True, "code from .583 to .603"),
        (move(means=STILL), True, "code stays at .500, 15 to 24 of 100"),
        (move(means=STILL), False, "code stays at .500"),
        (move(means=STILL, shares=EVEN), True, "code stays at .500"),
    ],
)
def test_an_arm_is_told_by_its_mean_and_by_its_share_where_that_moves(arm, shares, said):
    assert words(arm, shares=shares) == said


def test_an_arm_goes_by_its_title():
    assert words(move(shares=EVEN), title="The code") == "The code from .583 to .603"
    assert describe_moves([move(shares=EVEN)], titles={"code": "The code"}) == "The code from .583 to .603"


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ([], "no arm changes visibly"),
        ([move(means=STILL, shares=EVEN, touched=True)], "no arm changes visibly"),
        ([move(shares=EVEN), move("news")], "code from .583 to .603; 1 more arm changes"),
        ([move(shares=EVEN), move("news"), move("infra")], "code from .583 to .603; 2 more arms change"),
        # The first may not move at all, in an order that is not by what is shown.
        ([move(means=STILL, shares=EVEN), move("news", shares=EVEN)], "news from .583 to .603"),
        (
            [move(means=STILL, shares=EVEN, touched=True), move("news"), move("infra", means=STILL, shares=EVEN)],
            "code stays at .500; 1 more arm changes",
        ),
        (
            [move(shares=EVEN, touched=True), move("news", shares=EVEN, touched=True)],
            "code from .583 to .603; news from .583 to .603",
        ),
    ],
)
def test_the_touched_or_the_most_moved_are_told_and_the_others_counted(arms, said):
    assert describe_moves(arms) == said


def test_without_shares_an_arm_whose_share_alone_moves_counts_for_nothing():
    assert describe_moves([move(means=STILL)], shares=False) == "no arm changes visibly"
    assert describe_moves([move(), move("news", means=STILL)], shares=False) == "code from .583 to .603"


def test_the_chart_says_what_it_draws():
    assert 'aria-label="code: mean .583 before, .603 after"' in posteriors.move(move())
