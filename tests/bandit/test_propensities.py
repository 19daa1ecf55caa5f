"""Draws agree with the chances that are logged, whatever decides who may be chosen (I88)."""

import numpy as np
import pytest

from tests.bandit.agreement import agreement
from tests.bandit.eligibility_scene import REASONS, Scene, logged_chances

ARMS = ("a", "b", "c", "d")


@pytest.mark.django_db
def test_draws_are_as_logged_with_every_kind_of_eligibility():
    """400 decisions on a site where arms, policies and supply change all the time."""
    scene = Scene(seed=1)
    scene.run(400)
    assert scene.broken == []
    events = (*REASONS, "with a context", "with a factor", "overridden", "retried", "merged", "nothing eligible")
    assert [event for event in events if not scene.counts[event]] == []
    result = agreement((logged_chances(row), row.arm.name) for row in scene.selections)
    assert result.draws > 300
    assert result.p > 0.001
    assert result.least_p > 0.001


def draws(logged, actual, count=4000):
    """Draws by the `actual` chances beside the `logged` ones, among all arms and among the first three in turn."""
    dice = np.random.default_rng(2)
    for i in range(count):
        names = ARMS[: 4 - i % 2]
        chances = [np.array(each[: len(names)]) / sum(each[: len(names)]) for each in (logged, actual)]
        yield dict(zip(names, chances[0].tolist(), strict=True)), str(dice.choice(names, p=chances[1]))


@pytest.mark.pure
def test_true_chances_are_believed_and_wrong_ones_found():
    logged = (0.7, 0.2, 0.09, 0.01)
    result = agreement(draws(logged, logged))
    assert (result.draws, result.groups, result.freedom) == (4000, 2, 5)
    assert result.p > 0.01
    assert agreement(draws(logged, (0.67, 0.23, 0.09, 0.01))).p < 0.001
    assert agreement(draws(logged, (0.7, 0.2, 0.06, 0.04))).least_p < 0.001


@pytest.mark.pure
def test_under_true_chances_small_p_are_as_rare_as_they_should_be():
    dice = np.random.default_rng(6)
    small = 0
    for _ in range(300):
        chances = dice.dirichlet(np.ones(4), 60)
        rows = [(dict(zip(ARMS, row, strict=True)), str(dice.choice(ARMS, p=row))) for row in chances]
        small += agreement(rows).p < 0.1
    assert 15 <= small <= 45


@pytest.mark.pure
def test_rare_sets_are_compared_together():
    dice = np.random.default_rng(7)
    rows = []
    for _ in range(200):
        names = sorted(dice.choice(ARMS, 3, replace=False))
        rows.append((dict.fromkeys(names, 1 / 3), str(dice.choice(names))))
    rows = [row for row in rows if "a" in row[0] or dice.random() < 0.2]
    result = agreement(rows)
    assert result.draws == len(rows)
    assert result.groups >= 2
    assert result.p > 0.001
    assert agreement([]).p == 1
