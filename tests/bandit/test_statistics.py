"""What the numbers promise, held against simulations of known truth, all seeded.

That a drought moves no idle arm, that an update of one arm leaves the others' bits alone, and the coverage of arms
drawn from the prior are in test_posterior.py.
"""

from datetime import date, timedelta

import numpy as np
import pytest

from bandit.core.betting import Bets, Draws
from bandit.core.effect import EffectVerdict, Trials, observational, verdict_on
from bandit.core.offpolicy import DrawLog, compare
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
VARIANT = Policy(weights={"judge": 1.0}, half_life=3.0, floor=0.05)

# So many standard errors from nothing by chance.
ONCE_IN_1000 = 3.29


def judged(arm, day, value):
    micro = round(value * 1e6)
    return RewardRow(arm=arm, source="judge", day=day, n=1, s=micro, q=micro**2)


def believed(rows, policy, day):
    """The odds and the posterior means of a policy."""
    posterior = fold(rows, arms=MEANS, policy=policy, today=day)
    odds = propensities(p_best(posterior.alpha, posterior.beta, points=256), floor=policy.floor)
    return odds, posterior.alpha / (posterior.alpha + posterior.beta)


def life(seed):
    """A bandit's first days, drawn with its real odds: its rewards, its log against the variant, and all its odds."""
    dice, rows, log = np.random.default_rng(seed), [], []
    for day in (FIRST + timedelta(days=i) for i in range(DAYS)):
        ran, _ = believed(rows, RAN, day)
        target, model = believed(rows, VARIANT, day)
        odds = dict(zip(MEANS, ran.tolist(), strict=True))
        for i in range(DRAWS):
            arm = draw(odds, uniform("category", f"{seed}/{day}/{i}"))
            quality = dice.beta(STRENGTH * MEANS[arm], STRENGTH * (1 - MEANS[arm]))
            rows.append(judged(arm, day, float(quality)))
            log.append(("abcdefgh".index(arm), rows[-1].s / 1e6, target, model, ran))
    arm, reward, target, model, ran = (np.array(column) for column in zip(*log, strict=True))
    return rows, DrawLog(arm=arm, ran=ran, reward=reward, target=target, model=model), ran


@pytest.fixture(scope="module")
def lives():
    return [life(seed) for seed in range(60)]


def test_intervals_cover_the_means_of_arms_that_the_bandit_chose_itself(lives):
    """Good luck is followed up and bad luck is not; the scale of the evidence is estimated from the same grades."""
    day, truth = FIRST + timedelta(days=DAYS), np.array(list(MEANS.values()))
    inside = []
    for rows, _, _ in lives:
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


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_off_policy_estimates_are_unbiased_within_their_error(lives, name):
    """Against what the variant's odds were truly worth at the log's own moments."""
    truth = np.array([(log.target @ list(MEANS.values())).mean() for _, log, _ in lives])
    found = [getattr(compare(log).levels, name) for _, log, _ in lives]
    off = np.array([each.mean for each in found]) - truth
    errors = np.array([each.error for each in found])
    assert abs(off.mean()) < ONCE_IN_1000 * off.std(ddof=1) / len(off) ** 0.5
    assert off.std(ddof=1) == pytest.approx(np.sqrt((errors**2).mean()), rel=0.25)
    inside = [each.low <= mean <= each.high for each, mean in zip(found, truth, strict=True)]
    assert np.mean(inside) >= 0.85


def test_a_gain_is_unbiased_too_and_dr_needs_fewer_rows_than_ips(lives):
    """Against the difference of what both policies' odds were truly worth."""
    found = [compare(log) for _, log, _ in lives]
    truth = np.array([(log.target - ran).mean(axis=0) @ list(MEANS.values()) for _, log, ran in lives])
    off = np.array([each.gain.mean for each in found]) - truth
    assert abs(off.mean()) < ONCE_IN_1000 * off.std(ddof=1) / len(off) ** 0.5
    inside = [each.gain.low <= mean <= each.gain.high for each, mean in zip(found, truth, strict=True)]
    assert np.mean(inside) >= 0.85
    assert np.mean([each.levels.dr.error < each.levels.ips.error for each in found]) > 0.9


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
    return drawn.only(asked), seen


def test_a_holdout_finds_the_effect_that_looking_gets_wrong():
    """I110, I115: a lesson worth +.08 that comes in hard sessions looks harmful; its interval covers the truth."""
    dice = np.random.default_rng(17)
    pairs = [holdout(dice, helps=0.08) for _ in range(300)]
    found = [Bets.on(drawn).effect() for drawn, _ in pairs]
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
