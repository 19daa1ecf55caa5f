"""What an arm's presence does: drawn or merely seen, never mixed, and no word stronger than the numbers (I110–I122)."""

from datetime import date

import numpy as np
import pytest

from bandit.core.effect import EffectVerdict, StudyDesign, Trials, causal, effect, observational

pytestmark = pytest.mark.pure

START = date(2026, 3, 1).toordinal()


def trials(n, without=None, *, gap=0.0, days=30, spread=0.1, chance=None, late=None):
    """`n` sessions with the arm and `without` without it, spread evenly over the days; `late` is the gap of the second
    half. Outcomes alternate by ±spread around .5, exactly."""
    counts = (n, n if without is None else without)
    columns = [(np.arange(count) * days // max(count, 1), np.where(np.arange(count) % 2, 1, -1)) for count in counts]
    day = np.concatenate([day for day, _ in columns])
    present = np.repeat([True, False], counts)
    gaps = np.where(day < days // 2, gap, gap if late is None else late)
    outcome = 0.5 + spread * np.concatenate([sign for _, sign in columns]) + present * gaps
    drawn = None if chance is None else np.full(len(day), chance)
    return Trials(present=present, outcome=outcome, day=START + day, chance=drawn)


def test_a_randomised_holdout_gives_a_causal_effect():
    found = causal(trials(120, 40, gap=-0.2, chance=0.75))
    assert (found.kind, found.verdict) == (StudyDesign.CAUSAL, EffectVerdict.HARMFUL)
    assert (found.n, found.without, found.days) == (120, 40, 30)
    assert found.difference.mean == pytest.approx(-0.2)
    assert found.sentence.startswith("Causal, from a drawn holdout: harmful, −0.200 (90 % interval −0.23")


def test_the_welch_interval_by_hand():
    """Two equal groups of 20, s² = .01·20/19 each: v = 2·s²/20, 38 degrees of freedom, t = 1.686."""
    found = observational(trials(20, gap=0.1))
    error = (2 * 0.01 * 20 / 19 / 20) ** 0.5
    assert found.difference.error == pytest.approx(error)
    assert found.difference.high - 0.1 == pytest.approx(1.68595 * error, rel=1e-4)


def test_unlike_chances_are_made_up_for():
    """Hard sessions (.2) had the arm with chance .9, easy ones (.8) with .1; it does nothing."""
    n = 20_000
    dice = np.random.default_rng(5)
    hard = dice.random(n) < 0.5
    chance = np.where(hard, 0.9, 0.1)
    present = dice.random(n) < chance
    outcome = np.where(hard, 0.2, 0.8)
    day = START + np.arange(n) // 200
    found = causal(Trials(present=present, outcome=outcome, day=day, chance=chance))
    assert found.difference.low < 0 < found.difference.high
    assert abs(found.difference.mean) < 0.02
    assert outcome[present].mean() - outcome[~present].mean() < -0.4


def test_fifteen_pairs_are_needed_for_a_causal_effect():
    """I115."""
    assert causal(trials(80, 15, gap=0.1, chance=0.8)).kind is StudyDesign.CAUSAL
    found = causal(trials(80, 14, gap=0.1, chance=0.8))
    assert (found.kind, found.verdict, found.difference, found.p) == (
        StudyDesign.CANNOT_TELL,
        EffectVerdict.INSUFFICIENT,
        None,
        None,
    )
    assert "14 sessions without it" in found.sentence


def test_the_causal_effect_is_preferred_and_the_label_says_which():
    """I115: the observed sign flipped under a randomised dropout, −.015 against +.197."""
    seen = trials(60, gap=-0.015)
    both = effect(drawn=trials(60, 20, gap=0.197, chance=0.75), observed=seen)
    assert (both.kind, both.difference.mean) == (StudyDesign.CAUSAL, pytest.approx(0.197))
    few = effect(drawn=trials(60, 10, gap=0.197, chance=0.8), observed=seen)
    assert (few.kind, few.difference.mean) == (StudyDesign.OBSERVATIONAL, pytest.approx(-0.015))


def test_the_two_kinds_are_never_mixed():
    with pytest.raises(ValueError, match="have a causal effect"):
        observational(trials(60, chance=0.5))
    with pytest.raises(ValueError, match="needs trials that were drawn"):
        causal(trials(60))


def test_an_observed_difference_says_that_it_is_no_cause():
    """I110: recovery lessons come where sessions are in trouble, and look harmful at p < .05."""
    found = observational(trials(577, gap=-0.21))
    assert found.verdict is EffectVerdict.HARMFUL
    assert "what went together and not what caused it" in found.sentence


def test_strong_words_need_fifty_firings():
    """I116: −.144 over 20 sessions was called genuinely harmful."""
    assert observational(trials(49, gap=-0.144)).verdict is EffectVerdict.OPEN
    assert observational(trials(50, gap=-0.144)).verdict is EffectVerdict.HARMFUL
    assert observational(trials(50, gap=0.144)).verdict is EffectVerdict.HELPS


def test_strong_words_need_a_small_p():
    found = observational(trials(60, gap=-0.03))
    assert (found.verdict, round(found.p, 2)) == (EffectVerdict.OPEN, 0.11)
    assert "no verdict, −0.030" in found.sentence
    assert "may well be chance" in found.sentence


@pytest.mark.parametrize(
    ("late", "word"), [(-0.14, EffectVerdict.HARMFUL), (-0.03, EffectVerdict.OPEN), (0.05, EffectVerdict.OPEN)]
)
def test_strong_words_need_the_recent_window_to_agree(late, word):
    """I116: −.144 in all, and −.030 lately."""
    assert observational(trials(200, gap=-0.25, late=late, days=60)).verdict is word


def test_without_recent_firings_nothing_strong_is_said():
    old, others = trials(100, gap=-0.3), trials(0, 50, days=30)
    found = observational(
        Trials(
            present=np.concatenate((old.present, others.present)),
            outcome=np.concatenate((old.outcome, others.outcome)),
            day=np.concatenate((old.day, others.day + 60)),
        )
    )
    assert found.verdict is EffectVerdict.OPEN
    assert "the last 28 days do not bear it out" in found.sentence


def test_five_rows_of_one_afternoon_are_insufficient():
    """I122."""
    for few in (trials(4, 40), trials(40, 4), trials(40, days=2)):
        found = observational(few)
        assert (found.kind, found.verdict) == (StudyDesign.CANNOT_TELL, EffectVerdict.INSUFFICIENT)
        assert found.sentence.startswith("Cannot tell: insufficient, ")
    assert observational(trials(5, days=3)).kind is StudyDesign.OBSERVATIONAL


def test_nothing_at_all_is_insufficient():
    assert observational(trials(0)).kind is StudyDesign.CANNOT_TELL
    assert causal(trials(0, chance=0.5)).sentence == (
        "Cannot tell: insufficient, 0 sessions with it on 0 days, where 15 on 3 are needed."
    )


def test_a_striking_window_is_reported_whatever_the_whole_says():
    """I111: −.054 in all and −.218 in one window; nearly dismissed."""
    found = observational(trials(200, gap=-0.218, late=0.11, days=60))
    assert (found.verdict, round(found.difference.mean, 3)) == (EffectVerdict.OPEN, -0.054)
    assert found.striking
    assert sum(window.firings for window in found.windows) == 200
    assert all(window.firings >= 50 for window in found.windows)
    assert "To be looked at: −0.218 over 50 firings from 2026-03-01 to 2026-03-1" in found.sentence
    assert not observational(trials(200, gap=-0.1, days=60)).striking


def test_fewer_than_fifty_firings_make_no_window():
    assert observational(trials(49, gap=-0.3)).windows == ()


def test_outcomes_all_alike_are_no_error():
    same, apart = trials(60, spread=0), trials(60, spread=0, gap=0.1)
    assert observational(same).p == 1
    assert observational(apart).verdict is EffectVerdict.HELPS


@pytest.mark.parametrize("chance", [0, 1, 1.5, float("nan")])
def test_what_was_certain_was_not_drawn(chance):
    with pytest.raises(ValueError, match="what was certain was not drawn"):
        trials(20, chance=chance)


def test_an_outcome_that_is_no_number_is_refused():
    """Missing is not zero, nor a NaN that spreads (I107)."""
    with pytest.raises(ValueError, match="finite number"):
        trials(20, gap=float("nan"))
