"""Celery's scheduler without a file: when a job ran last is in its row, whichever process ran it."""

import logging
import time
from typing import Any

from celery.beat import Scheduler
from django.conf import settings
from django.db import connection
from django.utils import timezone

from grading.health import periodic, pulse
from grading.health.liveness import Component
from grading.models import PeriodicJob

logger = logging.getLogger(__name__)

# How often the schedule is compared with its rows in the database. A message that got lost is then sent again.
SYNC_SECONDS = 60.0


class RowScheduler(Scheduler):  # type: ignore[misc]  # Celery ships no types
    """Sends a message for each job that is due, and a heartbeat."""

    _beat_at = _synced_at = float("-inf")

    def tick(self, *args: Any, **options: Any) -> float:
        """Send the due messages. Returns the seconds to wait.

        Before, if it is time, send a heartbeat and compare the schedule with its database rows.
        """
        now = time.monotonic()
        try:
            if settings.HEARTBEAT_SECONDS and now - self._beat_at >= settings.HEARTBEAT_SECONDS:
                self._beat_at = now
                pulse.beat([Component.SCHEDULER])
            if now - self._synced_at >= SYNC_SECONDS:
                self.sync_with_rows()
                self._synced_at = now
        except Exception as error:  # noqa: BLE001  messages are sent whatever is wrong with the database
            logger.warning("the scheduler cannot use the database: %s", error)
            connection.close()
        wait: float = super().tick(*args, **options)
        return min(wait, settings.HEARTBEAT_SECONDS or wait)

    def close(self) -> None:
        super().close()
        pulse.forget(Component.SCHEDULER)

    def sync_with_rows(self) -> None:
        """Set each job's `last_run_at`, the time at which Celery sent its message, from the job's row.

        So a job that is due according to its row is due here, even if a message was sent. Times in the future, which a
        row has after the clock was set back, are replaced by now. Otherwise no job would be due until those times.
        """
        rows = {row.name: row for row in PeriodicJob.objects.all()}
        now = timezone.now()
        for name, entry in self.schedule.items():
            row = rows.get(name)
            sent_at = min(entry.last_run_at, now)
            if row is None or row.started_at is None:  # it never ran
                entry.last_run_at = sent_at
            elif not periodic.is_due(entry.schedule, row, now):
                entry.last_run_at = max(sent_at, min(row.started_at, now))
            elif row.started_at > now:  # so far ahead that it is not believed: due now
                entry.last_run_at = now - periodic.interval(entry.schedule)
            else:
                entry.last_run_at = row.started_at
        self._heap = None  # Celery sorts the jobs anew
