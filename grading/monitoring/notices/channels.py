"""Where notices go: the environment's channels, and the channels typed in the browser that aren't among them."""

from dataclasses import dataclass, replace

from django.conf import settings

from grading.models import Notice, NoticeChannel
from grading.models.notices import Channel, ChannelState, Mail, Target, Unusable, Webhook
from grading.monitoring.notices import webhook
from grading.monitoring.notices.outcomes import DeliveryRefused

VARIABLES = {Channel.EMAIL: "NOTIFY_EMAIL", Channel.WEBHOOK: "NOTIFY_WEBHOOK"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a notice goes: to a channel typed in the browser (`row`), or to the environment's channel of this kind."""

    kind: Channel
    row: NoticeChannel | None = None

    def __str__(self) -> str:
        return self.kind.words if self.row is None else str(self.row)


def destinations() -> list[Destination]:
    """Where notices go now. One query."""
    typed = [
        Destination(kind=Channel(row.kind), row=row) for row in NoticeChannel.objects.on() if not is_overridden(row)
    ]
    return [*by_environment(), *typed]


def letter_destinations() -> list[Destination]:
    """Where a weekly letter goes now: only to channels that are set to get it. One query."""
    typed = [place for place in destinations() if place.row is not None and place.row.letters]
    return [*by_environment(), *typed] if settings.NOTIFY_LETTER else typed


def by_environment() -> list[Destination]:
    """The channels that the environment configures."""
    return [Destination(kind=kind) for kind in Channel if of_environment(kind) is not None]


def target(notice: Notice) -> Target:
    """Where a notice is sent. Raises DeliveryRefused if its channel is gone, paused or unreadable."""
    if notice.to is None:
        target = of_environment(Channel(notice.channel))
        if target is None:
            name = VARIABLES[Channel(notice.channel)]
            raise DeliveryRefused(f"no {Channel(notice.channel).words} is configured any more ({name})")
        return target
    if notice.to.state != ChannelState.ON:
        raise DeliveryRefused(f"the channel was {notice.to.state}")
    try:
        target = _without_environment(notice.to.unseal())
    except Unusable as error:
        raise DeliveryRefused(str(error)) from None
    if target is None:
        raise DeliveryRefused(f"{VARIABLES[Channel(notice.channel)]} names the same address and gets the notice")
    return target


def is_overridden(row: NoticeChannel) -> bool:
    """Whether the environment has every address of the row. The row is then unused, so nobody is notified twice."""
    try:
        return _without_environment(row.unseal()) is None
    except Unusable:
        return False


def describe(target: Target) -> str:
    """A description without secrets: the host of a webhook, or the number of addresses."""
    if isinstance(target, Webhook):
        return f"{webhook.host(target.url)}, {'signed' if target.secret else 'not signed'}"
    noun = "address" if len(target.addresses) == 1 else "addresses"
    return f"{len(target.addresses)} {noun}, by {settings.EMAIL_HOST}"


def of_environment(kind: Channel) -> Target | None:
    """The environment's channel of this kind, if any."""
    if kind is Channel.EMAIL:
        return Mail(addresses=tuple(settings.NOTIFY_EMAIL)) if settings.NOTIFY_EMAIL else None
    url = settings.NOTIFY_WEBHOOK
    return Webhook(url=url, secret=settings.NOTIFY_WEBHOOK_SECRET) if url else None


def _without_environment(target: Target) -> Target | None:
    """The target without the addresses that the environment configures as well; None if no address is left."""
    if isinstance(target, Webhook):
        return None if target.url == settings.NOTIFY_WEBHOOK else target
    environment = {address.lower() for address in settings.NOTIFY_EMAIL}
    addresses = tuple(address for address in target.addresses if address.lower() not in environment)
    return replace(target, addresses=addresses) if addresses else None
