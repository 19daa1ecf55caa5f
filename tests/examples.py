"""How many examples Hypothesis makes, and which: the same ones in every run, or fresh ones where one explores.

`tests/conftest.py` loads USUAL; `make explore` takes EXPLORE by Hypothesis' own `--hypothesis-profile`.
"""

from hypothesis import HealthCheck, Phase, settings

USUAL, EXPLORE = "usual", "explore"
TIMES = 10  # as many examples where one explores
# How slow a machine is says nothing of the code: no time limits in either.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile(USUAL, derandomize=True, max_examples=100, **PATIENT)
# Where CI is set Hypothesis itself begins with the same examples in every run.
settings.register_profile(EXPLORE, derandomize=False, max_examples=TIMES * 100, print_blob=True, **PATIENT)


def quick_to_fail() -> None:
    """A quarter of the usual examples, and none made smaller: where that one fails is all there is to know."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(USUAL, derandomize=True, max_examples=25, phases=phases, **PATIENT)
    settings.load_profile(USUAL)


def examples(count: int, *allowed: HealthCheck) -> settings:
    """So many examples for a test that can't have the profile's hundred, and as many times more where one explores.

    `allowed` are health checks that the test is meant to fail.
    """
    profile = settings()
    checks = [*profile.suppress_health_check, *allowed]
    return settings(max_examples=count * profile.max_examples // 100, suppress_health_check=checks)
