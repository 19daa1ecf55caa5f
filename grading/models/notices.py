"""Notices to people outside the site, and the channels to which they are sent.

Notices are an outbox: a row is written in the transaction of its cause, and sent afterwards.
"""

import json
import uuid
from dataclasses import asdict, dataclass
from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of, redacted_char, redacted_text
from grading.models.letters import WeeklyLetter
from grading.models.monitoring import Alarm
from grading.vocabulary import LabelledEnum
from gradingsite import sealing

PURPOSE = "notice channel"


class Channel(LabelledEnum):
    EMAIL = "email", "e-mail"
    WEBHOOK = "webhook"


class ChannelState(StrEnum):
    """A REMOVED channel stays for the notices that it sent, without its address."""

    ON = "on"
    PAUSED = "paused"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An http or https address, and the key that signs requests to it. Without a key they aren't signed."""

    url: str
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Recipients and sender. An empty sender is DEFAULT_FROM_EMAIL."""

    addresses: tuple[str, ...]
    sender: str = ""


Target = Webhook | Mail


class Unusable(ValueError):
    """The channel can't be decrypted, because the site's secret was changed. It must be entered again."""


class NoticeChannelQuerySet(models.QuerySet["NoticeChannel"]):
    def not_removed(self) -> "NoticeChannelQuerySet":
        return self.exclude(state=ChannelState.REMOVED)

    def on(self) -> "NoticeChannelQuerySet":
        return self.filter(state=ChannelState.ON)


class NoticeChannel(models.Model):
    """A channel that was entered in the browser.

    Address and key of a webhook are encrypted together: someone who can write to the row can't have another address
    called with the key.
    """

    kind = enum_field(Channel)
    name = redacted_char(max_length=80)
    sealed = models.TextField(blank=True)
    state = enum_field(ChannelState, default=ChannelState.ON)
    # Whether it gets the weekly letter besides alarms.
    letters = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    objects = NoticeChannelQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("notice_channel", "kind", Channel),
            one_of("notice_channel", "state", ChannelState),
            models.CheckConstraint(
                condition=Q(state=ChannelState.REMOVED, sealed="") | (~Q(state=ChannelState.REMOVED) & ~Q(sealed="")),
                name="notice_channel_sealed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} “{self.name}”"

    def put(self, target: Target, by: User) -> None:
        """Replace the target with this one, and save."""
        self.kind = Channel.WEBHOOK if isinstance(target, Webhook) else Channel.EMAIL
        self.sealed = sealing.seal(json.dumps({"kind": self.kind, **asdict(target)}), purpose=PURPOSE)
        self.by, self.at = by, timezone.now()
        self.save()

    def unseal(self) -> Target:
        """Decrypt the target. Raises Unusable."""
        try:
            target = json.loads(sealing.unseal(self.sealed, purpose=PURPOSE))
        except sealing.CannotBeRead:
            raise Unusable(
                "The stored settings can’t be read any more, because the site’s secret has changed. Enter them again."
            ) from None
        if target.pop("kind") == Channel.WEBHOOK:
            return Webhook(**target)
        return Mail(addresses=tuple(target["addresses"]), sender=target["sender"])

    def pause(self, *, paused: bool) -> None:
        self.state = ChannelState.PAUSED if paused else ChannelState.ON
        self.save(update_fields=["state"])

    def remove(self) -> None:
        """Delete its address. Notices that it sent still show its name."""
        self.state, self.sealed = ChannelState.REMOVED, ""
        self.save(update_fields=["state", "sealed"])


class About(StrEnum):
    """The occasion: an alarm was opened or resolved, a week is over, or an operator tests whether notices arrive."""

    OPENED = "opened"
    RESOLVED = "resolved"
    LETTER = "letter"
    TEST = "test"


class NoticeState(StrEnum):
    """FAILED: refused, or tried too often."""

    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"


class NoticeQuerySet(models.QuerySet["Notice"]):
    def queued(self) -> "NoticeQuerySet":
        return self.filter(state=NoticeState.QUEUED)


class Notice(models.Model):
    """One message to one channel: one for each opening and each end of an alarm, and one for each letter.

    A sender claims a queued notice by moving `next_attempt_at` ahead before it sends.
    """

    # Tells a recipient who gets the message twice that it is the same.
    key = models.UUIDField(default=uuid.uuid4, unique=True)
    channel = enum_field(Channel)
    # None for the channel of this kind that the environment configures.
    to = models.ForeignKey(NoticeChannel, null=True, blank=True, on_delete=models.PROTECT, related_name="notices")
    about = enum_field(About)
    alarm = models.ForeignKey(Alarm, null=True, blank=True, on_delete=models.CASCADE, related_name="notices")
    letter = models.ForeignKey(WeeklyLetter, null=True, blank=True, on_delete=models.CASCADE, related_name="notices")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    subject = redacted_char(max_length=300)
    body = redacted_text()  # as it is sent
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
            models.UniqueConstraint(
                fields=["letter", "channel"], condition=Q(to=None), name="letter_once_by_environment"
            ),
            models.UniqueConstraint(
                fields=["letter", "to"], condition=Q(to__isnull=False), name="letter_once_by_channel"
            ),
            models.CheckConstraint(
                condition=Q(alarm__isnull=False, letter=None)
                | Q(about=About.LETTER, alarm=None, letter__isnull=False)
                | Q(about=About.TEST, letter=None),
                name="notice_has_one_cause",
            ),
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
        """The channel, to follow "by", such as "webhook “ops”"."""
        return Channel(self.channel).words if self.to is None else str(self.to)
