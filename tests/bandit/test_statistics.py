"""What the numbers promise, held against simulations of known truth, all seeded.

That a drought moves no idle arm, that an update of one arm leaves the others' bits alone, and the coverage of arms
drawn from the prior are in test_posterior.py.
"""

from datetime import date, timedelta

import numpy as np
import pytest

from bandit.core.betting import Bets, Draws
from bandit.core.effect import EffectVerdict, Trials, observational, verdict_on
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.propensity import p_best, propensities
from bandit.core.table import RewardRow
from bandit.core.thompson import draw, uniform

pytestmark = pytest.mark.pure

FIRST = date(2026, 3, 1)
DAYS, DRAWS = 12, 20
# Seed 001's eight arms and their quality: a Beta of strength 6 around each mean. Rewards are stationary and judged.
MEANS = dict(zip("abcdefgh", (0.65, 0.55, 0.52, 0.50, 0.48, 0.45, 0.42, 0.40), strict=True))
STRENGTH = 6
RAN = Policy(weights={"judge": 1.0})


def judged(arm, day, value):
    micro = round(value * 1e6)
    return RewardRow(arm=arm, source="judge", day=day, n=1, s=micro, q=micro**2)


def life(seed):
    """A bandit's rewards of its first days, drawn with its real odds."""
    dice, rows = np.random.default_rng(seed), []
    for day in (FIRST + timedelta(days=i) for i in range(DAYS)):
        posterior = fold(rows, arms=MEANS, policy=RAN, today=day)
        ran = propensities(p_best(posterior.alpha, posterior.beta, points=256), floor=RAN.floor)
        odds = dict(zip(MEANS, ran.tolist(), strict=True))
        for i in range(DRAWS):
            arm = draw(odds, uniform("category", f"{seed}/{day}/{i}"))
            quality = dice.beta(STRENGTH * MEANS[arm], STRENGTH * (1 - MEANS[arm]))
            rows.append(judged(arm, day, float(quality)))
    return rows


@pytest.fixture(scope="module")
def lives():
    return [life(seed) for seed in range(60)]


def test_intervals_cover_the_means_of_arms_that_the_bandit_chose_itself(lives):
    """Good luck is followed up and bad luck is not; the scale of the evidence is estimated from the same grades."""
    day, truth = FIRST + timedelta(days=DAYS), np.array(list(MEANS.values()))
    inside = []
    for rows in lives:
        arms = fold(rows, arms=MEANS, policy=RAN, today=day).arms.values()
        inside.append([arm.low <= mean <= arm.high for arm, mean in zip(arms, truth, strict=True)])
    assert np.mean(inside) >= 0.88
    assert np.mean(inside, axis=0).min() >= 0.88


@pytest.mark.parametrize("sessions", [5, 40])
def test_intervals_cover_means_from_very_poor_to_very_good(sessions):
    truth = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 200)
    quality = np.random.default_rng(sessions).beta(
        STRENGTH * truth, STRENGTH * (1 - truth), size=(sessions, len(truth))
    )
    names = [f"{i:04d}" for i in range(len(truth))]
    rows = [
        judged(name, FIRST + timedelta(days=i % 20), float(value))
        for i, values in enumerate(quality)
        for name, value in zip(names, values, strict=True)
    ]
    arms = fold(rows, arms=names, policy=RAN, today=FIRST + timedelta(days=20)).arms
    inside = [arms[name].low <= mean <= arms[name].high for name, mean in zip(names, truth, strict=True)]
    assert np.mean(inside) >= 0.88


def holdout(dice, *, helps=0.0, n=240):
    """A lesson that comes where sessions are in trouble, held out of one in four at random."""
    trouble = dice.random(n) < 0.5
    asked = dice.random(n) < np.where(trouble, 0.9, 0.2)
    chance = np.full(n, 0.75)
    present = asked & (dice.random(n) < chance)
    mean = np.where(trouble, 0.35, 0.6) + helps * present
    outcome, day = dice.beta(STRENGTH * mean, STRENGTH * (1 - mean)), FIRST.toordinal() + np.arange(n) // 8
    seen = Trials(present=present, outcome=outcome, day=day)
    ones = np.ones(n, dtype=bool)
    drawn = Draws(taken=present, chance=chance, came=ones, heeded=ones, outcome=outcome, least=np.zeros(n), day=day)
    return drawn.select(asked), seen


def test_a_holdout_finds_the_effect_that_looking_gets_wrong():
    """I110, I115: a lesson worth +.08 that comes in hard sessions looks harmful; its interval covers the truth."""
    dice = np.random.default_rng(17)
    pairs = [holdout(dice, helps=0.08) for _ in range(300)]
    found = [Bets.from_draws(drawn).effect() for drawn, _ in pairs]
    assert np.mean([each.mean for each in found]) == pytest.approx(0.08, abs=0.006)
    assert np.mean([each.low <= 0.08 <= each.high for each in found]) >= 0.88
    looked = [observational(seen) for _, seen in pairs]
    assert np.mean([each.difference.mean for each in looked]) < -0.03


def test_of_a_lesson_that_does_nothing_nothing_is_said():
    """I116."""
    dice = np.random.default_rng(23)
    found = [verdict_on(holdout(dice)[0], least=100)[0] for _ in range(1000)]
    assert found.count(EffectVerdict.OPEN) >= 995


@pytest.mark.parametrize("seed", range(4))
def test_p_best_agrees_with_a_million_draws(seed):
    dice = np.random.default_rng(seed)
    alpha, beta = dice.uniform(0.5, 60, 8), dice.uniform(0.5, 60, 8)
    draws = dice.beta(alpha, beta, size=(1_000_000, 8)).argmax(axis=1)
    counted = np.bincount(draws, minlength=8) / 1_000_000
    assert np.abs(p_best(alpha, beta) - counted).max() < 0.002
