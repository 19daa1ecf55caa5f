"""Who came in, and what happened to tokens, people, downloads and raw text: one append-only table."""

from enum import StrEnum

from django.db import models
from django.utils import timezone

from grading.models.fields import enum_field, one_of


class AuditKind(StrEnum):
    """What an event is about. Each is one of `HistoryKind` too."""

    SIGN_IN = "sign-in"
    TOKEN = "token"  # noqa: S105 - no password
    PERSON = "person"
    DOWNLOAD = "download"
    RAW = "raw"


class AuditEvent(models.Model):
    """One event. `grading.access.recording.record` writes them, with text that is safe to show.

    `who` is a username, "token bob …a1b2", or empty for somebody who did not sign in. `what` is a clause ("signed in"),
    `address` where it came from, empty on the server itself.
    """

    at = models.DateTimeField(default=timezone.now)
    kind = enum_field(AuditKind)
    who = models.CharField(max_length=150, blank=True)
    what = models.CharField(max_length=300)
    detail = models.CharField(max_length=500, blank=True)
    address = models.CharField(max_length=45, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [one_of("auditevent", "kind", AuditKind)]
        indexes = [models.Index(fields=["-at", "-id"], name="auditevent_recent")]

    def __str__(self) -> str:
        return f"{self.who or 'nobody'} {self.what}"
