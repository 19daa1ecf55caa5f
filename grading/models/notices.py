"""What people are told outside the site: an outbox. A row is written with its cause and sent afterwards (L7)."""

import uuid
from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.models.monitoring import Alarm
from grading.models.notice_channels import Channel, NoticeChannel
from grading.models.redacted import redacted_char, redacted_text


class About(StrEnum):
    """What happened: an alarm opened, it no longer holds, or an operator wants to see whether notices arrive."""

    OPENED = "opened"
    RESOLVED = "resolved"
    TEST = "test"


class NoticeState(StrEnum):
    """`FAILED`: given up, whether refused for good or tried often enough."""

    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"


class NoticeQuerySet(models.QuerySet["Notice"]):
    def queued(self) -> "NoticeQuerySet":
        return self.filter(state=NoticeState.QUEUED)


class Notice(models.Model):
    """One message to one channel, said once for each opening and each end of an alarm.

    `to` is the channel that was typed in the browser; None for the one of its kind in the environment. `body` is what
    is sent, byte for byte; `key` names the message to whoever gets it twice. A queued one is due at `next_attempt_at`,
    which whoever sends it moves ahead first: that is the claim. `last_error` is in words.
    """

    key = models.UUIDField(default=uuid.uuid4, unique=True)
    channel = enum_field(Channel)
    to = models.ForeignKey(NoticeChannel, null=True, blank=True, on_delete=models.PROTECT, related_name="notices")
    about = enum_field(About)
    alarm = models.ForeignKey(Alarm, null=True, blank=True, on_delete=models.CASCADE, related_name="notices")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    subject = redacted_char(max_length=300)
    body = redacted_text()
    state = enum_field(NoticeState, default=NoticeState.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("notice", "channel", Channel),
            one_of("notice", "about", About),
            one_of("notice", "state", NoticeState),
            models.UniqueConstraint(
                fields=["alarm", "about", "channel"], condition=Q(to=None), name="notice_once_by_environment"
            ),
            models.UniqueConstraint(
                fields=["alarm", "about", "to"], condition=Q(to__isnull=False), name="notice_once_by_channel"
            ),
            models.CheckConstraint(condition=Q(alarm__isnull=False) | Q(about=About.TEST), name="notice_has_a_cause"),
            models.CheckConstraint(
                condition=(Q(state=NoticeState.SENT) & Q(sent_at__isnull=False))
                | (~Q(state=NoticeState.SENT) & Q(sent_at=None)),
                name="notice_sent_has_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(state=NoticeState.FAILED) | ~Q(last_error=""), name="notice_failed_says_why"
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(state=NoticeState.QUEUED), name="notice_due"),
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.state}: {self.subject}"

    @property
    def by_words(self) -> str:
        """The channel, as in "did not arrive by webhook “ops”"."""
        return Channel(self.channel).words if self.to is None else str(self.to)
