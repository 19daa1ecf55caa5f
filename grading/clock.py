"""The clock by which work is due, leases end and quotas come back: one for all processes of a site.

On PostgreSQL it is the database's, so that machines whose clocks differ agree; on SQLite, this machine's.
"""

import datetime as dt
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone


def now() -> dt.datetime:
    """The time, aware. On PostgreSQL one query. A drill shifts it, by the seconds in CLOCK_SHIFT_FILE."""
    shift = dt.timedelta(0)
    if settings.CLOCK_SHIFT_FILE:
        shift = dt.timedelta(seconds=float(Path(settings.CLOCK_SHIFT_FILE).read_text() or 0))
    if connection.vendor != "postgresql" or not settings.DATABASE_CLOCK:
        return timezone.now() + shift
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")  # not now(), which stands still in a transaction
        moment: dt.datetime = cursor.fetchone()[0]
    return moment + shift
