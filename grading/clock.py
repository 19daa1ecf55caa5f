"""The clock for due times, leases and quotas, which all processes of a site share.

On PostgreSQL it is the database's clock, because machines' clocks differ. On SQLite it is this machine's.
"""

import datetime as dt
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone


def now() -> dt.datetime:
    """The current time, timezone-aware. One query on PostgreSQL. Shifted by the seconds in CLOCK_SHIFT_FILE, if set."""
    shift = dt.timedelta(0)
    if settings.CLOCK_SHIFT_FILE:
        shift = dt.timedelta(seconds=float(Path(settings.CLOCK_SHIFT_FILE).read_text() or 0))
    if connection.vendor != "postgresql" or not settings.DATABASE_CLOCK:
        return timezone.now() + shift
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")  # unlike now(), it advances within a transaction
        moment: dt.datetime = cursor.fetchone()[0]
    return moment + shift
