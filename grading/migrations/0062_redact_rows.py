"""Replace secrets in rows of earlier versions, which were replaced each time that somebody read the row.

By the rules of the day of the upgrade, not of this migration. Each batch is committed by itself: an upgrade that was
interrupted looks at every row again, and changes those that are left.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db import migrations, models, transaction
from django.utils import timezone
from tqdm import tqdm

from grading.migrations._packed import PLAIN_TEXT, unpack, unpack_text
from grading.plain import plain_text
from grading.redaction import redact, redact_json, redact_line

WHY = "migration grading.0062_redact_rows"
BATCH = 500
COLUMNS = {
    "Alarm": ["detail"],
    "Artifact": ["seen_at", "left_out"],
    "CategoryChange": ["reason", "undone_why"],
    "CategoryWord": ["why"],
    "Comment": ["text"],
    "Evidence": ["detail"],
    "Flag": ["detail"],
    "Grade": ["detail", "evidence"],
    "ImportedFile": ["path", "detail"],
    "JudgeAttempt": ["detail"],
    "JudgeKeyTest": ["detail"],
    "LogImport": ["folders"],
    "Notice": ["subject", "body"],
    "NoticeChannel": ["name"],
    "Proposal": ["value"],
    "ReviewAnswer": ["reason"],
    "ReviewItem": ["why"],
    "Session": ["title", "category_claimed", "outcome_reason", "claim_reason"],
    "SessionSignals": ["data"],
    "SessionTraits": ["data"],
    "Settlement": ["sentence", "steps"],
    "Submission": ["before", "after"],
}
PACKED_TEXT = {("Grade", "detail"), ("Settlement", "sentence")}
# In the evidence of a grade: hashes that are compared.
SPARED_KEY = "shown"
# In signals that lost something: they are extracted again to grade by.
HIDDEN = "hidden"


def redact_rows(apps, schema_editor):
    alias = schema_editor.connection.alias
    tables = {name: apps.get_model("grading", name)._base_manager.using(alias) for name in COLUMNS}
    permits = apps.get_model("grading", "Redaction").objects.using(alias)
    total = sum(rows.count() for rows in tables.values())
    with tqdm(total=total, desc="replacing secrets in stored rows", unit="row", delay=5, disable=None) as bar:
        for name, rows in tables.items():
            redacted = {column: redactor(name, rows.model._meta.get_field(column)) for column in COLUMNS[name]}
            for batch in batches(rows, redacted):
                differing = [(row.pop("pk"), changes(row, redacted)) for row in batch]
                differing = [(pk, change) for pk, change in differing if change]
                if differing:
                    with transaction.atomic(using=alias):
                        permit = permits.create(why=WHY)
                        for pk, change in differing:
                            rows.filter(pk=pk).update(**change)
                        permit.closed_at, permit.counts = timezone.now(), {name.lower(): len(differing)}
                        permit.save()
                bar.update(len(batch))


def batches(rows: Any, columns: Any) -> Iterator[list[dict[str, Any]]]:
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk").values("pk", *columns)[:BATCH]):
        last = batch[-1]["pk"]
        yield batch


def changes(row: dict[str, Any], redacted: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    after = {column: redacted[column](value) for column, value in row.items() if value is not None}
    return {column: value for column, value in after.items() if value != row[column]}


def redactor(model: str, field: Any) -> Callable[[Any], Any]:
    """What makes the column's new value of its value."""
    if (model, field.name) in PACKED_TEXT:
        return redact_packed_text
    if isinstance(field, models.BinaryField):
        return redact_packed_signals if model == "SessionSignals" else redact_packed
    if isinstance(field, models.JSONField):
        return redact_value
    by_line = isinstance(field, models.CharField)
    return lambda text: plain_text((redact_line if by_line else redact)(text), field.max_length)


def redact_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if key == SPARED_KEY else redact_json(item) for key, item in value.items()}
    return redact_json(value)


def redact_packed(data: bytes) -> bytes:
    """The same bytes where there is nothing to replace, otherwise plain JSON, which needs no unpacking."""
    value = unpack(bytes(data))
    after = redact_value(value)
    return data if after == value else json.dumps(after, separators=(",", ":")).encode()


def redact_packed_signals(data: bytes) -> bytes:
    value = unpack(bytes(data))
    after = redact_json(value)
    return data if after == value else json.dumps({**after, HIDDEN: True}, separators=(",", ":")).encode()


def redact_packed_text(data: bytes) -> bytes:
    text = unpack_text(bytes(data))
    after = plain_text(redact(text))
    return data if after == text else PLAIN_TEXT + after.encode()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("grading", "0061_redaction")]

    operations = [migrations.RunPython(redact_rows, migrations.RunPython.noop, elidable=True)]
