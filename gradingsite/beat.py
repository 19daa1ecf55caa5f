"""Celery's scheduler without a file of its own: when a job ran last stands in its row, whoever ran it and wherever."""

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

# How often it looks whether what it sent was done. A message that went astray is sent again then.
LOOKS_SECONDS = 60.0


class RowScheduler(Scheduler):  # type: ignore[misc]  # Celery ships no types
    """Sends a message for every job that is due, and has a heartbeat of its own while it does so."""

    _beat_at = _looked_at = float("-inf")

    def tick(self, *args: Any, **options: Any) -> float:
        now = time.monotonic()
        try:
            if settings.HEARTBEAT_SECONDS and now - self._beat_at >= settings.HEARTBEAT_SECONDS:
                self._beat_at = now
                pulse.beat([Component.SCHEDULER])
            if now - self._looked_at >= LOOKS_SECONDS:
                self.look()
                self._looked_at = now
        except Exception as error:  # noqa: BLE001  whatever ails the database, messages go on
            logger.warning("the scheduler cannot use the database: %s", error)
            connection.close()
        wait: float = super().tick(*args, **options)
        return min(wait, settings.HEARTBEAT_SECONDS or wait)

    def look(self) -> None:
        """Make due what the rows say is due, though a message was sent. A clock that was put back since then would let
        nothing be due until it has caught up.
        """
        rows, now = {row.name: row for row in PeriodicJob.objects.all()}, timezone.now()
        for name, entry in self.schedule.items():
            row = rows.get(name)
            sent = min(entry.last_run_at, now)
            if row is None or row.started_at is None:
                entry.last_run_at = sent
            elif not periodic.is_due(entry.schedule, row, now):
                entry.last_run_at = max(sent, min(row.started_at, now))
            else:
                is_ahead = row.started_at > now
                entry.last_run_at = now - periodic.interval(entry.schedule) if is_ahead else row.started_at
        self._heap = None
