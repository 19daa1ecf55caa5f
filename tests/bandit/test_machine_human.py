"""How far a stratum is off: means of pairs, shrunk towards the wider stratum, no bolder than the pairs allow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.machine_human import PRIOR_SCATTER, K, MachineHumanPair, fit

pytestmark = pytest.mark.pure

FLAGGED = ("cross-repo", "journal", "flagged")


def pairs(n, *, off=0.4, arm="cross-repo", source="journal", stratum="flagged", probability=0.2, machine=0.32):
    made = {"arm": arm, "source": source, "stratum": stratum, "machine": machine, "probability": probability}
    return [MachineHumanPair(**made, human=machine + off) for _ in range(n)]


def offset(found, key=FLAGGED):
    return next(each for each in found if each.key == key)


def test_without_pairs_there_is_nothing_to_move():
    assert fit([], [FLAGGED, ("code", "judge", "")]) == ()


def test_the_shrinkage_by_hand():
    """Four pairs, .4 off, and three effects of ½σ² each: 4·1.5/(4·1.5 + 1) of it."""
    found = offset(fit(pairs(4), []))
    assert found.pairs == 4
    assert found.offset == pytest.approx(0.4 * 6 / 7)
    assert found.low < found.offset < found.high


def test_the_interval_by_hand():
    """Like pairs: σ² = 4·.25²/(3 + 4); variance 1.5·σ²·(1 − 6/7); t with 7 degrees of freedom is 1.895."""
    found = offset(fit(pairs(4), []))
    variance = 1.5 * 4 * PRIOR_SCATTER**2 / 7 / 7
    assert found.high - found.offset == pytest.approx(1.8946 * variance**0.5, rel=1e-4)


@pytest.mark.parametrize("lonely", [0, 1])
def test_fewer_than_two_pairs_move_a_stratum_no_further_than_its_parent(lonely):
    others = pairs(6, arm="infra")
    found = fit([*others, *pairs(lonely, off=-0.3)], [FLAGGED])
    wider = offset(fit([*others, *pairs(lonely, off=-0.3)], [("code", "journal", "flagged")]), ("code", *FLAGGED[1:]))
    assert offset(found).offset == pytest.approx(wider.offset)
    assert offset(found).high - offset(found).low == pytest.approx(wider.high - wider.low)


def test_a_single_pair_of_a_source_moves_nothing():
    assert offset(fit(pairs(1), [])).offset == 0


def test_a_stratum_without_pairs_takes_its_sources_offset_and_more_doubt():
    found = fit(pairs(8, arm="infra"), [FLAGGED, ("cross-repo", "journal", "")])
    own, wider = offset(found, ("infra", *FLAGGED[1:])), offset(found)
    unflagged = offset(found, ("cross-repo", "journal", ""))
    assert 0 < unflagged.offset < wider.offset < own.offset
    assert wider.high - wider.low > own.high - own.low
    assert [each.pairs for each in (own, wider, unflagged)] == [8, 0, 0]


def test_a_source_that_no_person_looked_at_is_left_alone():
    assert [each.key for each in fit(pairs(3), [("code", "judge", ""), FLAGGED])] == [FLAGGED]


def test_pairs_that_were_unlikely_to_be_drawn_count_for_the_more():
    """One in ten of the cheap ones was drawn, one in two of the others: 10·.1 + 10·.1 against 2·.5 + 2·.5."""
    held = [*pairs(2, off=0.1, probability=0.1), *pairs(2, off=0.5, probability=0.5)]
    weights = np.array([10, 10, 2, 2])
    mean, n = (weights * [0.1, 0.1, 0.5, 0.5]).sum() / 24, 24**2 / (weights**2).sum()
    assert offset(fit(held, [])).offset == pytest.approx(mean * n / (n + K / 3))


def test_more_pairs_narrow_the_interval_and_leave_less_to_the_parent():
    found = [offset(fit(pairs(n), [])) for n in (2, 5, 20, 200)]
    assert sorted(found, key=lambda each: each.offset) == found
    assert sorted(found, key=lambda each: each.low - each.high) == found
    assert found[-1].offset == pytest.approx(0.4, abs=2e-3)


@given(st.data())
def test_the_order_of_pairs_changes_no_bit(data):
    values = st.integers(0, 10).map(lambda tenth: tenth / 10)
    drawn = st.builds(
        MachineHumanPair,
        arm=st.sampled_from(["code", "infra"]),
        source=st.sampled_from(["judge", "journal"]),
        stratum=st.sampled_from(["", "flagged"]),
        machine=values,
        human=values,
        probability=st.sampled_from([0.1, 0.2, 1.0]),
    )
    held = data.draw(st.lists(drawn, max_size=12))
    found = fit(held, [FLAGGED])
    assert found == fit(data.draw(st.permutations(held)), [FLAGGED])
    assert all(-1 <= each.low <= each.offset <= each.high <= 1 for each in found)


def test_ninety_percent_intervals_cover_about_ninety_percent():
    """Strata whose true offsets scatter as K supposes; 0 to 12 pairs each, spread .25."""
    dice = np.random.default_rng(5)
    inside, tau = [], 0.25 / K**0.5
    for _ in range(60):
        wider = dice.normal(0, tau) + dice.normal(0, tau)
        truth = {f"arm-{i}": wider + dice.normal(0, tau) for i in range(6)}
        held = [
            MachineHumanPair(
                arm=arm, source="journal", stratum="", machine=machine, human=machine + off, probability=0.2
            )
            for arm, mean in truth.items()
            for off in np.clip(dice.normal(mean, 0.25, dice.integers(0, 13)), -1, 1).tolist()
            for machine in [max(0.0, -off)]
        ]
        found = fit(held, [(arm, "journal", "") for arm in truth])
        inside += [each.low <= truth[each.arm] <= each.high for each in found]
    assert 0.88 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("wrong", [{"machine": 1.1}, {"human": -0.1}, {"probability": 0.0}, {"human": float("nan")}])
def test_a_pair_is_two_rewards_and_a_chance(wrong):
    right = {"arm": "a", "source": "journal", "stratum": "", "machine": 0.3, "human": 0.5, "probability": 0.2}
    with pytest.raises(ValueError, match="two rewards in"):
        MachineHumanPair(**(right | wrong))
    with pytest.raises(ValueError, match="two persons"):
        MachineHumanPair(**(right | {"source": "human"}))
