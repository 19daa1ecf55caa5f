"""Where notices go: channels typed in the browser and kept sealed, and what is sealed in them."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.models.redacted import redacted_char
from gradingsite import sealing

PURPOSE = "notice channel"


class Channel(StrEnum):
    EMAIL = "email"
    WEBHOOK = "webhook"

    @property
    def words(self) -> str:
        return {Channel.EMAIL: "e-mail", Channel.WEBHOOK: "webhook"}[self]


class ChannelState(StrEnum):
    """`REMOVED`: nothing is sealed in it any more; what was sent by it stays."""

    ON = "on"
    PAUSED = "paused"
    REMOVED = "removed"


class Encryption(StrEnum):
    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An http or https address, and the key that posts to it are signed with; empty where they are not."""

    url: str
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    host: str
    port: int
    user: str = ""
    password: str = ""
    encryption: Encryption = Encryption.NONE

    def is_same_place(self, other: "MailServer") -> bool:
        """Whether a password for one may be sent to the other: the same account, and no less well kept on the way."""
        return all(getattr(self, name) == getattr(other, name) for name in ("host", "port", "user", "encryption"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """People's addresses, and the server and sender that reach them; None and "": those of the environment."""

    addresses: tuple[str, ...]
    server: MailServer | None = None
    sender: str = ""


Target = Webhook | Mail


class Unusable(ValueError):
    """What is sealed in the channel can't be read: the site's secret was changed since. Type it again."""


class NoticeChannelQuerySet(models.QuerySet["NoticeChannel"]):
    def kept(self) -> "NoticeChannelQuerySet":
        return self.exclude(state=ChannelState.REMOVED)

    def on(self) -> "NoticeChannelQuerySet":
        return self.filter(state=ChannelState.ON)


class NoticeChannel(models.Model):
    """A channel typed in the browser. Address, people and passwords are sealed together, so that whoever writes another
    address into the row gets nothing that can be read.
    """

    kind = enum_field(Channel)
    name = redacted_char(max_length=80)
    sealed = models.TextField(blank=True)
    state = enum_field(ChannelState, default=ChannelState.ON)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    objects = NoticeChannelQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("notice_channel", "kind", Channel),
            one_of("notice_channel", "state", ChannelState),
            models.CheckConstraint(
                condition=models.Q(state=ChannelState.REMOVED, sealed="")
                | (~models.Q(state=ChannelState.REMOVED) & ~models.Q(sealed="")),
                name="notice_channel_sealed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} “{self.name}”"

    def put(self, target: Target, by: User) -> None:
        """Seal what it leads to, in place of anything before."""
        self.kind = Channel.WEBHOOK if isinstance(target, Webhook) else Channel.EMAIL
        self.sealed = sealing.seal(json.dumps({"kind": self.kind, **asdict(target)}), purpose=PURPOSE)
        self.by, self.at = by, timezone.now()
        self.save()

    def opened(self) -> Target:
        """Where it leads. Raises Unusable."""
        try:
            held = json.loads(sealing.unseal(self.sealed, purpose=PURPOSE))
        except sealing.CannotBeRead:
            raise Unusable(
                "What was typed can’t be read any more: the site’s secret was changed since. Type it again."
            ) from None
        if held.pop("kind") == Channel.WEBHOOK:
            return Webhook(**held)
        server = held["server"]
        if server is not None:
            server = MailServer(**{**server, "encryption": Encryption(server["encryption"])})
        return Mail(addresses=tuple(held["addresses"]), server=server, sender=held["sender"])

    def pause(self, *, paused: bool) -> None:
        self.state = ChannelState.PAUSED if paused else ChannelState.ON
        self.save(update_fields=["state"])

    def remove(self) -> None:
        """Forget where it led; what was sent by it keeps its name."""
        self.state, self.sealed = ChannelState.REMOVED, ""
        self.save(update_fields=["state", "sealed"])
