"""Arms of two parts: what the others say of the parts comes first, an arm's own rewards on top, and nothing twice."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.policy import Policy
from bandit.core.pooling import as_independent, pool
from bandit.core.posterior import fold
from bandit.core.propensity import p_best
from bandit.core.table import RewardRow
from tests.examples import examples

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
HARNESSES, MODELS = ("cc", "codex", "gptme", "goose"), ("haiku", "opus", "sonnet", "luna", "terra")
PARTS = {f"{harness}/{model}": (harness, model) for harness in HARNESSES for model in MODELS}
ARMS = tuple(sorted(PARTS))
ALONE = Policy(weights={"judge": 1.0}, evidence_scale=6.0)
POOLED = replace(ALONE, parts=PARTS)
OF_HARNESS = dict(zip(HARNESSES, (0.12, 0.04, -0.04, -0.12), strict=True))
OF_MODEL = dict(zip(MODELS, (-0.1, 0.1, 0.05, 0.0, -0.05), strict=True))


def row(arm, value, *, age=1, n=1):
    return RewardRow(
        arm=arm,
        source="judge",
        day=TODAY - timedelta(days=age),
        n=n,
        s=n * round(value * 1e6),
        q=n * round((value**2 + 0.04) * 1e12),
    )


def worth(arm):
    harness, model = PARTS[arm]
    return 0.5 + OF_HARNESS[harness] + OF_MODEL[model]


def history(*without, n=10):
    """Rewards of every other arm in an additive world, a fortnight of them."""
    return [row(arm, worth(arm), age=age, n=n) for arm in ARMS if arm not in without for age in (1, 5, 14)]


def read(rows, policy=POOLED, arms=ARMS, today=TODAY):
    return fold(rows, arms=arms, policy=policy, today=today)


def bits(posterior, *names):
    at = [posterior.names.index(name) for name in names or posterior.names]
    return posterior.alpha[at].tobytes() + posterior.beta[at].tobytes()


@pytest.mark.parametrize("arm", ["cc/opus", "goose/haiku", "codex/sonnet"])
def test_an_arm_never_tried_starts_where_its_parts_stand(arm):
    found, alone = (read(history(arm), policy).arms[arm] for policy in (POOLED, ALONE))
    assert found.mean == pytest.approx(worth(arm), abs=0.03)
    assert found.low < worth(arm) < found.high
    assert 0.1 < found.high - found.low < alone.high - alone.low
    assert (found.evidence, found.shared.parts) == ((), PARTS[arm])
    assert (found.shared.mean, found.shared.strength) == (pytest.approx(found.mean), found.alpha + found.beta)


def test_a_new_harness_with_a_known_model_starts_by_the_model_and_is_less_sure():
    parts = PARTS | {"new/opus": ("new", "opus"), "new/fresh": ("new", "fresh")}
    arms = read(history(), replace(ALONE, parts=parts), arms=[*ARMS, "new/opus", "new/fresh"]).arms
    assert arms["new/opus"].mean > arms["new/fresh"].mean + 0.03
    assert arms["new/fresh"].mean == pytest.approx(0.5, abs=0.03)
    known, half, nothing = (arms[name].high - arms[name].low for name in ("cc/opus", "new/opus", "new/fresh"))
    assert known < half < nothing


def test_a_harness_without_a_model_shares_the_harness_alone():
    parts = PARTS | {"cc": ("cc", ""), "goose": ("goose", "")}
    arms = read(history(), replace(ALONE, parts=parts), arms=[*ARMS, "cc", "goose"]).arms
    assert arms["cc"].mean - arms["goose"].mean == pytest.approx(0.24, abs=0.08)
    assert arms["cc"].high - arms["cc"].low > arms["cc/opus"].high - arms["cc/opus"].low


def test_an_empty_part_is_shared_with_nobody():
    parts = {"a": ("", ""), "b": ("", "")}
    policy = replace(ALONE, parts=parts)
    told = read([row("a", 0.9, n=500)], policy, arms=("a", "b")).arms["b"]
    assert told.mean < 0.75
    assert told.alpha + told.beta == pytest.approx(12)


def test_own_rewards_win_over_parts_in_the_end():
    """The interaction is small, never nothing: one arm of a good harness and a good model is bad."""
    few, many = (read([*history("cc/opus"), row("cc/opus", 0.2, n=n)]).arms["cc/opus"].mean for n in (3, 400))
    assert few > 0.4
    assert many == pytest.approx(0.2, abs=0.03)


def test_its_own_rewards_count_once():
    """An arm's prior leaves its own word out: with nobody else, it is that of an arm without any."""
    found = read([row("cc/opus", 0.9, n=1000)], arms=("cc/opus",))
    assert (found.pooled.mean, found.pooled.strength) == (pytest.approx([0.5]), pytest.approx([12.0]))
    told = read([row("cc/opus", 0.9, n=1000), row("cc/haiku", 0.4)], arms=("cc/opus", "cc/haiku")).pooled
    assert told.mean[1] < 0.5 < told.mean[0]


