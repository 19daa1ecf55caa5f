"""Bytes of evidence that are older than the site keeps them: they go, and their rows, grades and rewards stay.

What says whose a log's records are stays too, as hashes with the subjects of its commits: without it a copy that comes
later would pass for new work.
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

# Bytes that somebody stored within this are on their way to a session.
IN_FLIGHT_SECONDS = 3600.0


def expire(now: dt.datetime) -> int:
    """Delete the bytes whose last owner sent them more than RETENTION_DAYS ago; how many files."""
    if not settings.RETENTION_DAYS:
        return 0
    cutoff = now - dt.timedelta(days=settings.RETENTION_DAYS)
    owned = Evidence.objects.order_by().values("sha256").annotate(last=Max("received_at"))
    count = 0
    for sha256 in list(owned.filter(last__lt=cutoff).values_list("sha256", flat=True)):
        if not store.is_kept(sha256):
            continue
        for log in Evidence.objects.filter(sha256=sha256, kind=EvidenceKind.TRANSCRIPT, problem="")[:1]:
            with suppress(OSError):
                records.load(log)
        with transaction.atomic():
            ownership.lock()
            if Evidence.objects.filter(sha256=sha256, received_at__gte=cutoff).exists():
                continue
            count += store.expire(sha256, before=time.time() - IN_FLIGHT_SECONDS)
        transcripts.forget(sha256)
    if count:
        logger.info("retention: the bytes of %d files older than %d days are deleted", count, settings.RETENTION_DAYS)
    return count
