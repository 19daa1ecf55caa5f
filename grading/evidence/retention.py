"""Retention: deletes the bytes of evidence that is older than RETENTION_DAYS. Its rows, grades and rewards stay.

The record hashes of logs, with the subjects of their commits, stay too: without them a copy that comes later would pass
for new work.
"""

import datetime as dt
import logging
import time
from contextlib import suppress

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from grading.evidence import ownership, records, store, transcripts
from grading.models import Evidence
from grading.models.evidence import EvidenceKind

logger = logging.getLogger(__name__)

# Bytes that were stored more recently may belong to an intake that hasn't created their row yet.
IN_FLIGHT_SECONDS = 3600.0


def expire(now: dt.datetime) -> int:
    """Delete the bytes that were last received more than RETENTION_DAYS ago. Returns the number of files."""
    if not settings.RETENTION_DAYS:
        return 0
    cutoff = now - dt.timedelta(days=settings.RETENTION_DAYS)
    owned = Evidence.objects.order_by().values("sha256").annotate(last=Max("received_at"))
    count = 0
    for sha256 in list(owned.filter(last__lt=cutoff).values_list("sha256", flat=True)):
        if not store.is_kept(sha256):
            continue
        log = Evidence.objects.filter(sha256=sha256, kind=EvidenceKind.TRANSCRIPT, problem="").first()
        if log is not None:
            with suppress(OSError):
                records.load(log)  # stores the records if they aren't stored yet
        with transaction.atomic():
            ownership.lock()
            if Evidence.objects.filter(sha256=sha256, received_at__gte=cutoff).exists():
                continue
            count += store.expire(sha256, before=time.time() - IN_FLIGHT_SECONDS)
        transcripts.forget(sha256)
    if count:
        logger.info("retention: the bytes of %d files older than %d days are deleted", count, settings.RETENTION_DAYS)
    return count
