"""Figures that take too long to compute in a request: the worker stores them, and pages show them with their date."""

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from django.db import models

# A reading is computed again at the earliest after this many times as long as it took, but at most after MAX_WAIT.
PACE = 50
MAX_WAIT = dt.timedelta(minutes=5)


def last_keys(*tables: type[models.Model]) -> list[int]:
    """The last primary key of each table, 0 for an empty one. They are inputs of readings of append-only rows."""
    keys = [table._base_manager.order_by("-pk").values_list("pk", flat=True).first() for table in tables]  # noqa: SLF001 - Django's documented API
    return [key or 0 for key in keys]


class StoredReadingManager(models.Manager["StoredReading"]):
    def renew(self, name: str, inputs: str, compute: Callable[[], Any], now: dt.datetime) -> None:
        """Compute and store the reading of this name if its inputs changed and the stored one isn't recent."""
        last = self.filter(name=name).only("read_at", "seconds", "inputs").first()
        if last is not None and (last.inputs == inputs or last.is_recent(now)):
            return
        began = time.monotonic()
        value = compute()
        defaults = {"read_at": now, "seconds": time.monotonic() - began, "inputs": inputs, "value": value}
        self.update_or_create(name=name, defaults=defaults)


class StoredReading(models.Model):
    """The last result of a computation.

    If a new version of the code needs a value of another form, a migration deletes the row.
    """

    name = models.CharField(max_length=100, primary_key=True)
    read_at = models.DateTimeField()
    seconds = models.FloatField()  # how long it took
    inputs = models.TextField()  # while these are unchanged, so is the value
    value = models.JSONField()

    objects = StoredReadingManager()

    def __str__(self) -> str:
        return f"{self.name}, read at {self.read_at:%Y-%m-%d %H:%M}"

    def is_recent(self, now: dt.datetime) -> bool:
        """Whether it is too early to compute it again. A reading from the future isn't recent: a clock was set back."""
        wait = min(dt.timedelta(seconds=PACE * self.seconds), MAX_WAIT)
        return dt.timedelta(0) <= now - self.read_at < wait
