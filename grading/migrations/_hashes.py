"""Hashes that were kept as hexadecimal text become the bytes that they say, and texts those that they are: PostgreSQL
writes such a table anew in one pass, SQLite changes its rows where they are.

Only migrations use these, so what is here never changes.
"""

import json
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import drop


def short_hash(*said: object) -> int:
    digest = sha256("\x1f".join(map(str, said)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class InPlace(migrations.AlterField):
    """Of a column into which a `rewrite` puts what it is to hold: on PostgreSQL that changes its type too."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)


def rewrite(
    table: str,
    *hashes: str,
    condition: str = "",
    append_only: bool = True,
    emptied: Sequence[str] = (),
    texts: Sequence[str] = (),
    lists: Sequence[str] = (),
    **of: Sequence[str],
) -> migrations.RunPython:
    """An operation: make these columns bytes, and of each other one named the `short_hash` of several columns, in the
    rows that meet the SQL `condition`. One pass over the table. `emptied` are columns of text that go after this: to
    drop one takes nothing out of the rows. `texts`, JSON too, become columns that new rows are packed into, and `lists`
    of hashes as JSON their bytes one after the other.

    On SQLite an append-only table lets its rows be changed from here on: repeat its `append_only` after this.
    """
    return migrations.RunPython(partial(_rewrite, table, hashes, condition, append_only, emptied, texts, lists, of))


def _rewrite(
    table: str,
    hashes: Sequence[str],
    condition: str,
    guarded: bool,  # noqa: FBT001
    emptied: Sequence[str],
    texts: Sequence[str],
    lists: Sequence[str],
    of: dict[str, Sequence[str]],
    apps: Apps,
    schema_editor: BaseDatabaseSchemaEditor,
) -> None:
    connection = schema_editor.connection
    rows = f"CASE WHEN {condition} THEN {{}} END" if condition else "{}"
    if connection.vendor == "postgresql":
        bits = "('x' || left(encode(sha256(convert_to(concat_ws(chr(31), {}), 'UTF8')), 'hex'), 16))::bit(64)::bigint"
        kinds = {column: ("bytea", f"decode({column}, 'hex')") for column in hashes}
        kinds |= {column: ("bigint", rows.format(bits.format(", ".join(said)))) for column, said in of.items()}
        # Nothing of an earlier row is read as packed.
        marked = "CASE WHEN ascii({0}::text) IN (1, 2) THEN chr(2) || {0}::text ELSE {0}::text END"
        kinds |= {column: ("bytea", f"convert_to({marked.format(column)}, 'UTF8')") for column in texts}
        kinds |= {column: ("bytea", f"decode(translate({column}::text, '[]\", ', ''), 'hex')") for column in lists}
        kinds |= {column: ("text", "''") for column in emptied}
        changes = (f"ALTER COLUMN {column} TYPE {kind} USING {using}" for column, (kind, using) in kinds.items())
        schema_editor.execute(f"ALTER TABLE {table} {', '.join(changes)}")
        return
    if guarded:
        drop(table, "no_update").code(apps, schema_editor)
    for name, count, function in (("hashed", -1, short_hash), ("unhexed", 1, bytes.fromhex), ("joined", 1, _joined)):
        connection.connection.create_function(name, count, function, deterministic=True)
    sets = [f"{column} = " + rows.format(f"hashed({', '.join(said)})") for column, said in of.items()]
    marked = "CAST(CASE WHEN unicode({0}) IN (1, 2) THEN char(2) || {0} ELSE {0} END AS BLOB)"
    sets += [f"{column} = {marked.format(column)}" for column in texts]
    sets += [f"{column} = joined({column})" for column in lists]
    sets += [f"{column} = unhexed({column})" for column in hashes]
    schema_editor.execute(f"UPDATE {table} SET {', '.join(sets)}")  # noqa: S608 - our own names


def _joined(listed: str) -> bytes:
    return b"".join(map(bytes.fromhex, json.loads(listed)))
