"""Reports unknown rules in NOTIFY_RULES at the start."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from grading.monitoring.rule import MERGED_INTO, RULES


@register()
def check_notify_rules(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django's signature
    """An error if NOTIFY_RULES names a rule that doesn't exist."""
    unknown = [name for name in settings.NOTIFY_RULES if name not in RULES and name not in MERGED_INTO]
    message = f"NOTIFY_RULES names {', '.join(unknown)}; expected ids of rules"
    return [Error(message, hint="Use some of " + ", ".join(RULES), id="grading.E002")] if unknown else []
