"""Estimates of a policy that did not run, from the log of one that did: by hand, refused, or not told at all."""

import numpy as np
import pytest

from bandit.core.offpolicy import LEAST_EFFECTIVE, DrawLog, compare

pytestmark = pytest.mark.pure


def log(
    *,
    arm=(0, 1),
    chance=(0.5, 0.5),
    reward=(0.2, 0.8),
    target=((0.25, 0.75),) * 2,
    model=((0.5, 0.5),) * 2,
    unrewarded=0,
):
    """Two arms, of which that was drawn with its `chance`."""
    odds = np.array(chance, dtype=float)
    return DrawLog(
        arm=np.array(arm, dtype=np.int64),
        ran=np.where(np.array(arm)[:, None] == [0, 1], odds[:, None], 1 - odds[:, None]),
        reward=np.array(reward, dtype=float),
        target=np.array(target, dtype=float).reshape(len(arm), -1),
        model=np.array(model, dtype=float).reshape(len(arm), -1),
        unrewarded=unrewarded,
    )


def many(n=200, *, target=0.5, chance=0.5):
    """Two arms drawn in turns, which earn .2 and .8 give or take .1."""
    arm = np.arange(n) % 2
    reward = np.where(arm == 0, 0.2, 0.8) + np.where(np.arange(n) % 4 < 2, 0.1, -0.1)
    odds = np.tile([1 - target, target], (n, 1))
    return log(arm=arm, chance=np.full(n, chance), reward=reward, target=odds, model=np.full((n, 2), 0.5))


def test_the_three_estimates_by_hand():
    """w = .5 and 1.5: IPS (.1 + 1.2)/2; SNIPS 1.3/2; DR each .5 + w(r − .5): .35 and .95."""
    found = compare(log(), cap=2)
    assert found.levels.ips.mean == pytest.approx(0.65)
    assert found.levels.snips.mean == pytest.approx(0.65)
    assert found.levels.dr.mean == pytest.approx(0.65)
    assert found.levels.earned.mean == pytest.approx(0.5)
    assert found.largest == 1.5
    assert found.effective == pytest.approx(4 / 2.5)


def test_a_standard_error_by_hand():
    """DR rows .35 and .95: s² = .18, so √(.18/2) = .3; SNIPS √(2·(.5²·.45² + 1.5²·.15²))/2."""
    found = compare(log(), cap=2)
    assert found.levels.dr.error == pytest.approx(0.3)
    assert found.levels.snips.error == pytest.approx((2 * (0.5**2 * 0.45**2 + 1.5**2 * 0.15**2)) ** 0.5 / 2)


def test_the_policy_that_ran_is_worth_what_it_earned():
    found = compare(many())
    assert found.doubt == ""
    assert found.levels.ips == found.levels.snips == found.levels.dr
    assert found.levels.dr.mean == pytest.approx(found.levels.earned.mean)
    assert (found.gain.mean, found.gain.error) == pytest.approx((0, 0))
    assert found.effective == 200


def test_a_better_policy_shows_its_gain():
    found = compare(many(target=0.9))
    assert found.levels.dr.mean == pytest.approx(0.74, abs=0.01)
    assert found.gain.above
    assert found.levels.dr.error < found.levels.ips.error


def test_a_gain_by_hand():
    """q says .3 and .6: each row .25·(.6 − .3) = .075, and −.5·(.2 − .3) or .5·(.8 − .6) more: .125 and .175."""
    found = compare(log(model=((0.3, 0.6),) * 2), cap=2)
    assert found.gain.mean == pytest.approx(0.15)
    assert found.gain.error == pytest.approx(0.025)


def test_no_level_is_told_where_more_than_a_twentieth_has_no_reward():
    """Which draws are rewarded depends on how they went."""
    odds = {"arm": [0, 1] * 95, "chance": [0.5] * 190, "reward": [0.2, 0.8] * 95}
    odds |= {"target": [(0.25, 0.75)] * 190, "model": [(0.5, 0.5)] * 190}
    assert compare(log(**odds, unrewarded=10)).levels.snips.mean == pytest.approx(0.65)
    found = compare(log(**odds, unrewarded=11))
    assert (found.levels, round(found.rewarded, 3)) == (None, 0.945)
    assert found.gain.above
    assert found.doubt == ""


