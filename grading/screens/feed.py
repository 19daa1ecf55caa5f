"""The feed, which open pages poll every few seconds.

A page shows the judge's state and the counts from the reply. If the reply's `version` differs from the one that the
page was rendered with, it loads its live parts again, so that they are rendered in one place only.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import condition, require_safe

from grading.models import Session
from grading.screens.frame import SiteNow, mark, site_now
from grading.screens.http import StaffRequest, staff_view
from grading.templatetags.gradingsite_tags import stamp, zone


@require_safe
@never_cache
def show(request: HttpRequest) -> HttpResponse:
    """The state of the site as JSON; 304 if the request has its ETag. `session` is the key of the page's session."""
    user = request.user
    if not (user.is_active and user.is_staff and user.has_perm("grading.view_session")):
        return JsonResponse({"error": "You are signed out, or may not see sessions. Sign in again."}, status=403)
    try:
        session = int(request.GET["session"]) if "session" in request.GET else None
    except ValueError:
        return JsonResponse({"error": "session: expected a whole number, as in ?session=12."}, status=400)
    now = site_now()
    state = {
        "at": f"{stamp(timezone.now())} {zone(timezone.now())}",
        "judge": {"text": now.judge.text, "short": now.judge.short, "title": now.judge.title, "mark": now.judge.mark},
        "stopped": now.stopped,
        "counts": now.counts,
        "top": now.top,
        "newest": now.latest[0],
        "version": page_version(now, session),
    }
    response: HttpResponse = _answer(request, state)
    return response


@condition(etag_func=lambda _request, state: f'"{mark(state)}"')
def _answer(request: HttpRequest, state: dict[str, Any]) -> HttpResponse:  # noqa: ARG001 - for the decorator
    return JsonResponse(state)


def page_version(now: SiteNow, session: int | None) -> str:
    """A hash that changes when the live parts of a page may have changed.

    For a session's page it depends on the session's reward, verdict and open flags, and on the banners (one query); for
    any other page on everything.
    """
    if session is None:
        return now.version
    settled = Session.objects.filter(pk=session, settlement__isnull=False)
    return mark([now.top, settled.values_list("settlement_id", "verdict_id", "open_flags").first()])


@staff_view("grading.view_session")
@never_cache
def top(request: StaffRequest) -> TemplateResponse:
    """The banners at the top of every page."""
    return TemplateResponse(request, "shared/_banners.html")
