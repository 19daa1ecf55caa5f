"""Login sessions, which expire after SESSION_COOKIE_AGE without use.

The cookie has a key, and the database only its hash: nobody can sign in with what is in the database or a backup.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessions
from django.contrib.sessions.models import Session
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

# The key of the time of last use in a session's data, and the seconds after which it is updated.
LAST_USED = "seen"
UPDATE_SECONDS = 600
# Views that an open page requests by itself: they aren't use by a person.
REQUESTED_BY_PAGES = {"arrival", "feed", "feed_top", "review_renew", "run_progress", "rubric_try"}


class SessionStore(DatabaseSessions):
    """Django's database sessions, whose rows have the hash of the key in place of the key."""

    def _get_session_from_db(self) -> Session | None:
        try:
            return Session.objects.get(session_key=key_digest(self.session_key), expire_date__gt=timezone.now())
        except (Session.DoesNotExist, SuspiciousOperation):
            self._session_key = None
            return None

    def exists(self, session_key: str) -> bool:
        return Session.objects.filter(session_key=key_digest(session_key)).exists()

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row: Session = super().create_model_instance(data)  # type: ignore[assignment] # of its model
        row.session_key = key_digest(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(key_digest(key))


def key_digest(key: str | None) -> str:
    """The first 160 bits of the key's SHA-256. Keys are random, so a slow hash would add nothing."""
    return hashlib.sha256((key or "").encode()).hexdigest()[:40]


def note_use(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that prolongs a session while a person uses it. Writes at most every UPDATE_SECONDS."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.session.accessed:
            return response
        now, name = int(timezone.now().timestamp()), getattr(request.resolver_match, "url_name", "")
        is_due = LAST_USED in request.session and now - request.session[LAST_USED] >= UPDATE_SECONDS
        # A person opens the page `rubric_try`, which then requests itself with `state`.
        is_by_page = name in REQUESTED_BY_PAGES and (name != "rubric_try" or "state" in request.GET)
        if is_due and not is_by_page:
            request.session[LAST_USED] = now
        return response

    return answer
