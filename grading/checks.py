"""System checks of the settings: an invalid policy stops the site before it grades anything."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 - Django's name

from grading.vocabulary import Source


@register()
def judge_lease(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django's signature
    """A job's lease must last longer than the call to the judge."""
    lease, timeout = settings.JUDGE_LEASE_SECONDS, settings.JUDGE_TIMEOUT
    if lease > timeout:
        return []
    problem = f"JUDGE_LEASE_SECONDS is {lease:g}, JUDGE_TIMEOUT {timeout:g}: a slow answer would come after its lease"
    return [Warning(problem, hint="Set JUDGE_LEASE_SECONDS well above JUDGE_TIMEOUT", id="grading.W001")]


@register()
def chain_policy(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django's signature
    """Every source must have an evidence weight from 0 to 1."""
    weights = settings.EVIDENCE_WEIGHTS
    problems: list[CheckMessage] = []
    for source in Source:
        weight = weights.get(source.value)
        if not isinstance(weight, int | float) or not 0 <= weight <= 1:
            problems.append(
                Error(
                    f"EVIDENCE_WEIGHTS[{source.value!r}] is {weight!r}; expected a number from 0 to 1",
                    hint="Set a weight for every source: " + ", ".join(Source),
                    id="grading.E001",
                )
            )
    return problems
