"""Connects an agent: a name, a token that is shown once, the hook file and the lines to paste. Also lists the tokens,
with who uses each, and actions on them.
"""

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.access.recording import record
from grading.agent.submit_session import HOOK_SETTINGS, PLUGIN_FILES
from grading.agent.views import hook_checksum, site_address
from grading.intake import token_quota
from grading.models import Agent, ApiToken, LogImport, Session
from grading.models.agents import TokenScope
from grading.models.audit import AuditKind
from grading.screens.http import StaffRequest, staff_view

# Display names of harnesses that differ from their identifiers.
TITLES = {"claude-code": "Claude Code", "codex": "Codex CLI"}
# The choices of a token's scope: label and explanation.
HOLDERS = (
    (TokenScope.HOOK, "The hook on the agent’s machine", "The usual choice for one person’s machine."),
    (
        TokenScope.RUNNER,
        "A runner that the agent cannot read",
        "The agent runs as another user or on another machine. What the runner reports counts in full.",
    ),
    (
        TokenScope.AGENT,
        "The agent itself",
        "The agent reports on its own work, so its rewards count less.",
    ),
    (TokenScope.READ, "A dashboard or script", "It can read but not submit."),
    (
        TokenScope.OUTCOMES,
        "CI",
        "It reports whether work passed or was merged. It can neither read nor submit sessions.",
    ),
)


class ConnectForm(forms.Form):
    agent = forms.SlugField(
        max_length=80,
        error_messages={"invalid": "A name of letters, digits, hyphens and underscores, for example bob."},
    )
    note = forms.CharField(max_length=120, required=False)
    scope = forms.TypedChoiceField(
        choices=[(scope.value, label) for scope, label, _ in HOLDERS],
        coerce=TokenScope,
        required=False,
        empty_value=TokenScope.HOOK,
    )


class TokenForm(forms.Form):
    """What to do with a token that works."""

    token = forms.ModelChoiceField(ApiToken.objects.filter(revoked_at=None).select_related("agent"))
    do = forms.ChoiceField(
        choices=[(act, act) for act in ("rotate", "revoke", *(f"narrow {scope}" for scope, _, _ in HOLDERS))]
    )


@staff_view("grading.add_apitoken")
def show(request: StaffRequest) -> TemplateResponse:
    form = ConnectForm(initial={"agent": request.GET.get("agent", "")})
    token, issued = None, ""
    if request.method == "POST" and "token" in request.POST:
        token, issued = _change(request)
    elif request.method == "POST":
        form = ConnectForm(request.POST)
        if form.is_valid():
            data = form.cleaned_data
            agent, _created = Agent.objects.get_or_create(name=data["agent"])
            options = {"scope": data["scope"], "note": data["note"], "created_by": request.user}
            token, issued = ApiToken.objects.issue(agent, **options)
            record(AuditKind.TOKEN, f"made the token {token}", detail=f"held by {data['scope'].words}")
    now = timezone.now()
    working = ApiToken.objects.filter(agent__is_sample=False, revoked_at=None).select_related("agent", "created_by")
    used = token_quota.used_today(now)
    context = {
        "title": "Connect an agent",
        "form": form,
        "token": token,
        "issued": issued,
        "holders": HOLDERS,
        "chosen": form["scope"].value() or TokenScope.HOOK.value,
        "tokens": [
            {
                "row": row,
                "scope": TokenScope(row.scope),
                "over": row.expires_at is not None and row.expires_at <= now,
                "used": used.get(row.pk),
            }
            for row in working.order_by("agent__name", "-created_at")
        ],
        "quotas": {"usd": settings.TOKEN_DAILY_JUDGE_USD, **token_quota.limits()},
        "imported": LogImport.objects.select_related("agent").first(),
        "address": site_address(request),
        "harnesses": [(name, TITLES.get(name, name), name in PLUGIN_FILES) for name in HOOK_SETTINGS],
        "checksum": hook_checksum(request),
    }
    return TemplateResponse(request, "connect/connect.html", context)


@staff_view("grading.add_apitoken")
def arrival(request: StaffRequest, pk: int) -> TemplateResponse:
    """A part of the page: the first session that was submitted with the token. The page polls it until there is one."""
    token = get_object_or_404(ApiToken.objects.select_related("agent"), pk=pk)
    sent = Session.objects.filter(agent=token.agent, received_at__gte=token.created_at, submissions__token=token)
    context = {"token": token, "session": sent.select_related("harness").order_by("received_at").first()}
    return TemplateResponse(request, "connect/_arrival.html", context)


def _change(request: StaffRequest) -> tuple[ApiToken | None, str]:
    """Rotate, narrow or revoke the token that the form names. Returns the new token and its secret, if it rotates."""
    form = TokenForm(request.POST)
    if "token" in form.errors:
        raise Http404("This token does not exist or has been revoked.")
    if not form.is_valid():
        messages.error(request, "Nothing was changed: expected rotate, revoke or narrow.")
        return None, ""
    token, act = form.cleaned_data["token"], form.cleaned_data["do"]
    if act == "rotate":
        row, secret = token.rotate(request.user)
        record(AuditKind.TOKEN, f"rotated the token {token}", detail=f"the new one is {row}")
        return row, secret
    if act == "revoke":
        token.revoke()
        record(AuditKind.TOKEN, f"revoked the token {token}")
        messages.success(request, f"The token …{token.hint} of {token.agent} is revoked and no longer works.")
        return None, ""
    scope = TokenScope(act.removeprefix("narrow "))
    try:
        token.narrow(scope)
    except ValueError as error:
        messages.error(request, f"Nothing was changed: {error}.")
    else:
        record(AuditKind.TOKEN, f"narrowed the token {token}", detail=f"now held by {scope.words}")
        messages.success(request, f"The token …{token.hint} of {token.agent} is now used by {scope.words}.")
    return None, ""
