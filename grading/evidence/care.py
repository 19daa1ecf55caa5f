"""Care of the stored evidence: a share of it is checked for damage each night, temporary files that processes left are
deleted, and so are the bytes of evidence that is older than RETENTION_DAYS. Its rows, grades and rewards stay.

The record hashes of old logs, with the subjects of their commits, stay too: without them a copy that comes later would
pass for new work.
"""

import datetime as dt
import logging
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from grading.evidence import logs, ownership, store, transcripts
from grading.models import BlobProblem, Evidence
from grading.models.evidence import EvidenceKind
from grading.models.health import BlobProblemKind

logger = logging.getLogger(__name__)

# All evidence is checked once in this many nights.
NIGHTS = 30
MAX_DESCRIPTION = 300
BATCH_SIZE = 500
# A temporary file that was not written to for this long was left by a dead process.
LEFTOVER_SECONDS = 3600.0
# Bytes that were stored more recently may belong to an intake that hasn't created their row yet.
IN_FLIGHT_SECONDS = 3600.0


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
    before = time.time() - LEFTOVER_SECONDS
    removed = 0
    for folder in (Path(settings.MEDIA_ROOT) / "incoming", Path(settings.TEMP_DIR)):
        for path in folder.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink() and path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
    return removed


def delete_stale_indexes() -> int:
    """Delete this host's indexes of logs that were erased or have expired. Returns the number of logs.

    An erasure or an expiry deletes indexes only on the host that it runs on.
    """
    deleted = 0
    hashes = transcripts.cached_hashes()
    for start in range(0, len(hashes), BATCH_SIZE):
        batch = hashes[start : start + BATCH_SIZE]
        stored = set(Evidence.objects.filter(sha256__in=batch).values_list("sha256", flat=True))
        expired = BlobProblem.objects.expired().filter(pk__in=batch).values_list("pk", flat=True)
        stored -= {sha256 for sha256 in expired if not store.is_kept(sha256)}  # it may have been sent again
        for sha256 in set(batch) - stored:
            transcripts.forget(sha256)
            deleted += 1
    return deleted


def expire(now: dt.datetime) -> int:
    """Delete the bytes that were last received more than RETENTION_DAYS ago. Returns the number of files."""
    if not settings.RETENTION_DAYS:
        return 0
    cutoff = now - dt.timedelta(days=settings.RETENTION_DAYS)
    last_received = Evidence.objects.order_by().values("sha256").annotate(last=Max("received_at"))
    count = 0
    for sha256 in list(last_received.filter(last__lt=cutoff).values_list("sha256", flat=True)):
        if not store.is_kept(sha256):
            continue
        log = Evidence.objects.filter(sha256=sha256, kind=EvidenceKind.TRANSCRIPT, problem="").first()
        if log is not None:
            with suppress(OSError):
                logs.load_records(log)  # stores the records if they aren't stored yet
        with transaction.atomic():
            ownership.lock()
            if Evidence.objects.filter(sha256=sha256, received_at__gte=cutoff).exists():
                continue
            if store.expire(sha256, before=time.time() - IN_FLIGHT_SECONDS):
                count += 1
        transcripts.forget(sha256)
    if count:
        logger.info("retention: the bytes of %d files older than %d days are deleted", count, settings.RETENTION_DAYS)
    return count
