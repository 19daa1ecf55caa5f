"""Append-only tables allow one kind of change: secrets replaced in the columns that hold text.

Only migrations use this, so what is here never changes: a new rule is a new function.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import refuse

# True while `grading.intake.redacting.permit` is open, in the transaction that opened it and in no other.
REDACTING = "EXISTS (SELECT 1 FROM grading_redaction WHERE closed_at IS NULL)"


def redactable(model: str, *columns: str) -> migrations.RunPython:
    """An operation: instead of no UPDATE at all, an append-only table allows one of these columns alone, while a
    `Redaction` is open in the same transaction.

    Every other column that the table has at this point is compared by the trigger. Repeat it after an operation that
    adds a column to the table or rebuilds it.
    """
    table = f"grading_{model.lower()}"
    message = f"{table} is append-only: add a new row, never change one."

    def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        fields = apps.get_model("grading", model)._meta.concrete_fields
        differs = "IS DISTINCT FROM" if schema_editor.connection.vendor == "postgresql" else "IS NOT"
        others = [f'OLD."{field.column}" {differs} NEW."{field.column}"' for field in fields if field.column not in columns]
        condition = f"(NOT {REDACTING} OR {' OR '.join(others)})"
        refuse(table, "no_update", "UPDATE", condition, message).code(apps, schema_editor)

    return migrations.RunPython(create, refuse(table, "no_update", "UPDATE", "1 = 1", message).code)
