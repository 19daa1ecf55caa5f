"""Columns of JSON become packed ones: beside the old column, filled in batches, and put in its place.

Only migrations use these, so what is here never changes.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.apps.registry import Apps
from django.db import migrations, models, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import drop, refuse

DICTIONARY = Path(__file__).parents[1] / "typical_rows.jsonl"
BATCH = 500


def pack(value: Any, dictionary: bytes) -> bytes:
    plain = json.dumps(value, separators=(",", ":")).encode()
    packer = zlib.compressobj(zdict=dictionary)
    packed = packer.compress(plain) + packer.flush()
    return packed if len(packed) < len(plain) else plain


def beside(model: str, *columns: str) -> list[migrations.AddField]:
    """Operations: an empty column for what each of these will be packed into."""
    return [migrations.AddField(model, f"{column}_packed", models.BinaryField(null=True)) for column in columns]


def fill(
    app_label: str,
    model: str,
    *columns: str,
    append_only: bool,
    copied: Mapping[str, tuple[str, Callable[[Any], Any]]] | None = None,
) -> migrations.RunPython:
    """An operation: pack these columns of all rows, a batch a transaction, and go on where an earlier try ended.

    `copied` names columns that repeat what a packed one says under their own name: that one, and what is kept of it.
    Belongs into a migration that is not atomic.
    """

    def run(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        connection, table = schema_editor.connection, f"{app_label}_{model.lower()}"
        dictionary, after = DICTIONARY.read_bytes(), 0
        repeated = copied or {}
        sets = ", ".join(f'"{name}" = %s' for name in (*(f"{column}_packed" for column in columns), *repeated))
        todo = apps.get_model(app_label, model).objects.filter(**{f"{columns[0]}_packed": None}).order_by("pk")
        while batch := list(todo.filter(pk__gt=after).values("pk", *columns)[:BATCH]):
            changes = [
                (
                    *(connection.Database.Binary(pack(row[column], dictionary)) for column in columns),
                    *(kept(row[column].get(name)) for name, (column, kept) in repeated.items()),
                    row["pk"],
                )
                for row in batch
            ]
            with transaction.atomic(connection.alias), _open(table, apps, schema_editor, append_only):
                with connection.cursor() as cursor:
                    cursor.executemany(f'UPDATE "{table}" SET {sets} WHERE id = %s', changes)  # noqa: S608 - our own names
            after = batch[-1]["pk"]

    return migrations.RunPython(run)


@contextmanager
def _open(table: str, apps: Apps, schema_editor: BaseDatabaseSchemaEditor, guarded: bool) -> Iterator[None]:  # noqa: FBT001
    """Let the rows of an append-only table be changed, inside a transaction."""
    if guarded:
        drop(table, "no_update").code(apps, schema_editor)
    yield
    if guarded:
        sentence = f"{table} is append-only: add a new row, never change one."
        refuse(table, "no_update", "UPDATE", "1 = 1", sentence).code(apps, schema_editor)


def instead(model: str, **columns: models.BinaryField) -> list[Any]:  # type: ignore[type-arg]
    """Operations: put what was packed in the place of what it was made of."""
    found: list[Any] = []
    for column, field in columns.items():
        found += [
            migrations.RemoveField(model, column),
            migrations.RenameField(model, f"{column}_packed", column),
            migrations.AlterField(model, column, field),
        ]
    return found


def without_index(app_label: str, model: str, **columns: models.ForeignKey[Any, Any]) -> list[Any]:
    """Operations: take the index of a foreign key away, without making the table anew."""
    return [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(partial(_drop_index, app_label, model, column))],
            state_operations=[migrations.AlterField(model, column, field)],
        )
        for column, field in columns.items()
    ]


def _drop_index(app_label: str, model: str, name: str, apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    meta = apps.get_model(app_label, model)._meta  # noqa: SLF001 - Django's documented API
    column, connection = meta.get_field(name).column, schema_editor.connection
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, meta.db_table)
    declared = {index.name for index in meta.indexes}  # for a part of the rows, say
    for index, said in found.items():
        if said["columns"] == [column] and said["index"] and not said["unique"] and index not in declared:
            schema_editor.execute(f'DROP INDEX "{index}"')
