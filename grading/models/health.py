"""Whether the site works: its programs' heartbeats, its periodic jobs, and evidence that was found damaged."""

from django.db import models
from django.utils import timezone


class Heartbeat(models.Model):
    """A counter of one part of the site, which grows while that part works. Whoever watches it goes by his own clock.

    `beat_at` is for people: when it grew last, by the clock of the program that let it grow.
    """

    name = models.CharField(max_length=40, unique=True)
    count = models.PositiveBigIntegerField(default=0)
    beat_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.count}"


class PeriodicJob(models.Model):
    """One of the jobs of CELERY_BEAT_SCHEDULE: when it began last, and when it last ended well (of one that never did,
    when it was first thought of). `turns` counts the beginnings: whoever moves it on, by a conditional UPDATE, has the
    turn.
    """

    name = models.CharField(max_length=100, unique=True)
    turns = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(default=timezone.now)
    # What the last turn fell over; empty after one that ended well.
    error = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.name}, turn {self.turns}"


class DamagedBlob(models.Model):
    """Stored bytes that are missing, or are not what was stored, as it was found when they were last read in full."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    found_at = models.DateTimeField()
    what = models.CharField(max_length=300)

    def __str__(self) -> str:
        return f"{self.sha256[:12]}: {self.what}"
