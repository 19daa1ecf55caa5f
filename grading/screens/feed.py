"""The feed: what open pages ask for every few seconds. One poller of a browser asks for all its tabs.

A page shows the judge's state and the counts from the answer itself, and reads its own parts anew where a mark in the
answer is not the one it was built with: so everything is rendered in one place, and a page that missed a hundred
answers catches up by the next.
"""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.models import Session
from grading.screens.context import SiteNow, mark, site_now
from grading.templatetags.gradingsite_tags import stamp, zone

# The most sessions that one request may ask about.
WATCHED = 50


def show(request: HttpRequest) -> HttpResponse:
    """The state of the site as JSON; 304 where `since` is its version. `session`: whose mark to add, by key."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    user = request.user
    if not (user.is_active and user.is_staff and user.has_perm("grading.view_session")):
        return JsonResponse({"error": "You are signed out, or may not see sessions: sign in again."}, status=403)
    try:
        watched = sorted({int(each) for each in request.GET.getlist("session")})
    except ValueError:
        return JsonResponse({"error": "session: expected whole numbers, as in ?session=12&session=13."}, status=400)
    if len(watched) > WATCHED:
        return JsonResponse({"error": f"session: at most {WATCHED} at once, {len(watched)} came."}, status=400)
    return _answer(request, site_now(), watched)


def _answer(request: HttpRequest, now: SiteNow, watched: Sequence[int]) -> HttpResponse:
    body = {
        "judge": {"words": now.judge.words, "title": now.judge.title, "look": now.judge.look},
        "stopped": now.stopped,
        "counts": now.counts,
        "top": now.top,
        "news": now.news,
        "newest": now.latest[0],
        "sessions": marks_of(watched) if watched else {},
    }
    version = mark(body)
    response = HttpResponse(status=304)
    if request.GET.get("since") != version:
        response = JsonResponse({"version": version, "at": f"{stamp(timezone.now())} {zone(timezone.now())}", **body})
    response.headers["Cache-Control"] = "no-store"
    return response


def marks_of(sessions: Sequence[int]) -> dict[int, str]:
    """For each settled session, a mark that changes with its reward, verdict and open flags: one query."""
    rows = Session.objects.filter(pk__in=sessions, settlement__isnull=False)
    return {row.pk: reward_mark(row) for row in rows.only("settlement_id", "verdict_id", "open_flags")}


def reward_mark(session: Session) -> str:
    return f"{session.settlement_id or 0}.{session.verdict_id or 0}.{session.open_flags}"


def top(request: HttpRequest) -> TemplateResponse:
    """The lines at the top of every page, for one that may not be read anew because somebody types there."""
    return TemplateResponse(request, "shared/_banners.html", headers={"Cache-Control": "no-store"})
