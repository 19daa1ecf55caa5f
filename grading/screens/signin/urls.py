"""The addresses that django-allauth knows by name: the second factor, and the provider's way in."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import views as account
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.totp import views as totp
from allauth.socialaccount.providers.openid_connect import views as provider
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from grading.screens.signin.inviting import InvitationView
from grading.screens.signin.view import to_provider
from grading.screens.site import site

View = Callable[..., HttpResponseBase]


def framed(view: View, title: str) -> View:
    """A view of allauth's with what every page of the site has."""

    @wraps(view)
    def inner(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        response = view(request, **arguments)
        if isinstance(response, TemplateResponse):
            response.context_data = {**site.each_context(request), "title": title, **(response.context_data or {})}
        return response

    return inner


def of_staff(route: str, view: View, name: str, title: str) -> URLPattern:
    return path(route, site.admin_view(framed(view, title)), name=name)


urlpatterns = [
    path("login/", site.login, name="account_login"),
    path("login/code/", framed(second_factor.authenticate, "Second factor"), name="mfa_authenticate"),
    path("invitation/<uidb64>/<token>/", framed(InvitationView.as_view(), "Set your password"), name="invitation"),
    path("login/<slug:provider_id>/", to_provider, name="openid_connect_login"),
    path("login/<slug:provider_id>/callback/", provider.callback, name="openid_connect_callback"),
    of_staff("second-factor/", second_factor.index, "mfa_index", "Second factor"),
    of_staff("second-factor/password/", account.reauthenticate, "account_reauthenticate", "Who are you?"),
    of_staff("second-factor/code/", second_factor.reauthenticate, "mfa_reauthenticate", "Who are you?"),
    of_staff("second-factor/app/", totp.activate_totp, "mfa_activate_totp", "Set up a second factor"),
    of_staff("second-factor/app/remove/", totp.deactivate_totp, "mfa_deactivate_totp", "Remove the second factor"),
    of_staff("second-factor/recovery/", recovery.view_recovery_codes, "mfa_view_recovery_codes", "Recovery codes"),
    of_staff(
        "second-factor/recovery/new/",
        recovery.generate_recovery_codes,
        "mfa_generate_recovery_codes",
        "New recovery codes",
    ),
]
