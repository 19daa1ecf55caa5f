"""Sessions of people: they end after twelve hours without use, and the database does not hold what opens one.

The cookie has a key; the database has its hash. Whoever reads the database, or a backup, can sign in by neither.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessions
from django.contrib.sessions.models import Session
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

SEEN = "seen"
SEEN_EVERY = 600
# What an open page asks for by itself, whether or not anybody is there.
ASKED_BY_PAGES = {"feed", "feed_top", "review_renew", "run_progress", "rubric_try"}


class SessionStore(DatabaseSessions):
    """Django's sessions in the database, under the hash of their key."""

    def _get_session_from_db(self) -> Session | None:
        try:
            return Session.objects.get(session_key=stored(self.session_key), expire_date__gt=timezone.now())
        except (Session.DoesNotExist, SuspiciousOperation):
            self._session_key = None
            return None

    def exists(self, session_key: str) -> bool:
        return Session.objects.filter(session_key=stored(session_key)).exists()

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row: Session = super().create_model_instance(data)  # type: ignore[assignment] # of its model
        row.session_key = stored(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(stored(key))


def stored(key: str | None) -> str:
    """The first 160 bits of the key's SHA-256. Keys are random, so a slow hash would add nothing."""
    return hashlib.sha256((key or "").encode()).hexdigest()[:40]


def note_use(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: a session that somebody uses lives on; noted every ten minutes, so that reading writes little."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.session.accessed:
            return response
        now, name = int(timezone.now().timestamp()), getattr(request.resolver_match, "url_name", "")
        is_due = SEEN in request.session and now - request.session[SEEN] >= SEEN_EVERY
        if is_due and not (name in ASKED_BY_PAGES and (name != "rubric_try" or "state" in request.GET)):
            request.session[SEEN] = now
        return response

    return answer
