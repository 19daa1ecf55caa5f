"""Secrets in rows from before: once the site knows a new shape of secrets, or rows came from elsewhere.

redact_again ─► each table in batches ─► permit ─► the rows in which a secret was found
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models, transaction
from django.utils import timezone

from grading.models import Redaction, SessionSignals
from grading.models.fields import RedactedField
from grading.reward.sources import without_secrets

BATCH = 500
Redactors = Mapping[str, Callable[[Any], Any]]


@contextmanager
def permit(why: str, using: str = DEFAULT_DB_ALIAS) -> Iterator[Counter[str]]:
    """Allows updates of the redacted columns of append-only rows in this block, which is one transaction. Yields a
    counter of changed rows by table, to be filled in.

    The row that permits is open only inside the transaction, so that no other connection ever sees it.
    """
    counts: Counter[str] = Counter()
    with transaction.atomic(using=using):
        redaction = Redaction.objects.using(using).create(why=why)
        yield counts
        redaction.closed_at, redaction.counts = timezone.now(), dict(counts)
        redaction.save(using=using, update_fields=["closed_at", "counts"])


def redacted_columns() -> dict[type[models.Model], Redactors]:
    """The columns from which secrets are removed, by model: the name of each, and the function that redacts a value."""
    columns: dict[type[models.Model], Redactors] = {}
    for model in apps.get_app_config("grading").get_models():
        fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented API
        columns[model] = {field.attname: field.redacted for field in fields if isinstance(field, RedactedField)}
    columns[SessionSignals] = {"data": without_secrets}
    return {model: redactors for model, redactors in columns.items() if redactors}


def redact_again(
    why: str, *, using: str = DEFAULT_DB_ALIAS, step: Callable[[int], object] = lambda _rows: None
) -> Counter[str]:
    """Replace secrets in every row, by the rules of today. Returns how many rows of each table changed.

    Each batch is committed by itself, so that it can be interrupted and run again. After each batch, `step` is called
    with its number of rows. What the site writes meanwhile is redacted as it is written.
    """
    changed: Counter[str] = Counter()
    for model, redactors in redacted_columns().items():
        rows = model._base_manager.using(using)  # noqa: SLF001 - Django's documented API
        last = 0
        while batch := list(rows.filter(pk__gt=last).order_by("pk").values("pk", *redactors)[:BATCH]):
            last = batch[-1]["pk"]
            keys = [row["pk"] for row in batch if _changes(row, redactors)]
            if keys:
                with permit(why, using) as counts:
                    for row in rows.select_for_update().filter(pk__in=keys).values("pk", *redactors):
                        rows.filter(pk=row["pk"]).update(**_changes(row, redactors))
                    counts[model.__name__.lower()] += len(keys)
                changed += counts
            step(len(batch))
    return changed


def rows_to_read() -> int:
    """How many rows `redact_again` reads."""
    return sum(model._base_manager.count() for model in redacted_columns())  # noqa: SLF001 - as above


def summary(changed: Mapping[str, int]) -> str:
    """What `redact_again` did, for whoever started it."""
    if not changed:
        return "No stored row has a secret in it."
    tables = ", ".join(f"{count:,} of {table}" for table, count in sorted(changed.items()))
    return f"Replaced secrets in {sum(changed.values()):,} stored rows: {tables}."


def _changes(row: Mapping[str, Any], redactors: Redactors) -> dict[str, Any]:
    """The redacted values of the row's columns that contain a secret, by column."""
    after = {name: redacted(row[name]) for name, redacted in redactors.items() if row[name] is not None}
    return {name: value for name, value in after.items() if value != row[name]}
