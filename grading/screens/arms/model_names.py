"""The page on which a person says which model a name in transcripts means."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from bandit import arms
from bandit.models import Arm
from grading.intake import naming
from grading.screens.arms.view import CHANGE, LISTED, require_operator
from grading.screens.http import StaffRequest, primary_key, staff_view


@staff_view("bandit.view_arm")
def show(request: StaffRequest) -> HttpResponse:
    """The names that mean no model yet; a POST says what one of them means."""
    if request.method == "POST":
        require_operator(request)
        text, chosen = request.POST.get("text", ""), request.POST.get("arm", "")
        by, name = request.user.get_username(), request.POST.get("name", "").strip()
        arm = Arm.objects.in_bandit(naming.BANDIT).filter(pk=primary_key(chosen)).first()
        try:
            model = naming.name_model(text, by=by, name=name, arm=arm)
        except ValueError as error:
            messages.error(request, str(error))
        else:
            waiting = naming.count_waiting()
            more = f" {waiting} more sessions get it within minutes." if waiting else ""
            messages.success(request, f"{text} is {model} from now on, and its sessions were settled as such.{more}")
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
