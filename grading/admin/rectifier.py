"""Recalibration on the bandit's page: what people's grades say of the machines, and putting that in force, or off."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from bandit.models import UnknownBandit
from grading.admin.shifts import arm_shifts, effect
from grading.review import recalibration


class ChangeForm(forms.Form):
    """`fingerprint` names what was on the page, to be put in force; without it what is in force is switched off."""

    version = forms.IntegerField(min_value=1)
    fingerprint = forms.CharField(max_length=16, required=False)
    note = forms.CharField(max_length=500, required=False)


def card(name: str) -> dict[str, Any]:
    """What the card shows. Raises UnknownBandit."""
    proposed = recalibration.proposal(name, timezone.now())
    shifts = arm_shifts(proposed.without, proposed.rectified)
    return {"proposal": proposed, "shifts": shifts, "effect": effect(shifts)}


@require_POST
def change(request: HttpRequest, name: str) -> HttpResponse:
    """Put the proposed offsets in force, or switch the recalibration off: one more version, with the user's name."""
    form = ChangeForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was saved: the form lacked the version it was about. Look again and submit.")
        return redirect("admin:bandit", name=name)
    try:
        messages.success(request, _changed(request, name, form.cleaned_data))
    except UnknownBandit as error:
        raise Http404(str(error)) from error
    except ValueError as error:
        messages.error(request, str(error))
    return redirect("admin:bandit", name=name)


def _changed(request: HttpRequest, name: str, said: dict[str, Any]) -> str:
    """Do what the form says; what was done, in words."""
    asked: dict[str, Any] = {"version": said["version"], "note": said["note"].strip()}
    if not said["fingerprint"]:
        row = recalibration.switch_off(name, request.user, **asked)  # type: ignore[arg-type] # the screen needs a login
        return f"The recalibration is off since version {row.version}: every posterior is the ledger's own again."
    proposed = recalibration.proposal(name, timezone.now())
    asked["fingerprint"] = said["fingerprint"]
    row = recalibration.put_in_force(proposed, request.user, **asked)  # type: ignore[arg-type] # as above
    return f"Version {row.version} is in force: {effect(arm_shifts(proposed.without, proposed.rectified))}."
