"""The zone in which a person reads times: chosen on a page, and what each request is answered in."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from grading import zones
from grading.models import PersonZone


class ZoneForm(forms.Form):
    zone = forms.CharField(max_length=64, required=False, label="Time zone")

    def clean_zone(self) -> str:
        """Its name as the tz database writes it, however it was typed."""
        typed: str = self.cleaned_data["zone"].replace(" ", "_")
        if not typed or typed in zones.names():
            return typed
        found = [name for name in zones.names() if name.lower() == typed.lower()]
        if not found:
            raise forms.ValidationError("Expected a zone such as Europe/Berlin, or nothing for the site’s own.")
        return found[0]


class PersonsZone:
    """Middleware: pages are written in the zone of whoever asks. Whose it is, is looked up when the first time is
    written, so that calls without one cost nothing.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with zones.reading(lambda: zone_of(request)):
            return self.get_response(request)

    def process_template_response(self, _request: HttpRequest, response: TemplateResponse) -> TemplateResponse:
        """Django writes the times of its own lists. Its forms keep the site's zone, by which they are read too."""
        if "cl" in (response.context_data or {}):
            vars(response)["render"] = partial(_in_persons_zone, response.render)
        return response


def _in_persons_zone(render: Callable[[], HttpResponse]) -> HttpResponse:
    with timezone.override(zones.current()):
        return render()


def zone_of(request: HttpRequest) -> str:
    """The name of the zone that whoever asks has chosen; empty for none. One query."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return ""
    return PersonZone.objects.filter(user=user).values_list("zone", flat=True).first() or ""


def show(request: HttpRequest) -> HttpResponse:
    """The page where each person chooses their own."""
    user: Any = request.user  # somebody's: the screen needs a login
    chosen = zone_of(request)
    form = ZoneForm(request.POST if request.method == "POST" else None, initial={"zone": chosen})
    if form.is_bound and form.is_valid():
        zone = form.cleaned_data["zone"]
        if zone:
            PersonZone.objects.update_or_create(user=user, defaults={"zone": zone})
        else:
            PersonZone.objects.filter(user=user).delete()
        messages.success(request, f"You now read times in {zone or f'the site’s zone, {settings.TIME_ZONE}'}.")
        return redirect("admin:zone")
    context = {
        "title": "Your time zone",
        "form": form,
        "chosen": chosen,
        "site_zone": settings.TIME_ZONE,
        "zones": sorted(zones.names()),
        "now": timezone.now(),
    }
    return TemplateResponse(request, "zone/zone.html", context)
