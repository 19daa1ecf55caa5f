"""How likely each arm is to be chosen: the numbers of P(best), and of what becomes of it under a floor.

A decision keeps the chances that it was made with; nothing stored names a version of the formula.
"""

import numpy as np
import pytest
from scipy import special
from scipy.special import betainc

from bandit.core.propensity import p_best, propensities
from tests import golden

pytestmark = pytest.mark.pure

WHAT = "P(best)"
TABLE = [
    # what is tried; each arm's α; its β; its chance of being the best
    ("one", (3,), (4,), (1.0,)),
    ("two alike", (6, 6), (6, 6), (0.5, 0.5)),
    ("the prior and little more", (6, 9, 7), (6, 7, 9), (0.314486234, 0.542197377, 0.143316389)),
    ("one ahead", (60, 50, 40), (40, 50, 60), (0.922591657, 0.076174907, 0.001233436)),
    ("one far behind", (600, 590, 100), (400, 410, 900), (0.67570957, 0.32429043, 0.0)),
    ("two, closed form 2/3", (2, 1), (1, 1), (0.666666508, 0.333333492)),
    ("one narrow among wide", (7, 30000, 8, 5), (5, 20000, 8, 9), (0.428458338, 0.405802115, 0.147075214, 0.018664333)),
    ("all narrow", (50000, 50100, 49900), (50000, 50000, 50000), (0.319953253, 0.470504298, 0.209542449)),
    ("below 1", (0.3, 0.9, 1.2), (9.8, 12, 30), (0.170159674, 0.538015286, 0.29182504)),
    ("far below 1", (0.1, 0.2), (0.1, 0.3), (0.556215109, 0.443784891)),
    ("hardly bounded", (9.8, 12, 30), (1, 1.1, 1.5), (0.261725843, 0.271248427, 0.46702573)),
    (
        "many",
        (10.0, 10.1, 10.2, 10.3, 10.4, 10.5, 20),
        (20, 20, 20, 20, 20, 20, 20),
        (0.044938721, 0.046966009, 0.049058369, 0.051216891, 0.05344266, 0.055736752, 0.698640599),
    ),
]
FLOORS = [
    # floor, chances before, chances after
    (0.01, (1.0, 0.0, 0.0), (0.98, 0.01, 0.01)),
    (0.05, (0.7, 0.2, 0.1), (0.645, 0.22, 0.135)),
    (0.1, (3.0, 1.0), (0.7, 0.3)),
    (0.25, (1.0, 0.0), (0.75, 0.25)),
    (0.26, (1.0, 0.0), (0.75, 0.25)),
    (0.4, (0.6, 0.4, 0.0, 0.0), (0.425, 0.325, 0.125, 0.125)),
    (0.0, (0.6, 0.4), (0.6, 0.4)),
    (0.3, (1.0,), (1.0,)),
]


def rounded(values):
    return tuple(round(float(value), 9) for value in values)


@pytest.mark.parametrize(("alpha", "beta", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_chance_of_being_the_best(alpha, beta, expected):
    found = p_best(np.array(alpha, dtype=float), np.array(beta, dtype=float))
    golden.hold_unversioned(rounded(found), expected, what=WHAT)


@pytest.mark.parametrize(("floor", "chances", "expected"), FLOORS)
def test_no_eligible_arm_is_quite_given_up(floor, chances, expected):
    golden.hold_unversioned(rounded(propensities(np.array(chances), floor=floor)), expected, what=WHAT)


@pytest.mark.parametrize(
    ("arms", "exact", "expected"),
    [
        # The best is sought by 16 halvings among 256 leaders; then once where it begins, and at the end of each block.
        (3, 3 * 16 + 3, (0.335593108, 0.333296885, 0.331110007)),
        (300, 256 * 16 + 300 * 3, (0.002334012, 0.002039554, 0.001784069)),
        (4_000, 256 * 16 + 4_000 * 16, (0.000159956, 0.000128617, 0.00010353)),
    ],
)
def test_the_exact_function_is_asked_for_at_the_ends_of_blocks_alone(arms, exact, expected, monkeypatch):
    """Between them the density says how F grows; an arm whose density did not would cost a thousand times as much."""
    asked = []

    def counted(alpha, beta, x):
        found = betainc(alpha, beta, x)
        asked.append(found.size)
        return found

    monkeypatch.setattr(special, "betainc", counted)
    alpha, beta = 30.0 + np.arange(arms) % 7, 30.0 + np.arange(arms) % 5
    golden.hold_unversioned(rounded(p_best(alpha, beta)[:3]), expected, what=WHAT)
    assert sum(asked) == exact


def test_a_last_block_of_a_single_step_counts():
    """So many arms are worked on in blocks of 64 points, and most of what these four kinds weigh is close to 1."""
    number = np.arange(4_096)
    alpha, beta = np.where(number % 2, 0.1, 0.3), np.where(number % 3, 0.1, 0.2)
    found = p_best(alpha, beta, points=66)
    golden.hold_unversioned(rounded(found[:4]), (0.00007369, 0.000266568, 0.000409591, 0.000039111), what=WHAT)
