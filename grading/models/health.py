"""Whether the site works: its programs' heartbeats, its periodic jobs, and stored bytes that are gone or damaged."""

import datetime as dt
from enum import StrEnum

from django.db import models
from django.utils import timezone

from grading.models.fields import enum_field, one_of

# How long a host that stopped without saying so is missed.
FORGOTTEN = dt.timedelta(days=1)


class HeartbeatQuerySet(models.QuerySet["Heartbeat"]):
    def recent(self, now: dt.datetime) -> "HeartbeatQuerySet":
        """Those of hosts that run, or ran within a day and did not stop on purpose."""
        return self.filter(beat_at__gt=now - FORGOTTEN)


class Heartbeat(models.Model):
    """A counter that a part of the site increments on each of its hosts while it works. A watcher compares it by its
    own clock.

    `beat_at` is for people: when it was last incremented, by the clock of the program that did. The row is deleted when
    the program is stopped on purpose. `disk_free` and `disk_floor` are the free bytes for the host's state folder then,
    and the minimum below which it accepts no sessions.
    """

    name = models.CharField(max_length=40)
    host = models.CharField(max_length=100, blank=True)
    count = models.PositiveBigIntegerField(default=0)
    beat_at = models.DateTimeField(null=True, blank=True)
    disk_free = models.BigIntegerField(null=True, blank=True)
    disk_floor = models.BigIntegerField(null=True, blank=True)

    objects = HeartbeatQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "host"], name="heartbeat_once")]

    def __str__(self) -> str:
        return f"{self.name} on {self.host}: {self.count}"


class KeyFingerprint(models.Model):
    """The fingerprint of a secret key that all hosts of the site must have, as of its first start."""

    name = models.CharField(max_length=40, primary_key=True)
    fingerprint = models.CharField(max_length=64)
    since = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.name}: {self.fingerprint}"


class PeriodicJob(models.Model):
    """A job of CELERY_BEAT_SCHEDULE or, for each host, of HOST_JOBS: when it last started, and when it last succeeded
    or else when its row was made.

    A process claims a turn by incrementing `turns` in a conditional UPDATE.
    """

    name = models.CharField(max_length=100)
    # Of a job that each host runs for itself: the host. Otherwise empty.
    host = models.CharField(max_length=100, blank=True)
    turns = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(default=timezone.now)
    # The last turn's error; empty if it succeeded.
    error = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "host"], name="periodic_job_once")]

    def __str__(self) -> str:
        return f"{self.key}, turn {self.turns}"

    @property
    def key(self) -> str:
        """The name of the job, and of the host for a job of each host, like "tidy@alpha"."""
        return f"{self.name}@{self.host}" if self.host else self.name


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
