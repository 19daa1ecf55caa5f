"""An arm's mean by judge and people together: unbiased whatever the judge, narrower where it is worth something."""

import numpy as np
import pytest

from grading.review.agreement import JudgeHumanPair
from grading.review.ppi import FEWEST, GradeSums, arm_mean


def sums(values):
    return GradeSums(n=len(values), s=float(np.sum(values)), q=float(np.sum(np.square(values))))


def pairs(judge, human, probability=0.2):
    both = zip(judge, human, strict=True)
    return [JudgeHumanPair(judge=float(f), human=float(y), probability=probability) for f, y in both]


def arm(dice, n, others, *, bias=0.0, slope=1.0, noise=0.07, mean=0.6):
    """Pairs of an arm, and the judge's grades of its other sessions."""
    quality = dice.beta(6 * mean, 6 * (1 - mean), n + others)
    judge = np.clip(bias + slope * quality + dice.normal(0, noise, n + others), 0, 1)
    return pairs(judge[:n], quality[:n]), sums(judge[n:])


def test_the_arithmetic():
    """λ = cov/var/(1 + 8/8); θ = λ·mean(f̃) + mean(y − λ·f); the variance as in the docstring, n − 2 for n."""
    judge, human = [0.2, 0.4, 0.6, 0.8] * 2, [0.3, 0.4, 0.5, 0.6] * 2
    found = arm_mean(pairs(judge, human), sums([0.5, 0.7] * 4))
    assert found.weight == pytest.approx(0.5 / 2)
    assert found.mean.mean == pytest.approx(0.45 + 0.25 * (0.6 - 0.5))
    # y − λ·f = .25, .3, .35, .4: variance .003125·8/6/8 ; λ²·var(f̃)/N = .0625·(.08/7)/8; t(6, .95) = 1.9432
    half = 1.9432 * np.sqrt(0.003125 / 6 + 0.0625 * 0.08 / 7 / 8)
    assert (found.mean.low, found.mean.high) == pytest.approx((0.475 - half, 0.475 + half), abs=1e-4)


@pytest.mark.parametrize("n", [FEWEST, 12, 30])
@pytest.mark.parametrize("judge", [{}, {"bias": 0.25, "slope": 0.5}, {"noise": 0.3}, {"bias": 0.2}])
def test_nine_in_ten_intervals_hold_the_mean(n, judge):
    dice, truth = np.random.default_rng(n), 0.6
    found = [arm_mean(*arm(dice, n, 150, **judge)).mean for _ in range(1500)]
    assert np.mean([each.low <= truth <= each.high for each in found]) == pytest.approx(0.9, abs=0.03)
    assert np.mean([each.mean for each in found]) == pytest.approx(truth, abs=0.005)


def test_a_good_judge_makes_it_narrower_than_people_alone_and_a_useless_one_no_wider():
    dice = np.random.default_rng(1)

    def width(**judge):
        found = [arm_mean(*arm(dice, 20, 300, **judge)).mean for _ in range(300)]
        return float(np.mean([each.high - each.low for each in found]))

    alone = width(slope=0.0, noise=0.0, bias=0.5)
    assert width() < 0.6 * alone
    assert width(slope=0.0, noise=0.3, bias=0.5) < 1.1 * alone


def test_a_judge_that_says_one_thing_of_all_weighs_nothing():
    human = [0.1, 0.9] * 4
    found = arm_mean(pairs([0.7] * 8, human), sums([0.7] * 50))
    assert (found.weight, found.mean.mean) == (0.0, pytest.approx(0.5))


def test_without_other_sessions_it_is_the_peoples_mean():
    judge, human = np.linspace(0.1, 0.9, 9), np.linspace(0.2, 0.6, 9)
    found = arm_mean(pairs(judge, human), GradeSums())
    assert (found.weight, found.mean.mean) == (0.0, pytest.approx(0.4))


def test_sessions_that_were_drawn_with_unlike_chances_weigh_by_their_inverse():
    often, seldom = pairs([0.5] * 8, [0.2] * 8, 0.4), pairs([0.5] * 8, [0.8] * 8, 0.1)
    assert arm_mean(often + seldom, GradeSums()).mean.mean == pytest.approx((0.2 + 4 * 0.8) / 5)


def test_too_few_pairs_say_nothing_and_how_many_lack():
    found = arm_mean(pairs([0.5] * 3, [0.4] * 3), sums([0.5] * 40))
    assert (found.mean, found.pairs, found.missing, found.alone) == (None, 3, FEWEST - 3, 40)
