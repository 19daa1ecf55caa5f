"""Notices: who is told of alarms outside the site, what was sent, and a test of it."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST

from grading import monitoring
from grading.models import Notice
from grading.models.notices import Channel
from grading.monitoring import outbox
from grading.monitoring.notices import deliver, targets

LISTED, LATEST = 100, 5


def show(request: HttpRequest) -> TemplateResponse:
    rules = [rule for rule in monitoring.RULES.values() if outbox.notifies_externally(rule)]
    context = {"title": "Notices", "rules": rules, **card(LISTED)}
    return TemplateResponse(request, "notices/notices.html", context)


def card(listed: int = LATEST) -> dict[str, object]:
    """The channels in words that give nothing away, and the latest messages: one query."""
    channels = [(channel.words, said) for channel, said in targets().items()]
    return {"channels": channels, "notices": latest()[:listed]}


def latest() -> QuerySet[Notice]:
    return Notice.objects.select_related("alarm", "by").defer("body")


@require_POST
def test(request: HttpRequest) -> HttpResponse:
    """Send a message to each channel now, so that its outcome is seen at once."""
    for notice in outbox.test(request.user):
        words = Channel(notice.channel).words
        if deliver(notice):
            messages.success(request, f"The {words} was sent.")
        else:
            notice.refresh_from_db()
            messages.error(request, f"The {words} didn’t arrive: {notice.last_error}")
    return redirect("admin:notices")
