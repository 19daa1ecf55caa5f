"""Adapters of django-allauth: no sign-up, an encrypted second factor, and sign-in by an OpenID Connect provider."""

import base64
import logging
import secrets
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from grading.access import delays
from gradingsite import sealing
from gradingsite.clients import client_address
from gradingsite.state import site_command

log = logging.getLogger(__name__)
SECOND_FACTOR = "second factor"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc] # it ships no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def get_login_stages(self) -> list[str]:
        return ["allauth.mfa.stages.AuthenticateStage"]

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request.META)

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        delays.remember_browser(response, user)
        return response

    def add_message(
        self, request: HttpRequest, level: int, message_template: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        """Skip the message that says that the user is signed in."""
        if message_template != "account/messages/logged_in.txt":
            super().add_message(request, level, message_template, *args, **kwargs)

    def reauthenticate(self, user: User, password: str) -> bool:
        is_right: bool = super().reauthenticate(user, password)
        if is_right:
            delays.clear_failures(self.request, user)
        return is_right

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:  # noqa: ARG002
        return redirect_to_login(request, "This user is switched off. Ask an operator.")


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc] # it ships no types
    """Sign-in by the organisation's OpenID Connect provider."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Find the user: one who signed in like this before, or one whose address the provider has verified.

        Otherwise, if OIDC_NEW_USERS names a role, a user is created. If not, the person is redirected to the sign-in
        page, which says why.
        """
        if sociallogin.is_existing:
            return
        addresses = sociallogin.email_addresses
        verified = [address.email for address in addresses if address.verified is True and address.email]
        if not verified:
            self.refuse(
                request, "Your provider has not verified an e-mail address of yours, so nobody knows who you are."
            )
        # PostgreSQL compares capitals, and some letters have the same capital: that of ı is I.
        same_capitals = User.objects.filter(email__iexact=verified[0])
        users = [user for user in same_capitals if user.email.lower() == verified[0].lower()]
        if len(users) > 1:
            self.refuse(request, f"Several users have the address {verified[0]}. Ask an operator to leave it to one.")
        if not users and not settings.OIDC_NEW_USERS:
            self.refuse(request, f"No user here has the address {verified[0]}. Ask an operator to make one.")
        sociallogin.connect(request, users[0] if users else new_user(verified[0]))

    def on_authentication_error(self, request: HttpRequest, provider: Any, error: Any = None, **kwargs: Any) -> None:
        log.warning("sign-in by %s failed: %s %r", provider.name, error, kwargs.get("exception"))
        self.refuse(request, f"{provider.name} did not sign you in. Try again, or use a password.")

    def refuse(self, request: HttpRequest, why: str) -> None:
        raise ImmediateHttpResponse(redirect_to_login(request, why))

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:  # noqa: ARG002
        return False


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc] # it ships no types
    """Secrets are encrypted with a key made of SECRET_KEY: a stolen database gives no codes."""

    def encrypt(self, text: str) -> str:
        return sealing.seal(text, purpose=SECOND_FACTOR)

    def decrypt(self, encrypted_text: str) -> str:
        """The secret or, if SECRET_KEY was changed, a random one: no code is right until a new factor is set up."""
        try:
            return sealing.unseal(encrypted_text, purpose=SECOND_FACTOR)
        except sealing.CannotBeRead:
            log.warning(
                "a second factor cannot be read with this SECRET_KEY; see %s", site_command("remove_second_factor")
            )
            return base64.b32encode(secrets.token_bytes(20)).decode()


def new_user(address: str) -> User:
    """Create a user named by the address, with the role OIDC_NEW_USERS and no password."""
    name = address.lower()[:150]
    if User.objects.filter(username__iexact=name).exists():
        name = f"{name[:140]}-{secrets.token_hex(3)}"
    user = User(username=name, email=address, is_staff=True)
    user.set_unusable_password()
    user.save()
    user.groups.add(Group.objects.get(name=settings.OIDC_NEW_USERS))
    return user


def redirect_to_login(request: HttpRequest, why: str) -> HttpResponse:
    """Redirect to the sign-in page, which shows why nobody was signed in."""
    messages.error(request, why)
    return HttpResponseRedirect(reverse("admin:login"))
