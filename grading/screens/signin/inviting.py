"""Invites people by e-mail. They set a password themselves."""

import logging
from smtplib import SMTPException
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.mail import send_mail
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse, reverse_lazy
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from grading.access.recording import record
from grading.agent.views import site_address
from grading.models.audit import AuditKind
from grading.roles import OPERATOR, REVIEWER, VIEWER
from grading.screens.http import StaffRequest, staff_view

log = logging.getLogger(__name__)

BODY = """{by} invites you to {site} as {role}.

Set a password here, within three days; the link works once:
{link}

Your user name is {name}.
"""


class InvitationForm(forms.Form):
    address = forms.EmailField(label="E-mail address", max_length=150)
    role = forms.ChoiceField(
        choices=[
            (VIEWER, "viewer: reads everything"),
            (REVIEWER, "reviewer: also corrects grades"),
            (OPERATOR, "operator: also runs the site, and invites people"),
        ]
    )

    def clean_address(self) -> str:
        """The address in lower case. It must be unused, or of a person who was invited and has not signed in yet."""
        address: str = self.cleaned_data["address"].lower()
        for user in User.objects.filter(email__iexact=address) | User.objects.filter(username__iexact=address):
            if user.has_usable_password() or user.last_login or not user.is_active:
                raise forms.ValidationError(f"{user.get_username()} already has this address.")
        return address


@staff_view("grading.change_quota")
def invite(request: StaffRequest) -> HttpResponse:
    form = InvitationForm(request.POST or None) if settings.MAIL_WORKS else None
    if form is not None and request.method == "POST" and form.is_valid():
        _send(request, form.cleaned_data["address"], form.cleaned_data["role"])
        return HttpResponseRedirect(reverse("admin:invite"))
    return TemplateResponse(request, "signin/invite.html", {"title": "Invite somebody", "form": form})


def _send(request: HttpRequest, address: str, role: str) -> None:
    """Create the user and mail the link. If the mail fails, no user is created."""
    user, is_new = User.objects.get_or_create(username=address, defaults={"email": address, "is_staff": True})
    if is_new:
        user.set_unusable_password()
        user.save()
    user.groups.set([Group.objects.get(name=role)])
    key = urlsafe_base64_encode(force_bytes(user.pk))
    path = reverse("invitation", args=[key, default_token_generator.make_token(user)])
    site = site_address(request)
    by = request.user.get_username()
    text = BODY.format(by=by, site=site, role=role, link=site + path, name=address)
    try:
        send_mail("Invitation to gradingsite", text, None, [address])
    except (OSError, SMTPException) as error:
        log.warning("no invitation was sent: %r", error)
        if is_new:
            user.delete()
        messages.error(request, f"No invitation was sent: the mail server refused it ({type(error).__name__}).")
        return
    record(AuditKind.PERSON, f"invited {address} as {role}")
    messages.success(request, f"Invited {address}. The link works once, for three days.")


class InvitationView(PasswordResetConfirmView):
    """The page on which an invited person sets a password. The link works once, and its secret is removed from the URL
    immediately.
    """

    template_name = "signin/invitation.html"
    title = "Set your password"
    success_url = reverse_lazy("admin:login")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, f"Your password is set. Log in as {form.user.get_username()}.")
        return super().form_valid(form)
