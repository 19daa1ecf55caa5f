"""A channel for notices, in the browser: added, tested, changed, paused and removed. No secret is ever shown again."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.debug import sensitive_post_parameters

from grading.access.recording import record
from grading.models import NoticeChannel
from grading.models.audit import AuditKind
from grading.models.notices import (
    Channel,
    ChannelState,
    Mail,
    Target,
    Unusable,
    Webhook,
)
from grading.monitoring.notices import channels
from grading.monitoring.notices.channels import Destination
from grading.screens.http import StaffRequest, staff_view
from grading.screens.notices import view as notices

LONGEST, MOST_ADDRESSES = 1000, 50
# Fields that are stored encrypted and never shown again.
SECRETS = ("url", "secret")


class ChannelForm(forms.Form):
    """The base of both kinds of channel. `current` is the stored target; None if it is new or cannot be decrypted."""

    name = forms.CharField(max_length=80, label="Name", error_messages={"required": "Enter a name, such as “on call”."})

    letters = forms.BooleanField(required=False, label="Also send the weekly letter, on Mondays")

    def __init__(self, data: Any, *, row: NoticeChannel | None, current: Target | None) -> None:
        self.row, self.current = row, current
        initial = {"name": row.name if row else "", "letters": row is not None and row.letters}
        super().__init__(data, initial={**initial, **self.initial_values()})

    def initial_values(self) -> dict[str, object]:
        """The initial values of fields of `current` that are not secret."""
        return {}

    def target(self) -> Target:
        """The target that the valid form describes."""
        raise NotImplementedError

    def removed_note(self) -> str:
        """A sentence on what was removed because the address changed; "" if nothing was."""
        return ""


class WebhookForm(ChannelForm):
    url = forms.CharField(
        max_length=LONGEST,
        required=False,
        label="Address",
        widget=forms.PasswordInput,
        help_text=(
            "Receives a JSON POST and should answer with a 2xx status. Addresses in your own network are allowed. "
            "Link-local, multicast and cloud metadata addresses are refused. Redirects are not followed."
        ),
    )
    secret = forms.CharField(
        max_length=LONGEST,
        required=False,
        label="Signing secret",
        widget=forms.PasswordInput,
        help_text="The X-Gradingsite-Signature header contains a signature made with this secret.",
    )

    def clean_url(self) -> str:
        text: str = self.cleaned_data["url"]
        if not text:
            if self.current is None:
                raise ValidationError("Enter the address, such as https://hooks.example/path.")
            return text
        try:
            parts = urlsplit(text)
            is_http = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_http = False
        if not is_http or "@" in parts.netloc or not text.isascii() or not text.isprintable() or " " in text:
            # Not the text itself: it often holds a secret.
            raise ValidationError("Expected an http or https address without a user name, such as https://host/path.")
        return text

    def target(self) -> Webhook:
        url, secret = self.cleaned_data["url"], self.cleaned_data["secret"]
        if isinstance(self.current, Webhook) and url in {"", self.current.url}:
            return Webhook(url=self.current.url, secret=secret or self.current.secret)
        return Webhook(url=url, secret=secret)

    def removed_note(self) -> str:
        had_secret = isinstance(self.current, Webhook) and bool(self.current.secret)
        if had_secret and not self.target().secret:
            return "The stored key was removed, because it was entered for another address."
        return ""


class MailForm(ChannelForm):
    addresses = forms.CharField(
        max_length=4000,
        label="E-mail addresses",
        widget=forms.Textarea,
        error_messages={"required": "Enter at least one e-mail address."},
    )
    sender = forms.EmailField(max_length=254, required=False, label="Sender")

    def initial_values(self) -> dict[str, object]:
        current = self.current if isinstance(self.current, Mail) else Mail(addresses=())
        return {"addresses": "\n".join(current.addresses), "sender": current.sender}

    def clean_addresses(self) -> tuple[str, ...]:
        addresses = tuple(dict.fromkeys(self.cleaned_data["addresses"].replace(",", " ").replace(";", " ").split()))
        for address in addresses:
            try:
                validate_email(address)
            except ValidationError:
                raise ValidationError(
                    f"Expected one e-mail address per line. “{address[:80]}” is not an e-mail address."
                ) from None
        if len(addresses) > MOST_ADDRESSES:
            raise ValidationError(
                f"Expected at most {MOST_ADDRESSES} addresses, got {len(addresses)}. Use the address of a mailing list."
            )
        return addresses

    def target(self) -> Mail:
        return Mail(addresses=self.cleaned_data["addresses"], sender=self.cleaned_data["sender"])


FORMS: dict[Channel, type[ChannelForm]] = {Channel.WEBHOOK: WebhookForm, Channel.EMAIL: MailForm}


@staff_view("grading.change_quota")
@sensitive_post_parameters(*SECRETS)
def add(request: StaffRequest) -> HttpResponse:
    """The form of a new channel of the `kind` in the request; a POST adds the channel."""
    kind_name = request.POST.get("kind") or request.GET.get("kind")
    kind = Channel(kind_name) if kind_name in set(Channel) else Channel.WEBHOOK
    row = NoticeChannel(kind=kind)
    form = FORMS[kind](request.POST if request.method == "POST" else None, row=None, current=None)
    if form.is_bound and form.is_valid():
        _save(request, row, form)
        return redirect("admin:notices")
    return _page(request, form, kind=kind, title="Add a channel")


@staff_view("grading.change_quota")
@sensitive_post_parameters(*SECRETS)
def show(request: StaffRequest, pk: int) -> HttpResponse:
    """One channel. The `do` of a POST is save, test, pause, resume or remove."""
    row = get_object_or_404(NoticeChannel.objects.not_removed(), pk=pk)
    kind = Channel(row.kind)
    try:
        current, trouble = row.unseal(), ""
    except Unusable as error:
        current, trouble = None, str(error)
    do = request.POST.get("do", "")
    form = FORMS[kind](request.POST if do == "save" else None, row=row, current=current)
    if request.method != "POST" or (do == "save" and not form.is_valid()):
        where = channels.describe(current) if current else ""
        return _page(request, form, kind=kind, title=row.name, row=row, where=where, trouble=trouble)
    if do == "save":
        _save(request, row, form)
    elif do == "test":
        notices.send_test(request, [Destination(kind=kind, row=row)])
    elif do in {"pause", "resume"}:
        row.pause(paused=do == "pause")
        record(AuditKind.TOKEN, f"{do}d the {row}")
        messages.success(request, f"The {row} is paused." if do == "pause" else f"The {row} is active again.")
    elif do == "remove":
        row.remove()
        record(AuditKind.TOKEN, f"removed the {row}")
        messages.success(request, f"The {row} and its settings are deleted. Notices that it sent stay listed.")
    else:
        messages.error(request, "Nothing was changed: expected save, test, pause, resume or remove.")
    return redirect("admin:notices")


def _save(request: StaffRequest, row: NoticeChannel, form: ChannelForm) -> None:
    is_new, before = row.pk is None, str(row)
    row.name, row.letters = form.cleaned_data["name"], form.cleaned_data["letters"]
    target, removed_note = form.target(), form.removed_note()
    row.put(target, request.user)
    where = channels.describe(target)
    if is_new:
        record(AuditKind.TOKEN, f"added the {row}", detail=f"to {where}")
    else:
        renamed = f"was {before}; " if before != str(row) else ""
        record(AuditKind.TOKEN, f"changed the {row}", detail=f"{renamed}to {where}")
    messages.success(request, f"Saved the {row}: {where}. {removed_note}".strip())
    if request.POST.get("then") == "test" and row.state == ChannelState.ON:
        notices.send_test(request, [Destination(kind=Channel(row.kind), row=row)])


def _page(request: StaffRequest, form: ChannelForm, *, kind: Channel, title: str, **more: object) -> TemplateResponse:
    context = {
        "title": title,
        "form": form,
        "kind": kind.value,
        "row": None,
        "mail_server": settings.EMAIL_HOST if settings.MAIL_WORKS else "",
        "default_sender": settings.DEFAULT_FROM_EMAIL,
        **more,
    }
    return TemplateResponse(request, "notices/channel.html", context)
