"""The order in which sessions are locked: first the lock on ownership, then the sessions in the order of their keys."""

from collections.abc import Iterable

from django.db import connection

from grading.models import Session

# Any number that no other advisory lock of this site has.
LOCK_KEY = 0x6F776E65


def lock() -> None:
    """Take the lock on ownership until the caller's transaction ends. Take it before locking several sessions.

    Without it, two intakes at once would not see each other's claims, and could deadlock on each other's sessions.
    SQLite runs one writing transaction at a time and needs no lock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])


def lock_sessions(sessions: Iterable[int]) -> list[Session]:
    """Load the sessions of these keys for grading, locked in the order of their keys. Call it before settling any."""
    keys = set(sessions)
    return list(Session.objects.for_grading().filter(pk__in=keys).order_by("pk")) if keys else []
