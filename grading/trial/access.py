"""Who may open the pages of a trial: whoever has the address that was printed. It works once, and becomes a cookie.

Without this, each user of the machine, each agent, and each web page (by DNS rebinding) could read every prompt. The
secrets are in the memory of the one process alone.
"""

import secrets
import threading
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import SimpleLazyObject

from grading.roles import OPERATOR

View = Callable[[HttpRequest], HttpResponse]
USERNAME = "you"
START, OPEN = "/try/", "/try/open/"
COOKIE_SECONDS = 30 * 86_400  # it ends with the process anyway


class AccessKey:
    """The secrets of this run: a token, which works once, and the value of the cookie."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token: str | None = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)

    @property
    def address(self) -> str:
        """The address with the token. Empty once it was used."""
        return "" if self._token is None else f"http://{settings.HOST}:{settings.PORT}{OPEN}?token={self._token}"

    def spend(self, token: str) -> bool:
        """Whether this is the token. If it is, it does not work again."""
        with self._lock:
            is_right = self._token is not None and secrets.compare_digest(token.encode(), self._token.encode())
            if is_right:
                self._token = None
            return is_right

    def opens(self, cookie: str) -> bool:
        return secrets.compare_digest(cookie.encode(), self.cookie.encode())


KEY = AccessKey()


def require_key(get_response: View) -> View:
    """Middleware of a trial: answers 403 without the cookie, to another host's name, and to pages of other sites.

    The printed address sets the cookie and leads to the first page.
    """
    if not settings.TRIAL:
        raise MiddlewareNotUsed
    hosts = {f"{name}:{settings.PORT}" for name in (settings.HOST, "localhost")}
    cookie_name = f"trial_{settings.PORT}"

    def answer(request: HttpRequest) -> HttpResponse:
        host, origin = request.META.get("HTTP_HOST", ""), request.META.get("HTTP_ORIGIN")
        if host not in hosts or origin not in {None, f"http://{host}"}:
            return forbidden("This is not the trial’s address. Open the address that `gradingsite try` printed.")
        is_open = KEY.opens(request.COOKIES.get(cookie_name, ""))
        if request.path != OPEN:
            return get_response(request) if is_open else forbidden("Open the address that `gradingsite try` printed.")
        is_first = KEY.spend(request.GET.get("token", ""))
        if not (is_first or is_open):
            return forbidden(
                "This address works only once and has already been used. If you didn’t use it, another program on "
                "this machine did. Press Ctrl-C where you started `gradingsite try` and start it again. It prints a "
                "new address and continues where it stopped."
            )
        response = HttpResponseRedirect(START)
        response.headers["Cache-Control"] = "no-store"
        if is_first:
            # Lax, because the first request comes from outside the site.
            response.set_cookie(cookie_name, KEY.cookie, max_age=COOKIE_SECONDS, httponly=True, samesite="Lax")
        return response

    return answer


def forbidden(why: str) -> HttpResponse:
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return HttpResponse(f"{why}\n", status=403, content_type="text/plain; charset=utf-8", headers=headers)


def sign_in(get_response: View) -> View:
    """Middleware of a trial: every request that `require_key` let through is the local user's."""
    if not settings.TRIAL:
        raise MiddlewareNotUsed

    def answer(request: HttpRequest) -> HttpResponse:
        request.user = cast("User", SimpleLazyObject(lambda: User.objects.get(username=USERNAME)))
        return get_response(request)

    return answer


def make_local_user() -> User:
    """The user of a trial: an operator without a password. A normal site makes its own `admin`."""
    user, is_new = User.objects.get_or_create(username=USERNAME, defaults={"is_staff": True})
    if is_new:
        user.set_unusable_password()
        user.save()
        user.groups.add(Group.objects.get(name=OPERATOR))
    return user