def test_weights_are_cut_to_the_root_of_their_number():
    """100 rows, one of them drawn with a chance of 1 in 50 that the target nearly doubles to 1: 49.5, cut to 10."""
    arm = np.array([1] + [0] * 99)
    found = compare(
        log(
            arm=arm,
            chance=np.where(arm == 1, 0.02, 0.98),
            reward=[0.5] * 100,
            target=[(0.01, 0.99)] + [(0.98, 0.02)] * 99,
            model=[(0.5, 0.5)] * 100,
        )
    )
    assert (found.cap, found.clipped, round(found.largest, 1)) == (10, 1, 49.5)


def test_a_perfect_model_needs_no_luck():
    """Where q is right, DR has no variance left but that of the rewards."""
    n = 100
    model = np.tile([0.2, 0.8], (n, 1))
    arm = np.arange(n) % 2
    found = compare(
        log(
            arm=arm,
            chance=np.full(n, 0.5),
            reward=model[0][arm],
            target=np.tile([0.9, 0.1], (n, 1)),
            model=model,
        )
    )
    assert (found.levels.dr.mean, found.levels.dr.error) == pytest.approx((0.26, 0))


def test_a_cap_cuts_heavy_weights_and_says_how_many():
    found = compare(log(), cap=1.0)
    assert (found.clipped, found.largest, found.cap) == (1, 1.5, 1.0)
    assert found.levels.ips.mean == pytest.approx((0.1 + 0.8) / 2)
    with pytest.raises(ValueError, match="above 0"):
        compare(log(), cap=0)


def test_a_small_effective_sample_tells_nothing():
    found = compare(many(n=300, target=0.999, chance=1 / 50))
    assert compare(many(40, target=0.999)).doubt == "effective sample 20 of 40; 30 are needed"
    assert "the weights' mean is 25.00, not 1" in found.doubt
    assert compare(many(2 * int(LEAST_EFFECTIVE), target=0.999)).doubt == ""


def test_a_log_without_the_arms_of_the_target_tells_nothing():
    """Only one arm was ever drawn, with a chance it cannot have had."""
    found = compare(
        log(arm=[0] * 100, chance=[0.5] * 100, reward=[0.5] * 100, target=[(0.9, 0.1)] * 100, model=[0] * 200)
    )
    assert "the log lacks choices that the variant would make" in found.doubt


def test_a_target_that_would_never_have_drawn_these_is_not_guessed_at():
    found = compare(log(target=((0, 1), (1, 0))))
    assert (found.gain, found.effective) == (None, 0)
    assert found.doubt == "effective sample 0 of 2; 30 are needed"


def test_a_single_draw_has_no_interval():
    found = compare(log(arm=(0,), chance=(0.5,), reward=(0.4,), target=(0.5, 0.5), model=(0.5, 0.5)))
    assert (found.gain, found.n) == (None, 1)
    assert found.doubt


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"chance": (0.5, 0.0)}, r"a draw's chance is in \(0, 1\]; got \[0.0\] among 2"),
        ({"chance": (0.5, -0.1)}, "a draw's chance"),
        ({"chance": (0.5, 1.1)}, "a draw's chance"),
        ({"chance": (0.5, float("nan"))}, "a draw's chance"),
        ({"unrewarded": -1}, "at least 0"),
        ({"reward": (0.5, 1.2)}, "a reward is in"),
        ({"reward": (0.5, float("nan"))}, "a reward is in"),
        ({"arm": (0, 2)}, "one of 0 to 1"),
        ({"target": ((0.5, 0.5), (0.5, 0.4))}, "of sum 1"),
        ({"target": ((0.5, 0.5), (1.5, -0.5))}, "the chances of a target are in"),
        ({"model": ((0.5, 0.5), (0.5, 2.0))}, "what an arm should earn"),
        ({"reward": (0.5, 0.5, 0.5)}, "expected columns of shape"),
    ],
)
def test_a_log_that_cannot_be_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        log(**wrong)


def test_an_empty_log_is_refused():
    with pytest.raises(ValueError, match="got an empty log"):
        DrawLog(
            arm=np.zeros(0, dtype=np.int64),
            ran=np.zeros((0, 2)),
            reward=np.zeros(0),
            target=np.zeros((0, 2)),
            model=np.zeros((0, 2)),
        )
