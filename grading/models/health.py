"""Whether the site works: its programs' heartbeats, its periodic jobs, and stored bytes that are gone or damaged."""

from enum import StrEnum

from django.db import models
from django.utils import timezone

from grading.models.fields import enum_field, one_of


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


class BlobProblemKind(StrEnum):
    EXPIRED = "expired"
    DAMAGED = "damaged"


class BlobProblemQuerySet(models.QuerySet["BlobProblem"]):
    def expired(self) -> "BlobProblemQuerySet":
        return self.filter(kind=BlobProblemKind.EXPIRED)

    def damaged(self) -> "BlobProblemQuerySet":
        return self.filter(kind=BlobProblemKind.DAMAGED)


class BlobProblem(models.Model):
    """Stored bytes that retention deleted (expired), or that are missing or not what was stored (damaged; `what` says
    which). Evidence, grades and rewards stay. An expired blob that was sent again since is there again.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    kind = enum_field(BlobProblemKind)
    since = models.DateTimeField(default=timezone.now)
    what = models.CharField(max_length=300, blank=True)

    objects = BlobProblemQuerySet.as_manager()

    class Meta:
        constraints = [one_of("blob_problem", "kind", BlobProblemKind)]

    def __str__(self) -> str:
        return f"{self.sha256[:12]}: {self.what or self.kind}"
