"""Signing in with name and password, and a second factor for people who have one."""

import logging
from typing import Any

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.socialaccount.providers.openid_connect import views as provider_views
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from grading.access.adapters import redirect_to_login
from grading.templatetags.gradingsite_tags import duration

log = logging.getLogger(__name__)


def to_provider(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Redirect to the OpenID Connect provider, or back with an error message if it does not answer."""
    from requests import RequestException

    try:
        response: HttpResponseBase = provider_views.login(request, provider_id)
    except RequestException as error:
        log.warning("sign-in by %s: %r", settings.OIDC_NAME, error)
        return redirect_to_login(request, f"{settings.OIDC_NAME} does not answer. Try again, or use a password.")
    return response


class SignInForm(AdminAuthenticationForm):
    def get_invalid_login_error(self) -> ValidationError:
        """The error; after too many failures, it says for how long no password is checked."""
        seconds = getattr(self.request, "seconds_to_wait", 0)
        if seconds:
            return ValidationError(
                f"Too many attempts have failed. Try again in {duration(seconds)}. Until then, no password is checked."
            )
        return super().get_invalid_login_error()


class SignInView(LoginView):
    template_name = "admin/login.html"
    authentication_form = SignInForm
    next_page = "admin:index"
    extra_context = {"title": "Log in"}

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_active and request.user.is_staff:
            return redirect("admin:index")
        return super().get(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """The password is right. allauth decides whether a second factor is needed."""
        login = Login(user=form.get_user(), redirect_url=self.get_success_url())
        response: HttpResponse = perform_password_login(self.request, {"username": form.get_user().username}, login)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        if seconds := getattr(self.request, "seconds_to_wait", 0):
            response.status_code, response["Retry-After"] = 429, str(seconds)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        provider = reverse("openid_connect_login", args=["sso"]) if settings.OIDC_CLIENT_ID else ""
        return {**super().get_context_data(**kwargs), "provider": provider, "provider_name": settings.OIDC_NAME}
