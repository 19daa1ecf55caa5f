"""Connect an agent: a name, a token that is shown once, the hook file and the lines to paste."""

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.template.response import TemplateResponse

from grading.models import Agent, ApiToken


class ConnectForm(forms.Form):
    agent = forms.SlugField(
        max_length=80,
        error_messages={"invalid": "A name of letters, digits, hyphens and underscores, for example bob."},
    )
    note = forms.CharField(max_length=120, required=False)


def show(request: HttpRequest) -> TemplateResponse:
    form, issued, agent = ConnectForm(request.POST or None), "", None
    if request.method == "POST" and form.is_valid():
        agent, _created = Agent.objects.get_or_create(name=form.cleaned_data["agent"])
        _row, issued = ApiToken.objects.issue(
            agent,
            note=form.cleaned_data["note"],
            created_by=request.user,  # type: ignore[arg-type] # the screen needs a login
        )
    context = {
        "title": "Connect an agent",
        "form": form,
        "agent": agent,
        "issued": issued,
        "agents": Agent.objects.filter(is_sample=False),
        "address": settings.SITE_URL.rstrip("/") or request.build_absolute_uri("/").rstrip("/"),
    }
    return TemplateResponse(request, "connect/connect.html", context)
