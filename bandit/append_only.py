"""Rules the database itself enforces, on SQLite and PostgreSQL alike: a refusal is a trigger with a clear sentence.

Rebuilding a table on SQLite (most `AlterField`s) silently drops its triggers; `missing_triggers` finds that out, and
a migration that alters such a table repeats its `append_only` operation afterwards.
"""

from collections.abc import Iterable, Sequence

from django.apps.registry import Apps
from django.db import connections
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

# True while `bandit.erasure.permit` is open, in the transaction that opened it and in no other.
ERASING = "EXISTS (SELECT 1 FROM bandit_erasure WHERE closed_at IS NULL)"


class Refuse(Operation):
    """Refuses `event` (INSERT, UPDATE or DELETE) on rows for which the SQL `condition` over OLD and NEW holds.

    The message may contain no single quote. Both databases raise IntegrityError with it.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, table: str, name: str, event: str, condition: str, message: str) -> None:
        self.table, self.name, self.event, self.condition, self.message = table, name, event, condition, message

    @property
    def trigger(self) -> str:
        return f"{self.table}_{self.name}"

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Triggers are no part of the models' state."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState | Apps,
        to_state: ProjectState | Apps,
    ) -> None:
        create = self.for_postgresql if schema_editor.connection.vendor == "postgresql" else self.for_sqlite
        self.database_backwards(app_label, schema_editor, from_state, to_state)
        for statement in create():
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState | Apps,
        to_state: ProjectState | Apps,
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {self.trigger} ON {self.table}", params=None)
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {self.trigger}()", params=None)
        else:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {self.trigger}", params=None)

    def for_sqlite(self) -> Sequence[str]:
        return [
            f"CREATE TRIGGER {self.trigger} BEFORE {self.event} ON {self.table} FOR EACH ROW WHEN {self.condition} "
            f"BEGIN SELECT RAISE(ABORT, '{self.message}'); END"
        ]

    def for_postgresql(self) -> Sequence[str]:
        row = "OLD" if self.event == "DELETE" else "NEW"
        return [
            f"CREATE FUNCTION {self.trigger}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN "
            f"IF {self.condition} THEN RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation', "
            f"MESSAGE = '{self.message}'; END IF; RETURN {row}; END $body$",
            f"CREATE TRIGGER {self.trigger} BEFORE {self.event} ON {self.table} "
            f"FOR EACH ROW EXECUTE FUNCTION {self.trigger}()",
        ]

    def describe(self) -> str:
        return f"Refuse {self.event} on {self.table}: {self.message}"


def append_only(app_label: str, model: str) -> list[Refuse]:
    """Operations that make a model's table append-only: no UPDATE ever, DELETE only under `bandit.erasure.permit`.

    Use as `operations = [*append_only("grading", "Grade")]`, in a migration that depends on bandit's.
    """
    table = f"{app_label}_{model.lower()}"
    return [
        Refuse(table, "no_update", "UPDATE", "1 = 1", f"{table} is append-only: add a new row, never change one."),
        Refuse(
            table,
            "no_delete",
            "DELETE",
            f"NOT {ERASING}",
            f"{table} is append-only: only an erasure (bandit.erasure.permit) may delete its rows.",
        ),
    ]


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
