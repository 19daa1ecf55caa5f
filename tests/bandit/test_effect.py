"""What an arm's presence does: drawn or merely seen, never mixed, and no word stronger than the numbers (I110–I122)."""

import re
from datetime import date

import numpy as np
import pytest

from bandit.core.betting import Draws
from bandit.core.effect import EffectVerdict, StudyDesign, Trials, causal, observational, per_protocol, verdicts
from bandit.core.estimate import about

pytestmark = pytest.mark.pure

START = date(2026, 3, 1).toordinal()


def columns(n, without=None, *, gap=0.0, days=30, spread=0.1, late=None):
    """`n` sessions with the arm and `without` without it, spread evenly over the days; `late` is the gap of the second
    half. Outcomes alternate by ±spread around .5, exactly."""
    counts = (n, n if without is None else without)
    parts = [(np.arange(count) * days // max(count, 1), np.where(np.arange(count) % 2, 1, -1)) for count in counts]
    day = np.concatenate([day for day, _ in parts])
    present = np.repeat([True, False], counts)
    gaps = np.where(day < days // 2, gap, gap if late is None else late)
    return present, 0.5 + spread * np.concatenate([sign for _, sign in parts]) + present * gaps, START + day


def trials(*args, **more):
    present, outcome, day = columns(*args, **more)
    return Trials(present=present, outcome=outcome, day=day)


def draws(n, without=None, *, chance=0.5, seed=0, **more):
    """The same as draws, those of a day in any order."""
    present, outcome, day = columns(n, without, **more)
    order = np.lexsort((np.random.default_rng(seed).random(len(day)), day))
    ones = np.ones(len(day), dtype=bool)
    return Draws(
        taken=present[order],
        chance=np.full(len(day), chance),
        came=ones,
        heeded=ones,
        outcome=outcome[order],
        least=np.zeros(len(day)),
        day=day[order],
    )


def told(drawn, *, least=100):
    return causal(drawn, least=least, chance=0.6)


def test_a_randomised_holdout_gives_a_causal_effect():
    found = told(draws(120, 40, gap=-0.2, chance=0.75))
    assert (found.kind, found.verdict) == (StudyDesign.CAUSAL, EffectVerdict.HARMFUL)
    assert (found.n, found.without, found.days) == (120, 40, 30)
    assert found.difference.mean == pytest.approx(-0.2, abs=0.01)
    assert found.difference.low < -0.2 < found.difference.high < 0
    assert found.evidence > 1000
    assert found.sentence.startswith("Causal (random holdout): harmful, −0.2")
    assert "over 120 sessions with it by the draw, on 30 days, and 40 without." in found.sentence


def test_the_welch_interval_by_hand():
    """Two equal groups of 20, s² = .01·20/19 each: v = 2·s²/20, 38 degrees of freedom, t = 1.686."""
    found = observational(trials(20, gap=0.1))
    error = (2 * 0.01 * 20 / 19 / 20) ** 0.5
    assert found.difference.error == pytest.approx(error)
    assert found.difference.high - 0.1 == pytest.approx(1.68595 * error, rel=1e-4)


def test_fifteen_pairs_are_needed_for_a_causal_effect():
    """I115."""
    assert told(draws(80, 15, gap=0.1, chance=0.8)).kind is StudyDesign.CAUSAL
    found = told(draws(80, 14, gap=0.1, chance=0.8))
    assert (found.kind, found.verdict, found.difference) == (
        StudyDesign.CANNOT_TELL,
        EffectVerdict.INSUFFICIENT,
        None,
    )
    assert "14 sessions without it" in found.sentence


def test_a_verdict_needs_the_e_value_that_counts_among_all():
    """I116: −.144 over 20 sessions was called genuinely harmful."""
    few = draws(20, 20, gap=-0.144, spread=0.2)
    assert told(few).verdict is EffectVerdict.OPEN
    found = told(draws(60, gap=-0.144, spread=0.2))
    assert 10 < found.evidence < 1000
    assert told(draws(60, gap=-0.144, spread=0.2), least=found.evidence + 1).verdict is EffectVerdict.OPEN
    assert told(draws(60, gap=-0.144, spread=0.2), least=found.evidence - 1).verdict is EffectVerdict.HARMFUL
    assert told(draws(60, gap=0.144, spread=0.2), least=found.evidence / 2).verdict is EffectVerdict.HELPS


def test_what_has_no_verdict_says_how_many_sessions_it_takes():
    found = told(draws(60, gap=0.03), least=800)
    assert found.verdict is EffectVerdict.OPEN
    assert 50 < found.more < 1000
    assert f"; about {about(found.more)} more sessions would decide an effect of 0.05." in found.sentence


def test_without_a_holdout_no_session_decides():
    found = causal(draws(60, gap=0.03), least=800, chance=1.0)
    assert found.more is None
    assert "the lesson is no longer withheld at random" in found.sentence


def test_an_effect_that_is_surely_small_is_negligible():
    found = told(draws(900, gap=0.01))
    assert found.verdict is EffectVerdict.NEGLIGIBLE
    assert -0.05 < found.difference.low < found.difference.high < 0.05
    assert "negligible, +0.0" in found.sentence
    assert found.sentence.endswith("certainly less than 0.05 in either direction.")
    assert told(draws(100, gap=0.01)).verdict is EffectVerdict.OPEN


def test_of_several_arms_the_best_raise_no_bar_for_the_others():
    """Among forty, one alone needs 800; with seven like it, 100 each."""
    some = draws(56, gap=0.15, spread=0.2)
    assert 100 < told(some).evidence < 800
    nothing = {number: draws(20, gap=0) for number in range(8, 40)}
    alone = verdicts({0: some, **{number: draws(20, gap=0) for number in range(1, 40)}})
    together = verdicts(dict.fromkeys(range(8), some) | nothing)
    assert (alone[0], together[0]) == (EffectVerdict.OPEN, EffectVerdict.HELPS)


@pytest.mark.parametrize(
    ("late", "word"),
    [(-0.2, EffectVerdict.HARMFUL), (-0.12, EffectVerdict.HARMFUL), (0.03, EffectVerdict.OPEN)],
)
def test_strong_words_end_where_the_recent_days_surely_do_not_agree(late, word):
    """I116: −.144 in all, and −.030 lately."""
    assert told(draws(400, gap=-0.3, late=late, days=60)).verdict is word


def test_sessions_count_as_they_were_drawn_whatever_they_fetched():
    """Half of what was held out in trouble fetched it: without those the others look better than they are."""
    dice, n = np.random.default_rng(2), 3000
    trouble, taken = dice.random(n) < 0.3, dice.random(n) < 0.6
    drawn = Draws(
        taken=taken,
        chance=np.full(n, 0.6),
        came=np.ones(n, dtype=bool),
        heeded=taken | ~trouble | (dice.random(n) < 0.5),
        outcome=np.clip(0.6 - 0.3 * trouble + dice.normal(0, 0.2, n), 0, 1),
        least=np.zeros(n),
        day=START + np.arange(n) // 20,
    )
    found = told(drawn)
    assert abs(found.difference.mean) < 0.02
    assert found.verdict is EffectVerdict.NEGLIGIBLE
    assert per_protocol(drawn).high < 0


def test_per_protocol_needs_fifteen_too():
    drawn = draws(80, 15, chance=0.8)
    assert per_protocol(drawn) is not None
    assert per_protocol(drawn.select(np.arange(95) < 60)) is None


def test_an_observed_difference_is_no_verdict_and_says_that_it_is_no_cause():
    """I110: recovery lessons come where sessions are in trouble, and look harmful at p < .05."""
    found = observational(trials(577, gap=-0.21))
    assert (found.verdict, found.evidence, found.more) == (EffectVerdict.OPEN, None, None)
    assert found.difference.high < 0
    assert "Observational (correlation, not cause): no verdict, −0.210" in found.sentence


def test_five_rows_of_one_afternoon_are_insufficient():
    """I122."""
    for few in (trials(4, 40), trials(40, 4), trials(40, days=2)):
        found = observational(few)
        assert (found.kind, found.verdict) == (StudyDesign.CANNOT_TELL, EffectVerdict.INSUFFICIENT)
        assert found.sentence.startswith("Not enough data: ")
    assert observational(trials(5, days=3)).kind is StudyDesign.OBSERVATIONAL


def test_nothing_at_all_is_insufficient():
    assert observational(trials(0)).kind is StudyDesign.CANNOT_TELL
    assert told(draws(0)).sentence == (
        "Not enough data: 0 sessions with it on 0 days, but 15 sessions on 3 days are needed."
    )


def test_a_striking_window_is_reported_whatever_the_whole_says():
    """I111: −.054 in all and −.218 in one window; nearly dismissed."""
    found = observational(trials(200, gap=-0.218, late=0.11, days=60))
    assert (found.verdict, round(found.difference.mean, 3)) == (EffectVerdict.OPEN, -0.054)
    assert found.striking
    assert sum(window.firings for window in found.windows) == 200
    assert all(window.firings >= 50 for window in found.windows)
    assert re.search(r"Check the 50 sessions with it from 2026-03-01 to 2026-03-1\d: −0.218\.", found.sentence)
    assert not observational(trials(200, gap=-0.1, days=60)).striking


def test_fewer_than_fifty_firings_make_no_window():
    assert observational(trials(49, gap=-0.3)).windows == ()


def test_outcomes_all_alike_are_no_error():
    same, apart = trials(60, spread=0), trials(60, spread=0, gap=0.1)
    assert observational(same).difference.mean == 0
    assert observational(apart).difference.low > 0
    assert told(draws(60, spread=0)).difference.low < 0 < told(draws(60, spread=0)).difference.high


def test_an_outcome_that_is_no_number_is_refused():
    """Missing is not zero, nor a NaN that spreads (I107)."""
    with pytest.raises(ValueError, match="finite number"):
        trials(20, gap=float("nan"))


def test_a_windows_difference_is_that_of_its_days_alone_in_whatever_order_sessions_came():
    rng = np.random.default_rng(8)
    for size in (200, 1500):
        present, outcome, day = rng.random(size) < 0.6, rng.random(size), rng.integers(740_000, 740_060, size)
        for found in observational(Trials(present=present, outcome=outcome, day=day)).windows:
            own = (day >= found.first) & (day <= found.last)
            means = [
                np.average(outcome[own & group], weights=np.ones((own & group).sum())) for group in (present, ~present)
            ]
            assert (found.firings, found.difference) == ((own & present).sum(), means[0] - means[1])
