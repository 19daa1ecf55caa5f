"""Delays after failed sign-ins, against guessing passwords.

Failures are counted for each name and address together, and for each address over all names. They aren't counted by
name alone, because anybody could then lock a user out by failing in that name. So these delays don't prevent guessing
from very many addresses; long passwords and a second factor do. A browser that a user has signed in with before is
counted by itself: whoever guesses from the same address can't delay that user.

An attempt is counted before its password is checked, and the count is cleared if it was right, so that many attempts at
once gain nothing.
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

# Failures without a delay: of one name at one address, and of one address.
FREE_FAILURES, FREE_FAILURES_OF_ADDRESS = 5, 20
MIN_SECONDS, MAX_SECONDS = 10, 15 * 60
# Failures are forgotten after this.
FAILURE_LIFETIME = dt.timedelta(days=1)
BROWSER_COOKIE = f"known_{settings.PORT}"
BROWSER_COOKIE_LIFETIME = dt.timedelta(days=180)
NO_ADDRESS = "0.0.0.0"  # noqa: S104 - stored, not bound


def wait(failures: int, free: int) -> dt.timedelta:
    """The delay after this many failures. The first `free` have none. Then it is 10 s, doubled by each, up to 900 s."""
    if failures < free:
        return dt.timedelta()
    return dt.timedelta(seconds=min(MIN_SECONDS * 2 ** min(failures - free, 20), MAX_SECONDS))


class GrowingDelay(AxesHandler):  # type: ignore[misc] # it ships no types
    """The handler that django-axes calls before a password is checked, and after a sign-in."""

    def is_allowed(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        """Whether the attempt may be made; it is then counted. If it is too early, sets `request.seconds_to_wait`."""
        now = timezone.now()
        name, address = failure_key(request, (credentials or {}).get("username"))
        with transaction.atomic():
            AccessAttempt.objects.filter(attempt_time__lt=now - FAILURE_LIFETIME).delete()
            # Checked before a row is made for this name, so that refused attempts don't fill the table with names.
            until = now
            at_address = AccessAttempt.objects.filter(ip_address=address)
            total = at_address.aggregate(failures=Sum("failures_since_start"), last=Max("attempt_time"))
            if address != NO_ADDRESS and total["failures"]:
                until = total["last"] + wait(total["failures"], FREE_FAILURES_OF_ADDRESS)
            by_name = AccessAttempt.objects.select_for_update().filter(username=name, ip_address=address).first()
            if by_name:
                until = max(until, by_name.attempt_time + wait(by_name.failures_since_start, FREE_FAILURES))
            if until > now:
                request.seconds_to_wait = math.ceil((until - now).total_seconds())  # type: ignore[attr-defined]
                return False
            attempt, _ = AccessAttempt.objects.get_or_create(
                username=name, ip_address=address, user_agent="", defaults={"failures_since_start": 0}
            )
            AccessAttempt.objects.filter(pk=attempt.pk).update(
                failures_since_start=F("failures_since_start") + 1, attempt_time=now
            )
        return True

    def user_logged_in(self, sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:  # noqa: ARG002
        clear_failures(request, user)

    def post_save_access_attempt(self, instance: AccessAttempt, **kwargs: Any) -> None:
        """Nothing to do; django-axes requires this method and the next."""

    def post_delete_access_attempt(self, instance: AccessAttempt, **kwargs: Any) -> None:
        pass


def clear_failures(request: HttpRequest, user: User) -> None:
    """Delete the failures of this user at this address. Those of other names at the address stay."""
    name, address = failure_key(request, user.get_username())
    AccessAttempt.objects.filter(username=name, ip_address=address).delete()


def failure_key(request: HttpRequest, name: object) -> tuple[str, str]:
    """The (hash, address) under which failed sign-ins are counted.

    A browser that this user has signed in with before is counted by itself: under its own hash, and NO_ADDRESS. All
    others are counted by name and network. The name is hashed, because people type their password there by mistake.
    """
    name = str(name or "")
    if browser := _known_browser(request, name):
        return salted_hmac("known browser", f"{browser}/{name}").hexdigest(), NO_ADDRESS
    return salted_hmac("sign-in", name).hexdigest(), _network(request)


def _known_browser(request: HttpRequest, name: str) -> str:
    """The browser's id from its signed cookie, if the cookie was set for this name; otherwise empty."""
    try:
        cookie = signing.loads(
            request.COOKIES.get(BROWSER_COOKIE, ""), salt=BROWSER_COOKIE, max_age=BROWSER_COOKIE_LIFETIME
        )
        return cookie["browser"] if cookie["name"] == name else ""
    except (signing.BadSignature, TypeError, KeyError):
        return ""


def _network(request: HttpRequest) -> str:
    """The client's address, or its IPv6 /64 network, because a household has a whole one. NO_ADDRESS if unknown."""
    text = client_address(request.META)
    address = ip_address(text) if text else None
    if isinstance(address, IPv6Address):
        address = IPv6Address(int(address) >> 64 << 64)
    return str(address or NO_ADDRESS)


def remember_browser(response: HttpResponse, user: User) -> None:
    """Set the cookie by which `failure_key` recognises this browser. Nobody can sign in with it."""
    cookie = {"browser": secrets.token_hex(16), "name": user.get_username()}
    response.set_cookie(
        BROWSER_COOKIE,
        signing.dumps(cookie, salt=BROWSER_COOKIE),
        max_age=BROWSER_COOKIE_LIFETIME,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