def test_where_parts_tell_nothing_they_say_little():
    dice = np.random.default_rng(3)
    of = dict(zip(ARMS, dice.uniform(0.2, 0.8, len(ARMS)), strict=True))
    rows = [row(arm, of[arm], n=40) for arm in ARMS]
    found = read(rows)
    assert found.pooled.strength.max() < 20
    assert [each.mean for each in found.arms.values()] == pytest.approx(list(of.values()), abs=0.05)


@pytest.mark.parametrize("arms", [("cc/opus",), ("cc/opus", "codex/opus")])
def test_few_arms_without_rewards_are_the_plain_prior(arms):
    found = read([], replace(ALONE, parts={arm: PARTS[arm] for arm in arms}), arms=arms)
    assert found.alpha.tolist() == pytest.approx([6.0] * len(arms))
    assert found.beta.tolist() == pytest.approx([6.0] * len(arms))
    assert found.chance_of_best(arms) == pytest.approx(dict.fromkeys(arms, 1 / len(arms)))


def test_the_days_rewards_of_one_arm_move_no_other_today():
    """Parts are read from the days before: what they share of a day, they share from the next day on."""
    before, after = read(history()), read([*history(), row("cc/opus", 0.0, age=0, n=900)])
    others = [name for name in ARMS if name != "cc/opus"]
    assert bits(before, *others) == bits(after, *others)
    assert bits(before, "cc/opus") != bits(after, "cc/opus")
    tomorrow = TODAY + timedelta(days=1)
    assert bits(read(history(), today=tomorrow), "cc/haiku") != bits(
        read([*history(), row("cc/opus", 0.0, age=0, n=900)], today=tomorrow), "cc/haiku"
    )


def test_without_parts_every_bit_is_as_it_was():
    rows = [*history(), row("cc/opus", 0.3, age=0)]
    plain = read(rows, ALONE)
    assert read(rows, replace(ALONE, parts={})).version == plain.version
    assert repr(POOLED) == repr(ALONE)
    assert plain.pooled is None
    assert plain.arms["cc/opus"].shared is None
    assert read(rows).version != plain.version


def test_arms_without_parts_beside_others_keep_to_themselves():
    arms = [*ARMS, "lone"]
    found = read([*history(), row("lone", 0.9, n=50)], arms=arms)
    assert found.arms["lone"].shared is None
    assert found.arms["lone"].mean > 0.8


rewards = st.builds(
    row,
    arm=st.sampled_from(ARMS),
    value=st.integers(0, 10**6).map(lambda micro: micro / 1e6),
    age=st.integers(0, 40),
)


@examples(40)
@given(rows=st.lists(rewards, max_size=30), data=st.data())
def test_order_splitting_and_undone_rows_change_no_bit_of_what_is_shared(rows, data):
    shuffled, undone = data.draw(st.permutations(rows)), data.draw(st.lists(rewards, max_size=3))
    back = [replace(each, n=-1, s=-each.s, q=-each.q) for each in undone]
    halves = [replace(each, n=2, s=2 * each.s, q=2 * each.q) for each in rows]
    one, other = read(rows), read([*undone, *shuffled, *back])
    assert (bits(one), one.version) == (bits(other), other.version)
    assert one.pooled.shared.tobytes() == other.pooled.shared.tobytes()
    assert read(halves).version == read([*rows, *shuffled]).version
    assert one.chance_of_best(ARMS) == other.chance_of_best(ARMS)


