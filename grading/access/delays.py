"""Guessing passwords is slow: after some failures whoever guesses waits, longer each time, and nobody else does.

Failures are counted by name and address together, and by address over all names; never by name alone, or else anybody
could shut somebody out by failing in their name. So an address that never failed is always answered, and guessing from
very many addresses is met by long passwords and a second factor, not here. A browser that its user has signed in with
before is counted by itself: whoever guesses from the same address cannot make that user wait.

An attempt is counted before its password is looked at, and taken back when it was right: many at once gain nothing.
"""

import datetime as dt
import math
import secrets
from ipaddress import IPv6Address, ip_address
from typing import Any

from axes.handlers.base import AxesHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import F, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from gradingsite.clients import client_address

# Failures without a wait: of one name at one address, and of one address.
FREE, FREE_OF_ADDRESS = 5, 20
FIRST_WAIT, LONGEST_WAIT = 10, 15 * 60
REMEMBERED = dt.timedelta(days=1)
KNOWN_BROWSER = f"known_{settings.PORT}"
KNOWN_FOR = dt.timedelta(days=180)
NOWHERE = "0.0.0.0"  # noqa: S104 - stored, not bound


def wait(failures: int, free: int) -> dt.timedelta:
    """The delay after the last of these failures: 10 s, doubled with each that is not free, up to 15 minutes."""
    beyond = failures - free
    if beyond < 0:
        return dt.timedelta()
    return dt.timedelta(seconds=min(FIRST_WAIT * 2 ** min(beyond, 20), LONGEST_WAIT))


class GrowingDelay(AxesHandler):  # type: ignore[misc] # it ships no types
    """What django-axes asks before a password is looked at, and tells of what came of it."""

    def is_allowed(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        """Counts the attempt. Refused, it sets `seconds_to_wait` on the request and counts for nothing."""
        now = timezone.now()
        name, address = place(request, (credentials or {}).get("username"))
        with transaction.atomic():
            AccessAttempt.objects.filter(attempt_time__lt=now - REMEMBERED).delete()
            # Before there is a row of this name: whoever waits fills no table with names.
            until = now
            at_address = AccessAttempt.objects.filter(ip_address=address)
            total = at_address.aggregate(failures=Sum("failures_since_start"), last=Max("attempt_time"))
            if address != NOWHERE and total["failures"]:
                until = total["last"] + wait(total["failures"], FREE_OF_ADDRESS)
            held = AccessAttempt.objects.select_for_update().filter(username=name, ip_address=address).first()
            if held:
                until = max(until, held.attempt_time + wait(held.failures_since_start, FREE))
            if until > now:
                request.seconds_to_wait = math.ceil((until - now).total_seconds())  # type: ignore[attr-defined]
                return False
            attempt, _ = AccessAttempt.objects.get_or_create(
                username=name, ip_address=address, user_agent="", defaults={"failures_since_start": 0}
            )
            counted = AccessAttempt.objects.filter(pk=attempt.pk)
            counted.update(failures_since_start=F("failures_since_start") + 1, attempt_time=now)
        return True

    def user_logged_in(self, sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:  # noqa: ARG002
        """Takes back what was counted of this name here; what was tried with other names at the address stays."""
        forgive(request, user)

    def post_save_access_attempt(self, instance: AccessAttempt, **kwargs: Any) -> None:
        """django-axes asks for these two."""

    def post_delete_access_attempt(self, instance: AccessAttempt, **kwargs: Any) -> None:
        pass


def forgive(request: HttpRequest, user: User) -> None:
    name, address = place(request, user.get_username())
    AccessAttempt.objects.filter(username=name, ip_address=address).delete()


def place(request: HttpRequest, name: object) -> tuple[str, str]:
    """What failures are counted by: a hash of the name, which may be a mistyped password, and the address.

    Of IPv6 it is the network that one household has. A browser that the user signed in with before has a name of its
    own and no address.
    """
    name = str(name or "")
    if browser := _known_browser(request, name):
        return salted_hmac("known browser", f"{browser}/{name}").hexdigest(), NOWHERE
    text = client_address(request.META)
    address = ip_address(text) if text else None
    if isinstance(address, IPv6Address):
        address = IPv6Address(int(address) >> 64 << 64)
    return salted_hmac("sign-in", name).hexdigest(), str(address or NOWHERE)


def _known_browser(request: HttpRequest, name: str) -> str:
    try:
        held = signing.loads(request.COOKIES.get(KNOWN_BROWSER, ""), salt=KNOWN_BROWSER, max_age=KNOWN_FOR)
        return held["browser"] if held["name"] == name else ""
    except (signing.BadSignature, TypeError, KeyError):
        return ""


def remember_browser(response: HttpResponse, user: User) -> None:
    """A cookie by which this browser is known when the user signs in again. It opens nothing."""
    held = {"browser": secrets.token_hex(16), "name": user.get_username()}
    response.set_cookie(
        KNOWN_BROWSER,
        signing.dumps(held, salt=KNOWN_BROWSER),
        max_age=KNOWN_FOR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
