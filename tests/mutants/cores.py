"""The cores whose tests are themselves tested, and the mutants that no test can tell from the code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The `sources` that are changed, and the `tests` that have to notice.

    `only`: the functions and classes that belong to the core, where not all of a source does. `django`: the tests need
    Django to be set up, so that each mutant takes seconds.
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    only: frozenset[str] = frozenset()
    django: bool = False


CORES = {
    "decide": Core(
        sources=("grading/reward/decide.py", "grading/reward/chain.py"),
        tests=(
            "tests/reward/test_decide_golden.py",
            "tests/reward/test_chain.py",
            "tests/reward/test_contested.py",
        ),
    ),
    "trajectory": Core(
        sources=("grading/reward/trajectory.py", "grading/reward/trajectory_formula.py"),
        tests=(
            "tests/reward/test_trajectory_golden.py",
            "tests/reward/test_trajectory_formula.py",
            "tests/reward/test_trajectory.py",
        ),
    ),
    "consumption": Core(
        sources=("grading/reward/consumption.py",),
        tests=("tests/reward/test_consumption_golden.py", "tests/reward/test_consumption.py"),
    ),
    "calibrate": Core(
        sources=("bandit/core/calibration.py",),
        tests=("tests/bandit/test_calibration.py", "tests/bandit/test_posterior_golden.py"),
    ),
    "posterior": Core(
        sources=("bandit/core/posterior.py",),
        tests=(
            "tests/bandit/test_posterior_golden.py",
            "tests/bandit/test_posterior.py",
            "tests/bandit/test_pooling.py",
        ),
    ),
    "propensity": Core(
        sources=("bandit/core/propensity.py",),
        tests=("tests/bandit/test_propensity_golden.py", "tests/bandit/test_propensity.py"),
    ),
    "selection": Core(
        sources=("bandit/core/thompson.py",),
        tests=("tests/bandit/test_thompson.py",),
    ),
    "eligibility": Core(
        sources=("bandit/eligibility.py",),
        tests=("tests/bandit/test_eligibility.py",),
        only=frozenset(
            {
                "Circumstances",
                "is_on_probation",
                "out_of_use",
                "reason_against",
                "consumption_feedback",
            }
        ),
        django=True,
    ),
    "api_errors": Core(
        sources=("grading/judging/core/api_errors.py",),
        tests=("tests/judging/core/test_api_errors.py",),
    ),
    "verdict": Core(
        sources=("grading/judging/core/verdict.py", "grading/judging/core/verdict_score.py"),
        tests=(
            "tests/judging/core/test_verdict_score_golden.py",
            "tests/judging/core/test_verdict_score.py",
            "tests/judging/core/test_verdict.py",
        ),
    ),
}
