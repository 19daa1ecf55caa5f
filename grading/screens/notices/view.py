"""Notices: who receives alarms outside the site, what was sent, and a test message."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from grading.models import Notice, NoticeChannel
from grading.models.notices import Channel, ChannelState, NoticeState, Unusable
from grading.monitoring import outbox
from grading.monitoring.notices import channels, deliver
from grading.monitoring.notices.channels import Destination
from grading.monitoring.rule import RULES
from grading.screens.http import StaffRequest, staff_view

LISTED, LATEST = 100, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLine:
    """One channel on the page: its target without secrets, why it sends nothing, and its last message."""

    place: Destination
    where: str
    quiet: str
    last: Notice | None

    @property
    def variable(self) -> str:
        """The environment variable that sets the channel; empty for a channel typed in the browser."""
        return channels.VARIABLES[self.place.kind] if self.place.row is None else ""


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    rules = [rule for rule in RULES.values() if outbox.notifies_externally(rule)]
    context = {"title": "Notices", "rules": rules, **card(LISTED)}
    return TemplateResponse(request, "notices/notices.html", context)


def card(listed: int = LATEST) -> dict[str, object]:
    """The channels without their secrets, and the latest messages. Four queries."""
    return {"channels": lines(), "notices": latest()[:listed]}


def latest() -> QuerySet[Notice]:
    return Notice.objects.select_related("alarm", "by", "to").defer("body")


def lines() -> list[ChannelLine]:
    """Every channel, also paused ones; those of the environment first."""
    newest = latest().order_by().values("channel", "to").annotate(last=Max("pk")).values_list("last", flat=True)
    last = {(each.channel, each.to_id): each for each in latest().filter(pk__in=list(newest))}
    typed = NoticeChannel.objects.not_removed().select_related("by")
    all_places = [*channels.by_environment(), *(Destination(kind=Channel(row.kind), row=row) for row in typed)]
    return [_line(place, last.get((place.kind.value, place.row.pk if place.row else None))) for place in all_places]


def _line(place: Destination, last: Notice | None) -> ChannelLine:
    row, quiet = place.row, ""
    try:
        target = channels.of_environment(place.kind) if row is None else row.unseal()
        where = "" if target is None else channels.describe(target)
    except Unusable as error:
        where, quiet = "", str(error)
    if row is not None and row.state == ChannelState.PAUSED:
        quiet = "This channel is paused. Alarms that open while it is paused are not sent later."
    elif row is not None and not quiet and channels.is_overridden(row):
        quiet = f"{channels.VARIABLES[place.kind]} has the same target and takes precedence, so nothing is sent twice."
    elif not quiet and place.kind is Channel.EMAIL and not settings.MAIL_WORKS:
        quiet = "No mail server is configured. Set EMAIL_HOST."
    return ChannelLine(place=place, where=where, quiet=quiet, last=last)


@staff_view("grading.change_quota", methods=["POST"])
def test(request: StaffRequest) -> HttpResponse:
    """Send a message to each channel now and show the outcome."""
    send_test(request, channels.destinations())
    return redirect("admin:notices")


def send_test(request: HttpRequest, to: Iterable[Destination]) -> None:
    """Send a message to each of these places and show the outcome of each."""
    for notice in outbox.queue_test(request.user, to):
        subject = f"The test by {notice.by_words}"
        if deliver(notice):
            messages.success(request, f"{subject} was sent.")
            continue
        notice.refresh_from_db()
        if notice.state == NoticeState.FAILED:
            messages.error(request, f"{subject} was refused: {notice.last_error}.")
        else:
            messages.error(request, f"{subject} could not be delivered and will be retried: {notice.last_error}.")
