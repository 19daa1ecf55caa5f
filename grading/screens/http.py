"""The decorator of every screen, and the request that its view gets."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.admin.views.decorators import staff_member_required
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from grading.screens.frame import PageFrame

P = ParamSpec("P")
View = Callable[..., HttpResponseBase]


class StaffRequest(HttpRequest):
    """A request by somebody who is signed in as staff."""

    user: User
    frame: PageFrame


def staff_only(view: View) -> View:
    """The view for staff, never cached; everybody else is sent to the login."""
    return never_cache(staff_member_required(view, login_url="admin:login"))


def staff_view(
    permission: str, *, to_post: str = "", methods: Sequence[str] = ("GET", "HEAD", "POST")
) -> Callable[[Callable[Concatenate[StaffRequest, P], HttpResponseBase]], View]:
    """A decorator for the screens' views: sign-in required, 403 without the permission, and 405 for other methods.

    `to_post`: the permission that a POST needs besides.

    The state of the site is read before the view reads its own rows: a page must not carry a newer version than its
    rows, or it would not be loaded again. After a POST it is read when the page is rendered, and shows the POST's
    effects.
    """

    def decorate(view: Callable[Concatenate[StaffRequest, P], HttpResponseBase]) -> View:
        @staff_only
        @permission_required(permission, raise_exception=True)
        @require_http_methods(methods)
        @wraps(view)
        def inner(request: StaffRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            request.frame = PageFrame(request)
            if request.method != "POST":
                _ = request.frame.site  # a cached property: read here, and kept for the page
            elif to_post and not request.user.has_perm(to_post):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return inner

    return decorate
