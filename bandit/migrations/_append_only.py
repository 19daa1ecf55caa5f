"""Rules the database itself enforces, on SQLite and PostgreSQL alike: a refusal is a trigger with a clear sentence.

Rebuilding a table on SQLite (most `AlterField`s) silently drops its triggers. `bandit.checks` finds that out, and a
migration that alters such a table repeats its `append_only` operations afterwards. Only migrations use these, so what is
here never changes: a new rule is a new function.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# True while `bandit.erasure.permit` is open, in the transaction that opened it and in no other.
ERASING = "EXISTS (SELECT 1 FROM bandit_erasure WHERE closed_at IS NULL)"


def append_only(app_label: str, model: str) -> list[migrations.RunPython]:
    """Operations that make a model's table append-only: no UPDATE ever, DELETE only under `bandit.erasure.permit`.

    Use as `operations = [*append_only("grading", "Grade")]`, in a migration that depends on bandit's `0002_triggers`.
    """
    table = f"{app_label}_{model.lower()}"
    only = "only an erasure (bandit.erasure.permit) may delete its rows."
    return [
        refuse(table, "no_update", "UPDATE", "1 = 1", f"{table} is append-only: add a new row, never change one."),
        refuse(table, "no_delete", "DELETE", f"NOT {ERASING}", f"{table} is append-only: {only}"),
    ]


def refuse(table: str, name: str, event: str, condition: str, message: str) -> migrations.RunPython:
    """An operation: refuse `event` (INSERT, UPDATE or DELETE) on rows where the SQL `condition` on OLD and NEW holds.

    Both databases then raise IntegrityError with `message`, which may contain no single quote. Reversible.
    """
    trigger = f"{table}_{name}"

    def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
        _drop(trigger, table, schema_editor)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(_function(trigger, event, condition, message), params=None)
            body = f"EXECUTE FUNCTION {trigger}()"
        else:
            body = f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{message}'); END"
        schema_editor.execute(f"CREATE TRIGGER {trigger} BEFORE {event} ON {table} FOR EACH ROW {body}", params=None)

    return migrations.RunPython(create, drop(table, name).code)


def drop(table: str, name: str) -> migrations.RunPython:
    """An operation: take that refusal away, for good or while a migration rebuilds a table that it reads."""

    def run(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
        _drop(f"{table}_{name}", table, schema_editor)

    return migrations.RunPython(run, migrations.RunPython.noop)


def _drop(trigger: str, table: str, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {table}", params=None)
        schema_editor.execute(f"DROP FUNCTION IF EXISTS {trigger}()", params=None)
    else:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {trigger}", params=None)


def _function(trigger: str, event: str, condition: str, message: str) -> str:
    """What PostgreSQL runs: its WHEN clause may not look at other rows, a function may."""
    return (
        f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN IF {condition} THEN "
        f"RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation', MESSAGE = '{message}'; "
        f"END IF; RETURN {'OLD' if event == 'DELETE' else 'NEW'}; END $body$"
    )
