"""Checks a share of the stored evidence for damage each night, and deletes temporary files that processes left."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage

from grading.evidence import store
from grading.models import BlobProblem, Evidence
from grading.models.health import BlobProblemKind

# All evidence is read once in so many nights.
NIGHTS = 30
MAX_DESCRIPTION = 300
# A temporary file that was not written to for this long was left by a dead process.
LEFTOVER_SECONDS = 3600.0


def check(now: dt.datetime) -> int:
    """Check tonight's share of the blobs that rows refer to, and those that were damaged before. Returns the number of
    damaged blobs.
    """
    tonight = now.date().toordinal() % NIGHTS
    hashes = Evidence.objects.order_by().values_list("sha256", flat=True).distinct()
    due = set(BlobProblem.objects.damaged().values_list("pk", flat=True))
    due.update(sha256 for sha256 in hashes.iterator() if int(sha256[:8], 16) % NIGHTS == tonight)
    for sha256 in due:
        check_blob(sha256, now)
    return BlobProblem.objects.damaged().count()


def check_blob(sha256: str, now: dt.datetime) -> None:
    """Read a blob in full, and record its damage or that it is intact again."""
    what = store.damage(sha256)
    is_expired = BlobProblem.objects.expired().filter(pk=sha256).exists()
    is_needed = Evidence.objects.filter(sha256=sha256).exists() and not is_expired
    damaged = BlobProblem.objects.damaged().filter(pk=sha256)
    if not what or not is_needed:
        damaged.delete()
        return
    columns = {"since": now, "what": what[:MAX_DESCRIPTION]}
    if not damaged.update(**columns):
        # Not `update_or_create`: a blob that expires meanwhile stays expired.
        BlobProblem.objects.get_or_create(pk=sha256, defaults={"kind": BlobProblemKind.DAMAGED, **columns})


def recheck_damaged() -> None:
    """Check the damaged blobs again: the same bytes may have been stored again."""
    for blob in BlobProblem.objects.damaged():
        check_blob(blob.pk, blob.since)


def delete_leftovers() -> int:
    """Delete the temporary files that were not written to for LEFTOVER_SECONDS. Returns their number."""
    before, removed = time.time() - LEFTOVER_SECONDS, 0
    for path in _temporary_files():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
    return removed


def _temporary_files() -> Iterator[Path]:
    for folder in (Path(default_storage.path("incoming")), Path(settings.TEMP_DIR)):
        if folder.is_dir():
            yield from (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
