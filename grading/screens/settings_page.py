"""Settings: where agents, rules and people are kept, for those who may."""

from django.http import HttpRequest
from django.template.response import TemplateResponse

from grading.reward.rewards import policy
from grading.screens.notices import view as notices


def show(request: HttpRequest) -> TemplateResponse:
    context = {"title": "Settings", "policy": policy(), **notices.card()}
    return TemplateResponse(request, "settings/settings.html", context)
