"""What is drawn agrees with the chances that are logged, whatever decides who may be chosen (I88)."""

import numpy as np
import pytest

from benchmarks.deciding.agreement import agreement
from benchmarks.deciding.scene import KINDS, Scene, odds_of

ARMS = ("a", "b", "c", "d")


@pytest.mark.django_db
def test_draws_are_as_logged_with_every_kind_of_eligibility():
    """`benchmarks/propensities.py` does the same with 20,000 decisions."""
    scene = Scene(seed=1)
    scene.run(400)
    assert scene.broken == []
    kinds = (*KINDS, "with a context", "with a factor", "insisted on", "asked again", "merged", "nothing eligible")
    assert [kind for kind in kinds if not scene.seen[kind]] == []
    found = agreement((odds_of(row), row.arm.name) for row in scene.drawn)
    assert found.draws > 300
    assert found.p > 0.001
    assert found.least_p > 0.001


def draws(told, drawn, count=4000):
    """So many draws by `drawn`, logged as `told`, among all arms and among the first three in turn."""
    dice = np.random.default_rng(2)
    for i in range(count):
        names = ARMS[: 4 - i % 2]
        chances = [np.array(each[: len(names)]) / sum(each[: len(names)]) for each in (told, drawn)]
        yield dict(zip(names, chances[0].tolist(), strict=True)), str(dice.choice(names, p=chances[1]))


@pytest.mark.pure
def test_true_chances_are_believed_and_wrong_ones_found():
    told = (0.7, 0.2, 0.09, 0.01)
    found = agreement(draws(told, told))
    assert (found.draws, found.groups, found.freedom) == (4000, 2, 5)
    assert found.p > 0.01
    assert agreement(draws(told, (0.67, 0.23, 0.09, 0.01))).p < 0.001
    assert agreement(draws(told, (0.7, 0.2, 0.06, 0.04))).least_p < 0.001


@pytest.mark.pure
def test_under_true_chances_small_p_are_as_rare_as_they_should_be():
    dice = np.random.default_rng(6)
    small = 0
    for _ in range(300):
        told = dice.dirichlet(np.ones(4), 60)
        rows = [(dict(zip(ARMS, odds, strict=True)), str(dice.choice(ARMS, p=odds))) for odds in told]
        small += agreement(rows).p < 0.1
    assert 15 <= small <= 45


@pytest.mark.pure
def test_seldom_sets_are_looked_at_together():
    dice = np.random.default_rng(7)
    rows = []
    for _ in range(200):
        names = sorted(dice.choice(ARMS, 3, replace=False))
        rows.append((dict.fromkeys(names, 1 / 3), str(dice.choice(names))))
    rows = [row for row in rows if "a" in row[0] or dice.random() < 0.2]
    found = agreement(rows)
    assert found.draws == len(rows)
    assert found.groups >= 2
    assert found.p > 0.001
    assert agreement([]).p == 1
