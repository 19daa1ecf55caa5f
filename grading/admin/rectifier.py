"""Recalibration on the bandit's page: what people's grades say of the machines, and putting that in force, or off."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from bandit.models import UnknownBandit
from grading import charts
from grading.review import recalibration
from grading.review.recalibration import Proposal

# An arm that moves by less is not worth naming on a button.
NOTICEABLE = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmShift:
    """One arm's mean without a rectifier and with the proposed one, and its number of the next hundred."""

    arm: str
    picture: SafeString
    before: float
    after: float
    share_before: float
    share_after: float


class ChangeForm(forms.Form):
    """`fingerprint` names the offsets that were on the page; without it the recalibration is switched off."""

    version = forms.IntegerField(min_value=1)
    fingerprint = forms.CharField(max_length=16, required=False)
    note = forms.CharField(max_length=500, required=False)


def card(name: str) -> dict[str, Any]:
    """What the card shows. Raises UnknownBandit."""
    proposed = recalibration.proposal(name, timezone.now())
    shifts = arm_shifts(proposed)
    return {"proposal": proposed, "shifts": shifts, "effect": effect(shifts)}


def arm_shifts(proposed: Proposal) -> list[ArmShift]:
    """Every arm, the most moved first."""
    before, after = proposed.without, proposed.rectified
    rows = [
        ArmShift(
            arm=name,
            picture=charts.shift(name, arm.mean, after.arms[name].mean),
            before=arm.mean,
            after=after.arms[name].mean,
            share_before=before.share_of_next_100(name),
            share_after=after.share_of_next_100(name),
        )
        for name, arm in before.arms.items()
    ]
    return sorted(rows, key=lambda row: (-abs(row.after - row.before), row.arm))


def effect(shifts: list[ArmShift]) -> str:
    """What putting the proposal in force does, in a few words: the arm that it moves most."""
    moved = [row for row in shifts if abs(row.after - row.before) >= NOTICEABLE]
    if not moved:
        return "no arm moves by a thousandth"
    most = moved[0]
    others = "" if len(moved) == 1 else f", and {len(moved) - 1} more by less"
    return f"{most.arm} from {charts.thousandths(most.before)} to {charts.thousandths(most.after)}{others}"


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
    return f"Version {row.version} is in force: {effect(arm_shifts(proposed))}."
