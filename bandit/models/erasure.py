"""The record of erasures."""

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Erasure(models.Model):
    """Who deleted append-only rows, when, why and how many of each kind. Written only by `bandit.erasure.permit`.

    `digests` are the caller's hashes of what was erased, so that it can be erased again after a backup is restored;
    None if an earlier version erased it, which stored none.
    """

    who = models.CharField(max_length=200)
    why = models.TextField()
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)
    digests = models.JSONField(null=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.CheckConstraint(condition=~Q(who="") & ~Q(why=""), name="bandit_erasure_says_who_and_why")
        ]

    def __str__(self) -> str:
        return f"{self.opened_at:%Y-%m-%d %H:%M} {self.who}: {self.why}"
