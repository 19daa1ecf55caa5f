"""The record of secrets that were replaced in stored rows."""

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Redaction(models.Model):
    """Why and when secrets were replaced in rows from before, and in how many of which table.

    While one is open, in the transaction that opened it and in no other, append-only tables allow an UPDATE of their
    redacted columns. Written by `grading.intake.redacting.permit` alone.
    """

    why = models.CharField(max_length=200)
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=~Q(why=""), name="redaction_says_why")]

    def __str__(self) -> str:
        return f"{self.opened_at:%Y-%m-%d %H:%M}: {self.why}"
