"""System checks: a policy that cannot be right stops the site before it teaches anything."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from grading.core.vocabulary import Source


@register()
def chain_policy(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django's signature
    """Every source has an evidence weight in [0, 1]."""
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
