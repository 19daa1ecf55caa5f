"""Bytes of evidence that went because they were old: their rows and rewards stay."""

from django.db import models
from django.utils import timezone


class ExpiredBlob(models.Model):
    """Stored bytes, by their SHA-256, that retention deleted. Those sent again since are there again."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    expired_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.sha256[:12]
