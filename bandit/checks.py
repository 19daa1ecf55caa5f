"""System checks: selection's numbers make sense, and the database still refuses to change the ledger."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

from bandit.append_only import missing_triggers


@register()
def consumption_feedback(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django's signature
    """Seed 000's boost raises, its penalty lowers, and its window has days."""
    rules = {
        "CONSUMPTION_BOOST": (settings.CONSUMPTION_BOOST >= 1, "a factor of at least 1"),
        "CONSUMPTION_PENALTY": (0 < settings.CONSUMPTION_PENALTY <= 1, "a factor above 0, up to 1"),
        "CONSUMPTION_WINDOW_DAYS": (settings.CONSUMPTION_WINDOW_DAYS >= 1, "a number of days from 1"),
        "CONSUMPTION_MIN_SAMPLES": (settings.CONSUMPTION_MIN_SAMPLES >= 1, "a number of rewards from 1"),
        "CONSUMPTION_PER_DAY": (settings.CONSUMPTION_PER_DAY >= 0, "a number of sessions from 0"),
    }
    return [
        Error(f"{name} is {getattr(settings, name)!r}; expected {expected}", hint=f"Set {name}.", id="bandit.E001")
        for name, (holds, expected) in rules.items()
        if not holds
    ]


@register(Tags.database)
def ledger_is_append_only(
    app_configs: Any,  # noqa: ARG001 - Django's signature
    databases: Sequence[str] | None = None,
    **kwargs: Any,  # noqa: ARG001 - Django's signature
) -> list[CheckMessage]:
    """The triggers are there. SQLite drops a table's triggers when a migration rebuilds the table."""
    tables = ["bandit_ledgerentry", "bandit_rectifier"]
    return [
        Error(
            f"the database {alias!r} no longer refuses changes to its record: trigger {name} is missing",
            hint="Add a migration with bandit.append_only.append_only(...) for that table.",
            id="bandit.E002",
        )
        for alias in databases or ()
        if set(tables) <= set(connections[alias].introspection.table_names())
        for name in missing_triggers(tables, using=alias)
    ]
