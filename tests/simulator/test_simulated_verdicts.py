"""The simulated judge's verdicts are consistent, so that the site computes the very score that was asked for."""

import pytest

from grading.judging.core.verdict import Reached
from grading.judging.core.verdict_score import disagreement, score
from grading.simulator.verdicts import verdict

pytestmark = pytest.mark.pure

WEIGHTS = {"execution": 0.5, "goal_fit": 0.35, "harmlessness": 0.15}
SYSTEM = "\n".join(f"- {name} (weight {weight:g}): ?" for name, weight in WEIGHTS.items())


@pytest.mark.parametrize("weights", [WEIGHTS, {"depth": 0.75, "tone": 0.25}, {"harmlessness": 1.0}])
def test_the_dimensions_come_to_the_score(weights):
    schema = {"properties": {"dimensions": {"properties": {name: {} for name in weights}}}}
    system = "\n".join(f"- {name} (weight {weight:g}): ?" for name, weight in weights.items())
    for hundredths in range(101):
        wanted = hundredths / 100
        made = verdict(system, f"[1] shell bash\n{hundredths}", schema, score=wanted)
        dimensions = {name: round(value, 6) for name, value in made["dimensions"].items()}
        found = score(dimensions, weights, Reached(made["reached"]))
        assert (found.mean, disagreement(made["score"], found)) == (wanted, "")
        assert found.value == wanted or "harmlessness" in found.caps[0].why
        assert all(0 <= value <= 1 for value in dimensions.values())


def test_a_score_that_the_text_suggests_is_consistent_too():
    schema = {"properties": {"dimensions": {"properties": {name: {} for name in WEIGHTS}}}}
    for number in range(50):
        made = verdict(SYSTEM, f"[1] shell bash\n  | git push {number}", schema)
        found = score({k: round(v, 6) for k, v in made["dimensions"].items()}, WEIGHTS, Reached(made["reached"]))
        assert found.value == made["score"]
