"""The page on which a person assigns a name in transcripts to a model."""

from itertools import chain

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from bandit import arms
from bandit.models import Arm
from grading.intake import naming
from grading.screens.arms.view import CHANGE, LISTED
from grading.screens.http import StaffRequest, staff_view


class ModelNameForm(forms.Form):
    """Assigns `text`, as written in transcripts, to the existing model `arm` or else to a new model called `name`."""

    text = forms.CharField()
    arm = forms.ModelChoiceField(
        Arm.objects.in_bandit(naming.BANDIT).filter(merged_into=None),
        required=False,
        error_messages={
            "invalid_choice": ("This model has been merged or removed in the meantime. Choose another model.")
        },
    )
    name = forms.CharField(max_length=arms.MAX_NAME, required=False)


@staff_view("bandit.view_arm", to_post=CHANGE)
def show(request: StaffRequest) -> HttpResponse:
    """The names in transcripts that are assigned to no model. A POST assigns one."""
    if request.method == "POST":
        form = ModelNameForm(request.POST)
        if form.is_valid():
            _name_model(request, **form.cleaned_data)
        else:
            for error in chain.from_iterable(form.errors.values()):
                messages.error(request, str(error))
        return redirect("admin:models")
    context = {
        "title": "Models without a name",
        "rows": naming.unnamed_texts()[:LISTED],
        "waiting": naming.count_waiting(),
        "models": Arm.objects.in_bandit(naming.BANDIT).filter(merged_into=None),
        "bandit": naming.BANDIT,
        "may": request.user.has_perm(CHANGE),
        "longest": arms.MAX_NAME,
    }
    return TemplateResponse(request, "arms/models.html", context)


def _name_model(request: StaffRequest, *, text: str, arm: Arm | None, name: str) -> None:
    try:
        model = naming.name_model(text, by=request.user.get_username(), name=name, arm=arm)
    except ValueError as error:
        messages.error(request, str(error))
        return
    waiting = naming.count_waiting()
    more = f" {waiting} more sessions get this name within minutes." if waiting else ""
    messages.success(request, f"{text} now means {model}, and its sessions were settled again.{more}")
