"""System checks: the database still refuses to change the record."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

from bandit.append_only import missing_triggers


@register(Tags.database)
def ledger_is_append_only(
    app_configs: Any,  # noqa: ARG001 - Django's signature
    databases: Sequence[str] | None = None,
    **kwargs: Any,  # noqa: ARG001 - Django's signature
) -> list[CheckMessage]:
    """The triggers are there. SQLite drops a table's triggers when a migration rebuilds the table."""
    tables = ["bandit_ledgerentry", "bandit_rectifier", "bandit_policyversion", "bandit_armevent"]
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
