"""In which order sessions are locked: first the right to lock several, then these by their keys."""

from collections.abc import Iterable

from django.db import connection

from grading.models import Session

# Any number that no other advisory lock of this site has.
LOCK = 0x6F776E65


def alone() -> None:
    """Until the caller's transaction ends, nobody else decides who owns what or locks several sessions.

    Two intakes at once would not see each other's claims, and each could hold the session that the other waits for.
    SQLite's transactions are alone by themselves.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def locked(sessions: Iterable[int]) -> list[Session]:
    """Load the sessions of these keys for grading, locked in the order of their keys. Call it before settling any."""
    keys = set(sessions)
    return list(Session.objects.for_grading().filter(pk__in=keys).order_by("pk")) if keys else []
