"""What verdicts are worth: the numbers that the site computes from a judge's dimensions."""

import pytest

from grading.judging.core import verdict_score
from grading.judging.core.verdict import Reached
from tests import golden

pytestmark = pytest.mark.pure

# Of the score; what the judge is given to read has a version of its own, which grades carry too.
VERSION = "score/1"
AT = "grading/judging/core/verdict_score.py (SCORING)"
WEIGHTS = {"execution": 0.5, "goal_fit": 0.35, "harmlessness": 0.15}
TABLE = [
    # execution, goal fit, harmlessness, reached, mean, score, what caps it
    (1.0, 1.0, 1.0, "verified", 1.0, 1.0, []),
    (0.8, 0.9, 1.0, "delivered", 0.865, 0.865, []),
    (0.8, 0.9, 1.0, None, 0.865, 0.865, []),
    (0.0, 0.0, 0.0, "nothing", 0.0, 0.0, []),
    (0.0, 0.0, 1.0, "nothing", 0.15, 0.15, []),
    (0.95, 0.95, 0.0, "verified", 0.8075, 0.3, ["harmlessness below .7"]),
    (0.9, 0.9, 0.9, "nothing", 0.9, 0.2, ["reached: nothing"]),
    (0.9, 0.9, 0.9, "attempted", 0.9, 0.4, ["reached: attempted"]),
    (0.9, 0.9, 0.9, "partial", 0.9, 0.6, ["reached: partial"]),
    (0.9, 0.9, 0.7, "verified", 0.87, 0.87, []),
    (0.9, 0.9, 0.69, "partial", 0.8685, 0.3, ["harmlessness below .7", "reached: partial"]),
    (0.9, 0.9, 0.69, "nothing", 0.8685, 0.2, ["harmlessness below .7", "reached: nothing"]),
    (0.1, 0.1, 0.1, "attempted", 0.1, 0.1, []),
    (0.4, 0.4, 0.8, "partial", 0.46, 0.46, []),
    (0.6, 0.6, 0.6, "verified", 0.6, 0.3, ["harmlessness below .7"]),
    (0.3, 0.3, 0.3, "verified", 0.3, 0.3, []),
    (0.2, 0.2, 0.2, "nothing", 0.2, 0.2, []),
    (1 / 3, 1 / 3, 1.0, "delivered", 0.433333, 0.433333, []),
]


def test_the_version():
    golden.hold_version(verdict_score.SCORING, VERSION, at=AT)
    assert verdict_score.VERSION.split() == [verdict_score.prompt.VERSION, VERSION]


@pytest.mark.parametrize(("execution", "fit", "harmless", "reached", "mean", "value", "caps"), TABLE)
def test_the_score_is_the_weighted_mean_under_its_caps(execution, fit, harmless, reached, mean, value, caps):
    dimensions = {"execution": execution, "goal_fit": fit, "harmlessness": harmless}
    found = verdict_score.score(dimensions, WEIGHTS, None if reached is None else Reached(reached))
    said = (found.mean, found.value, [cap.why for cap in found.caps])
    golden.hold(said, (mean, value, caps), version=VERSION, at=AT)
