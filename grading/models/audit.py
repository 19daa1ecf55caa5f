"""Append-only records: events (sign-ins, tokens, people, downloads, category rules, ...), and redactions."""

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of


class AuditKind(StrEnum):
    """What an event is about. `HistoryKind` has the same values, and others."""

    SIGN_IN = "sign-in"
    TOKEN = "token"  # noqa: S105 - no password
    PERSON = "person"
    DOWNLOAD = "download"
    RAW = "raw"
    CATEGORY = "category"
    PROJECT = "project"
    PRICE = "price"


class AuditEvent(models.Model):
    """One event. `grading.access.recording.record` writes them, with text that is safe to show."""

    at = models.DateTimeField(default=timezone.now)
    kind = enum_field(AuditKind)
    # A username, a token ("token bob …a1b2"), or empty for someone who isn't signed in.
    who = models.CharField(max_length=150, blank=True)
    # A clause, such as "signed in".
    what = models.CharField(max_length=300)
    detail = models.CharField(max_length=500, blank=True)
    # Empty if it happened on the server itself.
    address = models.CharField(max_length=45, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [one_of("auditevent", "kind", AuditKind)]
        indexes = [models.Index(fields=["-at", "-id"], name="auditevent_recent")]

    def __str__(self) -> str:
        return f"{self.who or 'nobody'} {self.what}"


class Redaction(models.Model):
    """One replacement of secrets in stored rows. Written only by `grading.intake.redacting.permit`.

    Append-only tables allow an UPDATE of their redacted columns only in a transaction that has created such a row and
    not closed it yet.
    """

    why = models.CharField(max_length=200)
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    # The number of changed rows, by table.
    counts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=~Q(why=""), name="redaction_says_why")]

    def __str__(self) -> str:
        return f"{self.opened_at:%Y-%m-%d %H:%M}: {self.why}"
