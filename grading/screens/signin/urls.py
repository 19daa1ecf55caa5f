"""The addresses that django-allauth knows by name: the second factor, and signing in by the provider."""

from collections.abc import Callable

from allauth.account.views import ReauthenticateView
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.totp import views as totp
from allauth.socialaccount.providers.openid_connect import views as provider
from django.http import HttpResponseBase
from django.urls import path
from django.views.generic import View

from grading.screens.http import staff_only
from grading.screens.signin.inviting import InvitationView
from grading.screens.signin.view import SignInView, to_provider


def titled(view: type[View], title: str) -> Callable[..., HttpResponseBase]:
    """One of allauth's views, for staff, with the title that the site's pages need."""
    return staff_only(view.as_view(extra_context={"title": title}))


urlpatterns = [
    path("login/", SignInView.as_view(), name="account_login"),
    path(
        "login/code/",
        second_factor.AuthenticateView.as_view(extra_context={"title": "Second factor"}),
        name="mfa_authenticate",
    ),
    path("invitation/<uidb64>/<token>/", InvitationView.as_view(), name="invitation"),
    path("login/<slug:provider_id>/", to_provider, name="openid_connect_login"),
    path("login/<slug:provider_id>/callback/", provider.callback, name="openid_connect_callback"),
    path("second-factor/", titled(second_factor.IndexView, "Second factor"), name="mfa_index"),
    path("second-factor/password/", titled(ReauthenticateView, "Who are you?"), name="account_reauthenticate"),
    path(
        "second-factor/code/",
        titled(second_factor.ReauthenticateView, "Who are you?"),
        name="mfa_reauthenticate",
    ),
    path("second-factor/app/", titled(totp.ActivateTOTPView, "Set up a second factor"), name="mfa_activate_totp"),
    path(
        "second-factor/app/remove/",
        titled(totp.DeactivateTOTPView, "Remove the second factor"),
        name="mfa_deactivate_totp",
    ),
    path(
        "second-factor/recovery/",
        titled(recovery.ViewRecoveryCodesView, "Recovery codes"),
        name="mfa_view_recovery_codes",
    ),
    path(
        "second-factor/recovery/new/",
        titled(recovery.GenerateRecoveryCodesView, "New recovery codes"),
        name="mfa_generate_recovery_codes",
    ),
]
