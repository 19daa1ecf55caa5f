"""Where notices go: by the environment, and by the channels typed in the browser; what both name, by the former."""

from dataclasses import dataclass, replace

from django.conf import settings

from grading.models import Notice, NoticeChannel
from grading.models.notices import Channel, ChannelState, Mail, Target, Unusable, Webhook
from grading.monitoring.notices import webhook
from grading.monitoring.notices.outcomes import DeliveryRefused

VARIABLES = {Channel.EMAIL: "NOTIFY_EMAIL", Channel.WEBHOOK: "NOTIFY_WEBHOOK"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Somebody to tell: a row typed in the browser, or None for the environment's channel of this kind."""

    kind: Channel
    row: NoticeChannel | None = None

    def __str__(self) -> str:
        return self.kind.words if self.row is None else str(self.row)


def places() -> list[Place]:
    """Where a notice goes now. One query."""
    typed = [Place(kind=Channel(row.kind), row=row) for row in NoticeChannel.objects.on() if not overridden(row)]
    return [*by_environment(), *typed]


def by_environment() -> list[Place]:
    return [Place(kind=kind) for kind in Channel if of_environment(kind) is not None]


def target(notice: Notice) -> Target:
    """Where one notice is sent. Raises DeliveryRefused where its channel is gone, paused or can't be read."""
    if notice.to is None:
        target = of_environment(Channel(notice.channel))
        if target is None:
            name = VARIABLES[Channel(notice.channel)]
            raise DeliveryRefused(f"no {Channel(notice.channel).words} is configured any more ({name})")
        return target
    if notice.to.state != ChannelState.ON:
        raise DeliveryRefused(f"the channel was {notice.to.state}")
    try:
        target = _without_environments(notice.to.unseal())
    except Unusable as error:
        raise DeliveryRefused(str(error)) from None
    if target is None:
        raise DeliveryRefused(f"{VARIABLES[Channel(notice.channel)]} names the same address, and is told")
    return target


def overridden(row: NoticeChannel) -> bool:
    """Whether the environment names everything that the row does, so that nobody is told twice."""
    try:
        return _without_environments(row.unseal()) is None
    except Unusable:
        return False


def described(target: Target) -> str:
    """Where it leads, in words that give nothing away: the host of a webhook, the number of addresses."""
    if isinstance(target, Webhook):
        return f"{webhook.host(target.url)}, {'signed' if target.secret else 'not signed'}"
    return f"{len(target.addresses)} address{'es' * (len(target.addresses) != 1)}, by {settings.EMAIL_HOST}"


def of_environment(kind: Channel) -> Target | None:
    """What the environment says of this kind, if anything."""
    if kind is Channel.EMAIL:
        return Mail(addresses=tuple(settings.NOTIFY_EMAIL)) if settings.NOTIFY_EMAIL else None
    url = settings.NOTIFY_WEBHOOK
    return Webhook(url=url, secret=settings.NOTIFY_WEBHOOK_SECRET) if url else None


def _without_environments(target: Target) -> Target | None:
    if isinstance(target, Webhook):
        return None if target.url == settings.NOTIFY_WEBHOOK else target
    environment = {address.lower() for address in settings.NOTIFY_EMAIL}
    addresses = tuple(address for address in target.addresses if address.lower() not in environment)
    return replace(target, addresses=addresses) if addresses else None
