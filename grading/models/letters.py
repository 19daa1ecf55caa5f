"""The weekly letters that were written."""

import datetime as dt

from django.db import models
from django.utils import timezone

from grading.models.fields import redacted_char, redacted_json


class WeeklyLetter(models.Model):
    """The letter about one week as it was sent. One row for each week, so that no letter is sent twice.

    Later corrections don't change it. Without sentences, there was nothing to say and nothing was sent.
    """

    monday = models.DateField(unique=True)
    subject = redacted_char(max_length=200, blank=True)
    sentences = redacted_json(default=list, blank=True)
    written_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-monday"]

    def __str__(self) -> str:
        return f"the letter about the week of {self.monday:%-d %B %Y}"

    @property
    def sunday(self) -> dt.date:
        """The last day of its week."""
        return self.monday + dt.timedelta(days=6)
