"""Copies all sessions of a site with their related rows, by SQL: one by one, a million would take a day.

Copy n of a row has the row's key plus n strides. Its dates are n days earlier, modulo three years. Open jobs, items and
flags are not copied: a site of a million sessions has neither a million open ones nor more people who answer.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from django.db import models

STRIDE, DAYS, STEPS = 10_000, 1095, 40
# In an order in which rows refer only to tables that were copied before.
COPIED = (
    "bandit.Selection",
    "bandit.Assignment",
    "grading.Session",
    "grading.SessionSignals",
    "grading.SessionFacts",
    "grading.SessionShares",
    "grading.SessionTraits",
    "grading.SessionUsage",
    "grading.MessageClaim",
    "grading.CategoryWord",
    "grading.SessionLesson",
    "grading.Evidence",
    "grading.SessionLog",
    "grading.RecordAnchor",
    "grading.Artifact",
    "grading.JudgeJob",
    "grading.JudgeAttempt",
    "grading.Grade",
    "grading.Settlement",
    "grading.Submission",
    "grading.Flag",
    "grading.ReviewItem",
    "grading.ReviewAnswer",
    "grading.Reveal",
    "bandit.LedgerEntry",
)
# Columns other than keys that must differ between copies, as SQL of the column and n.
UNIQUE_COLUMNS = {
    ("Session", "external_id"): "{column} || '-' || n",
    ("Evidence", "sha256"): "{hashed}",
    ("Selection", "decision_id"): "{column} || '-' || n",
    ("RecordAnchor", "record"): "{mixed}",
    ("MessageClaim", "message"): "{mixed}",
    ("Artifact", "text_hash"): "CASE WHEN {column} IS NOT NULL THEN {mixed} END",
    ("Selection", "observation"): "CASE {column} WHEN '' THEN '' ELSE 'session:' || {number} END",
    ("Assignment", "decision_id"): "{column} || '-' || n",
    ("Assignment", "observation"): "CASE {column} WHEN '' THEN '' ELSE 'session:' || {number} END",
    ("LedgerEntry", "observation"): "'session:' || {number}",
    ("LedgerEntry", "settlement"): "'settlement:' || {number}",
}
OPEN_ROWS = {
    "JudgeJob": "state IN ('queued', 'leased')",
    "ReviewItem": "state = 'open'",
    "Flag": "cleared_at IS NULL",
}
# Answers of people are copied so often, however many sessions there are.
ANSWER_COPIES, ANSWERS = 2_500, ("ReviewItem", "ReviewAnswer", "Reveal")


def multiply(sessions: int) -> None:
    """Copy the site's sessions until there are at least so many. Then sum up the bandits and gather statistics."""
    from django.apps import apps
    from django.db import connection

    from bandit.audit import replay
    from grading.health import planner
    from grading.models import Session

    times = -(-sessions // Session.objects.count()) - 1
    tables = [Table(apps.get_model(label)) for label in COPIED]
    is_postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if not is_postgres:
            for name, function in (("hashed", _hashed), ("mixed", _mixed)):
                connection.connection.create_function(name, 2, function, deterministic=True)
        if is_postgres:  # whose triggers would look at each reference
            cursor.execute("SET session_replication_role = replica")
        step = max(times // STEPS, 1)
        for low in range(1, times + 1, step):
            numbers = (SERIES if is_postgres else RECURSION).format(low, min(low + step, times + 1) - 1)
            for table in tables:
                cursor.execute(table.insert(tables, numbers, is_postgres=is_postgres))
        if is_postgres:
            cursor.execute("SET session_replication_role = DEFAULT")
            for table in tables:
                if table.counts:
                    cursor.execute(RESET.format(table=table.name, key=table.key))
    replay(write=True)
    planner.gather_statistics()


# The numbers of the copies that are made at once, as n.
SERIES = "generate_series({}, {}) AS numbers(n)"
RECURSION = "(WITH RECURSIVE c(n) AS (SELECT {} UNION ALL SELECT n + 1 FROM c WHERE n < {}) SELECT n FROM c)"
RESET = "SELECT setval(pg_get_serial_sequence('{table}', '{key}'), (SELECT max({key}) FROM {table}))"


def _hashed(value: bytes, n: int) -> bytes:
    """Another hash for each copy, so that the index is filled as by real hashes."""
    return hashlib.sha256(value + n.to_bytes(8, "big")).digest()


def _mixed(value: int, n: int) -> int:
    """The same for hashes of 64 bits."""
    return int.from_bytes(_hashed(value.to_bytes(8, "big", signed=True), n)[:8], "big", signed=True)


class Table:
    """A model's table, to be copied."""

    def __init__(self, model: type[models.Model]) -> None:
        meta = model._meta  # noqa: SLF001 - public by Django's documentation
        self.model, self.name, self.fields = model, meta.db_table, meta.concrete_fields
        self.key = meta.pk_fields[-1].column  # of several: the session
        self.counts = meta.pk.get_internal_type() == "BigAutoField"

    def insert(self, tables: Sequence[Table], numbers: str, *, is_postgres: bool) -> str:
        """The statement that makes the copies with these numbers. It consists of our own names."""
        model = self.model.__name__
        copied = {each.model for each in tables}
        columns = ", ".join(f'"{field.column}"' for field in self.fields)
        values = ", ".join(_copied(model, field, copied, is_postgres=is_postgres) for field in self.fields)
        left_out = f" AND NOT ({OPEN_ROWS[model]})" if model in OPEN_ROWS else ""
        left_out += f" AND n <= {ANSWER_COPIES}" if model in ANSWERS else ""
        chosen = f'SELECT {values} FROM {self.name}, {numbers} WHERE "{self.key}" < {STRIDE}{left_out}'  # noqa: S608
        # One session after the other, as a site writes them. In another order, indexes are half empty.
        return f'INSERT INTO {self.name} ({columns}) {chosen} ORDER BY n, "{self.key}"'


def _copied(model: str, field: Any, copied: Container[object], *, is_postgres: bool) -> str:
    """A column of copy n, as SQL."""
    column = f'"{field.column}"'
    if (template := UNIQUE_COLUMNS.get((model, field.name))) is not None:
        number = f"CAST(substr({column}, position(':' in {column}) + 1) AS bigint) + n * {STRIDE}"
        if not is_postgres:
            number = f"CAST(substr({column}, instr({column}, ':') + 1) AS INTEGER) + n * {STRIDE}"
        hashed, mixed = f"hashed({column}, n)", f"mixed({column}, n)"
        if is_postgres:
            hashed, mixed = f"sha256({column} || int8send(n))", f"hashint8extended({column}, n)"
        return template.format(column=column, number=f"({number})", hashed=hashed, mixed=mixed)
    is_ours = field.is_relation and field.related_model in copied
    if is_ours or (field.primary_key and not field.is_relation):
        return f"{column} + n * {STRIDE}"
    kind = field.get_internal_type()
    if kind == "DateTimeField":
        back = f"(n % {DAYS})"
        if is_postgres:
            return f"{column} - {back} * interval '1 day'"
        return f"strftime('%Y-%m-%d %H:%M:%f000', {column}, '-' || {back} || ' days')"
    if kind == "DateField":
        back = f"(n % {DAYS})"
        return f"{column} - {back}::int" if is_postgres else f"date({column}, '-' || {back} || ' days')"
    return column
