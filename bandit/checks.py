"""System checks: the triggers that make the record append-only exist."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections


@register(Tags.database)
def ledger_is_append_only(
    app_configs: Any,  # noqa: ARG001 - Django's signature
    databases: Sequence[str] | None = None,
    **kwargs: Any,  # noqa: ARG001 - Django's signature
) -> list[CheckMessage]:
    """Errors for missing triggers. SQLite drops a table's triggers when a migration rebuilds the table.

    A database that doesn't have all of the tables, because it isn't migrated yet, passes.
    """
    record = ("ledgerentry", "calibrationversion", "policyversion", "armevent", "breakdecision")
    tables = [f"bandit_{name}" for name in record]
    errors: list[CheckMessage] = []
    for alias in databases or ():
        if not set(tables) <= set(connections[alias].introspection.table_names()):
            continue
        for name in missing_triggers(tables, using=alias):
            message = f"the database {alias!r} no longer refuses changes to its record: trigger {name} is missing"
            hint = "Add a migration with append_only(...) of bandit/migrations/_append_only.py for that table."
            errors.append(Error(message, hint=hint, id="bandit.E002"))
    return errors


def missing_triggers(tables: Iterable[str], using: str = "default") -> list[str]:
    """Names of the append-only triggers that the database lacks for these tables."""
    connection = connections[using]
    query = (
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
        if connection.vendor == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        present = {name for (name,) in cursor.fetchall()}
    expected = (f"{table}_{rule}" for table in tables for rule in ("no_update", "no_delete"))
    return [name for name in expected if name not in present]
