"""A constraint of a table with triggers takes another's place, without their being lost.

Only migrations use this, so what is here never changes.
"""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


class ReplaceConstraint(migrations.AddConstraint):
    """In the place of the constraint of the same name: SQLite makes the table anew once, with the triggers it had."""

    def state_forwards(self, app_label: str, state: Any) -> None:
        state.remove_constraint(app_label, self.model_name_lower, self.constraint.name)
        super().state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        old = from_state.models[app_label, self.model_name_lower].get_constraint_by_name(self.constraint.name)
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.remove_constraint(model, old)
            schema_editor.add_constraint(model, self.constraint)
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s ORDER BY name",
                [model._meta.db_table],  # noqa: SLF001 - Django's documented API
            )
            triggers = [sql for (sql,) in cursor.fetchall()]
        schema_editor._remake_table(model)  # type: ignore[attr-defined]  # noqa: SLF001 - SQLite's, as its own AlterField does
        for sql in triggers:
            schema_editor.execute(sql, params=None)
