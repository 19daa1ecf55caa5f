"""Figures that take too long to compute while a page waits: the worker stores them, pages show them with their date."""

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from django.db import models

# A reading that took a second is renewed after PACE seconds at the earliest; no reading waits longer than MAX_WAIT.
PACE, MAX_WAIT = 50, dt.timedelta(minutes=5)


def last_keys(*tables: type[models.Model]) -> list[int]:
    """The last primary key of each table, 0 if it is empty: part of the inputs of what is computed from its rows."""
    keys = [table._base_manager.order_by("-pk").values_list("pk", flat=True).first() for table in tables]  # noqa: SLF001 - Django's documented API
    return [key or 0 for key in keys]


class StoredReadingManager(models.Manager["StoredReading"]):
    def renew(self, name: str, inputs: str, compute: Callable[[], Any], now: dt.datetime) -> None:
        """Compute and store the reading of this name, if its inputs changed and the last one is old enough."""
        last = self.filter(name=name).only("read_at", "seconds", "inputs").first()
        if last is not None and (last.inputs == inputs or last.is_recent(now)):
            return
        began = time.monotonic()
        value = compute()
        defaults = {"read_at": now, "seconds": time.monotonic() - began, "inputs": inputs, "value": value}
        self.update_or_create(name=name, defaults=defaults)


class StoredReading(models.Model):
    """What was last computed under a name. It took so many `seconds`, and stays the same while the `inputs` do.

    A version of the code that reads a value of another form deletes the row in a migration.
    """

    name = models.CharField(max_length=100, primary_key=True)
    read_at = models.DateTimeField()
    seconds = models.FloatField()
    inputs = models.TextField()
    value = models.JSONField()

    objects = StoredReadingManager()

    def __str__(self) -> str:
        return f"{self.name}, read at {self.read_at:%Y-%m-%d %H:%M}"

    def is_recent(self, now: dt.datetime) -> bool:
        """Whether it is too early for the next one. A reading from the future, after a clock was set back, is not."""
        wait = min(dt.timedelta(seconds=PACE * self.seconds), MAX_WAIT)
        return dt.timedelta(0) <= now - self.read_at < wait
