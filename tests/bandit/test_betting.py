"""Bets on draws: by hand, at every look, and against whoever would bend them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.betting import MAX_LOSS, STAKES, Bets, Draws, evidence_threshold
from bandit.core.effect import EffectVerdict, causal, verdict_on
from tests.examples import examples

pytestmark = pytest.mark.pure


def draws(taken, outcome, *, chance=0.6, **columns):
    n = len(outcome)
    usual = {
        "taken": np.asarray(taken, dtype=bool),
        "chance": np.broadcast_to(np.asarray(chance, dtype=float), n),
        "came": np.ones(n, dtype=bool),
        "heeded": np.ones(n, dtype=bool),
        "outcome": np.asarray(outcome, dtype=float),
        "least": np.zeros(n),
        "day": np.arange(n) // 8,
    }
    return Draws(**usual | columns)


def rolled(dice, n, *, effect=0.0, chance=0.6, spread=0.2):
    taken = dice.random(n) < chance
    return draws(taken, np.clip(0.5 + effect * taken + dice.normal(0, spread, n), 0, 1), chance=chance)


def test_an_effect_by_hand():
    """m = .5, then (.5·2 + .9)/3: x = .4·.4 and −.6·(.3 − 1.9/3), each h = .24."""
    found = Bets.from_draws(draws([True, False], [0.9, 0.3]))
    assert found.x == pytest.approx([0.16, 0.2])
    assert found.mean == pytest.approx(0.36 / 0.48)


def test_an_e_value_by_hand():
    """One row, x = .16: each stake once up and once down, none above .9 of what |x| can be, .6·.5."""
    stakes = np.minimum(STAKES, MAX_LOSS / 0.3)
    by_hand = np.mean(np.concatenate((1 + 0.16 * stakes, 1 - 0.16 * stakes)))
    assert Bets.from_draws(draws([True], [0.9])).evidence == pytest.approx(by_hand)


def test_the_estimate_is_the_difference_with_inverse_chances():
    """Hard sessions (.2) had the arm with chance .9, easy ones (.8) with .1; it does nothing."""
    dice = np.random.default_rng(5)
    hard = dice.random(20_000) < 0.5
    chance = np.where(hard, 0.9, 0.1)
    taken = dice.random(20_000) < chance
    outcome = np.where(hard, 0.2, 0.8)
    found = Bets.from_draws(draws(taken, outcome, chance=chance)).effect()
    assert found.low < 0 < found.high
    assert abs(found.mean) < 0.02
    assert outcome[taken].mean() - outcome[~taken].mean() < -0.4


@pytest.mark.parametrize("effect", [0.0, 0.1, -0.3])
def test_an_interval_holds_the_effect_at_all_looks(effect):
    """A hundred arms, each looked at twenty times; the interval promises nine in ten."""
    dice, held = np.random.default_rng(11), []
    for _ in range(100):
        whole = rolled(dice, 400, effect=effect, spread=0.15)
        looks = (Bets.from_draws(whole.select(np.arange(400) < n)) for n in range(20, 420, 20))
        held.append(not any(bets.excludes(effect) for bets in looks))
    assert np.mean(held) >= 0.9


def test_an_e_value_averages_at_most_1_where_there_is_no_effect():
    dice = np.random.default_rng(3)
    found = [Bets.from_draws(rolled(dice, 60, spread=0.3)).evidence for _ in range(3000)]
    assert np.mean(found) <= 1 + 3 * np.std(found) / len(found) ** 0.5


def test_outcomes_that_nobody_rolled_give_the_draws_no_odds():
    """An outage of a month, a grader that turns strict, sessions that come in lumps: the draws alone are random."""
    dice, n = np.random.default_rng(9), 600
    outcome = np.where(np.arange(n) // 100 % 2, 0.9, 0.1)
    found = []
    for _ in range(2000):
        taken = dice.random(n) < 0.6
        found.append(Bets.from_draws(draws(taken, outcome)).evidence)
    assert np.mean([each >= 20 for each in found]) <= 0.05


@given(seed=st.integers(0, 10_000), chance=st.sampled_from([0.05, 0.5, 0.95]), low=st.floats(-0.9, 0.9))
@examples(40)
def test_no_row_can_ruin_or_break_the_bets(seed, chance, low):
    dice = np.random.default_rng(seed)
    taken, outcome = dice.random(50) < chance, low + dice.integers(0, 2, 50)
    found = Bets.from_draws(draws(taken, outcome, chance=chance, least=np.full(50, low)))
    estimate = found.effect()
    assert 0 < found.evidence < float("inf")
    assert -1 <= estimate.low <= estimate.mean <= estimate.high <= 1


def test_small_chances_weigh_what_they_are_worth():
    """Five hundred draws at .6 tell .1; five hundred at .95 after them, without an effect by luck, hardly move it."""
    dice = np.random.default_rng(21)
    first = rolled(dice, 2000, effect=0.1)
    later = rolled(dice, 2000, effect=0.1, chance=0.95)
    both = Draws(
        **{
            name: np.concatenate((getattr(first, name), getattr(later, name)))
            for name in ("taken", "chance", "came", "heeded", "outcome", "least", "day")
        }
    )
    assert Bets.from_draws(both).effect().error < Bets.from_draws(first).effect().error
    assert Bets.from_draws(both).evidence > Bets.from_draws(first).evidence


def test_about_as_many_sessions_are_needed_as_are_foretold():
    dice = np.random.default_rng(31)
    foretold = Bets.from_draws(Draws.none()).sessions_needed(0.1, chance=0.6, threshold=800)
    took = []
    for _ in range(60):
        whole = rolled(dice, 1200, effect=0.1)
        looks = range(50, 1200, 25)
        took.append(next(n for n in looks if Bets.from_draws(whole.select(np.arange(1200) < n)).evidence >= 800))
    assert np.mean(took) == pytest.approx(foretold, rel=0.2)
    assert Bets.from_draws(Draws.none()).sessions_needed(0.05, chance=0.6, threshold=800) == pytest.approx(1190, abs=10)


def test_every_session_that_came_is_one_less_to_come():
    dice = np.random.default_rng(41)
    whole = rolled(dice, 3000)
    found = [
        Bets.from_draws(whole.select(np.arange(3000) < n)).sessions_needed(0.05, chance=0.6, threshold=800)
        for n in (0, 500, 3000)
    ]
    assert found[0] > found[1] > found[2] == 0
    assert found[0] - found[1] == pytest.approx(500, abs=150)


@pytest.mark.parametrize(
    ("evidence", "least"),
    [
        ([], 100),
        ([1.0] * 40, 800),
        ([900.0] + [1.0] * 39, 800),
        ([900.0, 410.0] + [1.0] * 38, 400),
        ([1e9] * 8 + [1.0] * 32, 100),
        ([1e9] * 40, 100),
        ([90.0] * 3, 100),
    ],
)
def test_the_bar_by_hand(evidence, least):
    """Of forty arms k may be called from 40/(.05·k) each, and none under 100."""
    assert evidence_threshold(evidence) == pytest.approx(least)


# ---- whoever would bend them


def gap(n=1000, *, effect=0.12, seed=51):
    dice = np.random.default_rng(seed)
    return rolled(dice, n, effect=effect)


def test_bad_sessions_left_without_a_reward_earn_no_strong_word():
    """Somebody likes a lesson that does nothing, and leaves the worst eighth of the sessions with it ungraded."""
    whole = gap(2000, effect=0)
    worst = whole.taken & (whole.outcome < np.quantile(whole.outcome[whole.taken], 0.3))
    bent = draws(whole.taken, np.where(worst, np.nan, whole.outcome))
    assert Bets.from_draws(bent).evidence > 800
    verdict, why = verdict_on(bent, least=800)
    assert verdict is EffectVerdict.OPEN
    assert why.startswith("30 % of those with it and 0 % of those without have no reward, a difference beyond chance")


def test_rewards_missing_alike_in_both_groups_cost_only_sessions():
    whole = gap(2000)
    missing = np.random.default_rng(6).random(2000) < 0.3
    assert verdict_on(draws(whole.taken, np.where(missing, np.nan, whole.outcome)), least=100)[0] is EffectVerdict.HELPS


def test_draws_that_are_picked_once_the_outcome_is_known_earn_no_strong_word():
    """Good sessions are sent with a draw that took the lesson, bad ones with one that held it out; the rest is lost."""
    dice, n = np.random.default_rng(8), 1200
    taken, good = dice.random(n) < 0.5, dice.random(n) < 0.5
    came = taken == good
    outcome = np.where(came, np.where(good, 0.8, 0.3), np.nan)
    bent = draws(taken, outcome, chance=0.5, came=came)
    assert not bent.unscored().differ
    assert Bets.from_draws(bent).evidence > 1e6
    verdict, why = verdict_on(bent, least=100)
    assert verdict is EffectVerdict.OPEN
    assert "% of its draws led to no session" in why


def test_no_outcome_at_all_is_no_figure():
    found = causal(draws([True, False] * 40, [np.nan] * 80), least=100, chance=0.6)
    assert found.difference is None
    assert (found.unscored.taken, found.unscored.held_out, found.evidence) == (1, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"chance": [0.6, 1.0]}, "what was certain was not drawn"),
        ({"chance": [0.6, 0.0]}, "what was certain was not drawn"),
        ({"chance": [0.6, float("nan")]}, "what was certain was not drawn"),
        ({"outcome": [0.5, 1.2]}, "from the least there could be"),
        ({"outcome": [0.5, float("inf")]}, "from the least there could be"),
        ({"least": np.array([0.6, 0.0])}, "from the least there could be"),
        ({"day": np.arange(3)}, "columns of one length"),
    ],
)
def test_draws_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        draws(**{"taken": [True, False], "outcome": [0.5, 0.5], **wrong})