@examples(40)
@given(rows=st.lists(rewards, max_size=60), policy=st.sampled_from([POOLED, replace(POOLED, evidence_scale=None)]))
def test_whatever_comes_the_posterior_is_one(rows, policy):
    found = read(rows, policy)
    assert (found.alpha > 0).all()
    assert (found.beta > 0).all()
    assert (found.alpha + found.beta >= 12 - 1e-9).all()
    chance = list(found.chance_of_best(ARMS).values())
    assert sum(chance) == pytest.approx(1)
    assert min(chance) >= 0
    shared = found.pooled.shared
    assert np.abs(shared - shared.T).max() < 1e-12
    assert np.linalg.eigvalsh(shared).min() > -1e-9


def test_the_prior_agrees_with_the_joint_normal_worked_out_at_length():
    """At each point of the grid: the whole covariance of all arms, without the arm's own mean, by linear algebra."""
    from bandit.core import pooling

    parts, dice = [PARTS[arm] for arm in ARMS], np.random.default_rng(5)
    n = dice.integers(0, 9, len(ARMS)).astype(float)
    y = np.where(n > 0, dice.uniform(0.3, 0.7, len(ARMS)), 0)
    found = pool(parts, n, n * y, mean=0.5, scale=4.0, least=5.0)
    same = [np.array([[a[k] == b[k] for b in parts] for a in parts], dtype=float) for k in (0, 1)]
    told = []
    for first in pooling.DEVIATIONS:
        for second in pooling.DEVIATIONS:
            for both in pooling.DEVIATIONS:
                whole = 0.25 / 6 + first**2 * same[0] + second**2 * same[1] + both**2 * np.eye(len(parts))
                log = -((first / 0.15) ** 2 + (second / 0.15) ** 2 + (both / 0.12) ** 2) / 2
                seen = np.flatnonzero(n)
                noisy = whole[np.ix_(seen, seen)] + np.diag(0.25 / (4 * n[seen]))
                off = y[seen] - 0.5
                log -= (np.linalg.slogdet(noisy)[1] + off @ np.linalg.solve(noisy, off)) / 2
                means, variances = [], []
                for arm in range(len(parts)):
                    others = np.flatnonzero((n > 0) & (np.arange(len(parts)) != arm))
                    noisy = whole[np.ix_(others, others)] + np.diag(0.25 / (4 * n[others]))
                    gain = np.linalg.solve(noisy, whole[others, arm])
                    means.append(0.5 + gain @ (y[others] - 0.5))
                    variances.append(whole[arm, arm] - gain @ whole[others, arm])
                told.append((log, np.array(means), np.array(variances)))
    weight = np.exp(np.array([each[0] for each in told]) - max(each[0] for each in told))
    weight /= weight.sum()
    means, variances = (np.array([each[k] for each in told]) for k in (1, 2))
    mean = weight @ means
    variance = weight @ (variances + (means - mean) ** 2)
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert found.strength == pytest.approx(np.maximum(mean * (1 - mean) / variance - 1, 5), rel=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_p_best_of_arms_that_share_is_that_of_the_joint_distribution(seed):
    """Betas without the covariance miss it by up to .1; what is left is .03 at most, .02 on average."""
    dice = np.random.default_rng(seed)
    worth = {arm: 0.5 + 0.08 * dice.normal() for arm in ARMS}
    found = read([row(arm, worth[arm], n=int(dice.integers(1, 4))) for arm in dice.choice(ARMS, 12, replace=False)])
    strength = found.alpha + found.beta
    mean = found.alpha / strength
    shared = found.pooled.shared.copy()
    np.fill_diagonal(shared, mean * (1 - mean) / (strength + 1))
    drawn = dice.multivariate_normal(mean, shared, 200_000, method="eigh")
    joint = np.bincount(drawn.argmax(axis=1), minlength=len(mean)) / 200_000
    best = np.array(list(found.chance_of_best(ARMS).values()))
    assert np.abs(best - joint).max() < 0.03
    assert np.abs(best - joint).max() < np.abs(p_best(found.alpha, found.beta) - joint).max()


def test_what_all_have_in_common_decides_nothing():
    """Where every pair shares the same covariance, it is taken out of every arm whole."""
    alpha, beta = np.array([30.0, 28, 25, 20]), np.array([20.0, 22, 25, 30])
    strength = alpha + beta
    variance = (alpha / strength) * (beta / strength) / (strength + 1)
    left = as_independent(alpha, beta, np.full((4, 4), 0.002), np.full(4, 0.25))
    total = left[0] + left[1]
    assert left[0] / total == pytest.approx(alpha / strength)
    assert (left[0] / total) * (left[1] / total) / (total + 1) == pytest.approx(variance - 0.002, rel=1e-3)
