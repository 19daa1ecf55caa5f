"""The record of an import: a row for the run, and one for every file, written in batches while it runs."""

import datetime as dt
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from grading.busy import patiently
from grading.intake.scanning import ImportOutcome
from grading.models import Agent, ImportedFile, LogImport
from grading.plain import plain_text

# Outcomes are written in batches, and at least so often.
BATCH_SIZE, WRITE_SECONDS = 500, 2.0
# How long to retry while others write to the database.
RETRY_SECONDS = 600.0
# Imports whose file rows are kept. Of earlier ones only the counts stay: a nightly import finds the same files again.
KEPT_WITH_FILES = 20


class ImportRecord:
    """Records the outcome of each file of an import."""

    def __init__(self, agent: Agent, folders: Sequence[Path], *, by: str, category: str | None) -> None:
        self.row = LogImport.objects.create(
            agent=agent,
            folders=[plain_text(str(folder), 1000) for folder in folders],
            by=plain_text(by, 150),
            category=plain_text(category or "", 200),
        )
        self.counts: Counter[str] = Counter()
        self._waiting: list[ImportedFile] = []
        self._written = time.monotonic()

    def note(self, outcome: ImportOutcome) -> None:
        self.counts[outcome.fate] += 1
        self._waiting.append(
            ImportedFile(
                log_import=self.row,
                path=str(outcome.path),
                fate=outcome.fate,
                why=outcome.why[:200],
                detail=outcome.detail,
                session_id=outcome.session,
            )
        )
        if len(self._waiting) >= BATCH_SIZE or time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the outcomes that aren't written yet, and the counts."""
        self.row.counts = dict(self.counts)
        patiently(self._write, seconds=RETRY_SECONDS)
        self._waiting, self._written = [], time.monotonic()

    def end(self, stopped: str = "") -> None:
        """Write the rest and the end of the import, with the reason if it was stopped."""
        self.row.ended_at, self.row.stopped = timezone.now(), stopped[:200]
        self.write()

    def _write(self) -> None:
        with transaction.atomic():
            ImportedFile.objects.bulk_create(self._waiting)
            self.row.save(update_fields=["counts", "ended_at", "stopped"])


def forget_files(now: dt.datetime) -> int:
    """Delete the file rows of all but the latest imports and of those older than RETENTION_DAYS. Returns their number.
    The counts of the imports stay.
    """
    latest = list(LogImport.objects.order_by("-pk").values_list("pk", flat=True)[:KEPT_WITH_FILES])
    old = ImportedFile.objects.exclude(log_import__in=latest)
    count = old.delete()[0]
    if settings.RETENTION_DAYS:
        cutoff = now - dt.timedelta(days=settings.RETENTION_DAYS)
        count += ImportedFile.objects.filter(log_import__started_at__lt=cutoff).delete()[0]
    return count
