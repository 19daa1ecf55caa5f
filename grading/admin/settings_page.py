"""Settings: where agents, rules and people are kept, for those who may."""

from django.http import HttpRequest
from django.template.response import TemplateResponse

from grading.admin import notices
from grading.rewards import policy


def show(request: HttpRequest) -> TemplateResponse:
    context = {"title": "Settings", "policy": policy(), **notices.card()}
    return TemplateResponse(request, "gradingsite/settings.html", context)
