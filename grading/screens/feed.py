"""The feed: what every open page asks for every few seconds, answered from what this process found out a moment ago.

One poller of a browser asks for all its tabs. A page shows the judge's state and the counts from the answer itself, and
reads its own parts anew where a mark in the answer is not the one it was built with: so everything is rendered in one
place, and a page that missed a hundred answers catches up by the next.
"""

import threading
import time
from collections.abc import Sequence

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from grading import zones
from grading.models import SessionState
from grading.screens.context import SiteNow, mark, site_now
from grading.screens.zone.view import zone_of
from grading.templatetags.gradingsite_tags import stamp

# How long what was found out is passed on, and how long a cookie is known to be that of somebody who may look.
FRESH_SECONDS, KNOWN_SECONDS = 1.0, 10.0
# So many browsers and sessions at most are kept in mind, or asked about at once.
COOKIES, WATCHED = 10_000, 50


class Snapshot:
    """What holds for everybody, read by one thread at a time and at most once in FRESH_SECONDS.

    Meanwhile the others pass on what was read before: a database that is slow to answer keeps one thread, not all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._now: SiteNow | None = None

    def read(self) -> SiteNow:
        last = self._now
        if not self._lock.acquire(blocking=last is None):
            return last  # type: ignore[return-value] # nobody but the first waits
        try:
            if self._now is None or time.monotonic() - self._read_at >= FRESH_SECONDS:
                self._now, self._read_at = site_now(), time.monotonic()
            return self._now
        finally:
            self._lock.release()

    def forget(self) -> None:
        with self._lock:
            self._now = None


class Known:
    """The cookies of those who may look and their zones, for KNOWN_SECONDS each: whoever is signed out is refused by
    then.
    """

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, str]] = {}

    def zone_of(self, request: HttpRequest) -> str | None:
        """The name of the zone of whoever asks, if they may look; None if they may not."""
        cookie, now = request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""), time.monotonic()
        until, name = self._until.get(cookie, (0.0, ""))
        if until > now:
            return name
        user = request.user
        if not (user.is_active and user.is_staff and user.has_perm("grading.view_session")):
            self._until.pop(cookie, None)
            return None
        if len(self._until) >= COOKIES:
            self._until = {key: held for key, held in list(self._until.items()) if held[0] > now}
        name = zone_of(request)
        self._until[cookie] = (now + KNOWN_SECONDS, name)
        return name

    def forget(self) -> None:
        self._until.clear()


snapshot, known = Snapshot(), Known()


def forget() -> None:
    """In tests, where the same site begins anew."""
    snapshot.forget()
    known.forget()


def show(request: HttpRequest) -> HttpResponse:
    """The state of the site as JSON; 304 where `since` is its version. `session`: whose mark to add, by key."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    zone = known.zone_of(request)
    if zone is None:
        return JsonResponse({"error": "You are signed out, or may not see sessions: sign in again."}, status=403)
    try:
        watched = sorted({int(each) for each in request.GET.getlist("session")})
    except ValueError:
        return JsonResponse({"error": "session: expected whole numbers, as in ?session=12&session=13."}, status=400)
    if len(watched) > WATCHED:
        return JsonResponse({"error": f"session: at most {WATCHED} at once, {len(watched)} came."}, status=400)
    with zones.reading(lambda: zone):
        return _answer(request, snapshot.read(), watched)


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
        response = JsonResponse(
            {"version": version, "at": f"{stamp(timezone.now())} {zones.abbreviation(timezone.now())}", **body}
        )
    response.headers["Cache-Control"] = "no-store"
    return response


def marks_of(sessions: Sequence[int]) -> dict[int, str]:
    """For each session that has a state, a mark that changes with it: one query."""
    found = SessionState.objects.filter(pk__in=sessions)
    return {state.pk: state_mark(state) for state in found.only("settlement_id", "verdict_id", "flags")}


def state_mark(state: SessionState) -> str:
    return f"{state.settlement_id or 0}.{state.verdict_id or 0}.{state.flags}"


def top(request: HttpRequest) -> TemplateResponse:
    """The lines at the top of every page, for one that may not be read anew because somebody types there."""
    return TemplateResponse(request, "shared/_banners.html", headers={"Cache-Control": "no-store"})
