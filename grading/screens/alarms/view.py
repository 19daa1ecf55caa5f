"""Alarms: rules that fired too often, what they found, and who has taken note."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from bandit.models import Arm
from grading import monitoring
from grading.models import Alarm, Flag, RuleRun, Session
from grading.models.review import Answer
from grading.review import bulk, priority
from grading.templatetags.gradingsite_tags import is_advisory

LISTED = 50


def show(request: HttpRequest) -> TemplateResponse:
    alarms = list(Alarm.objects.select_related("acknowledged_by")[:LISTED])
    ways = (
        _ways_out()
        if any(each.rule == monitoring.SILENT_FAILURE and each.resolved_at is None for each in alarms)
        else {}
    )
    for alarm in alarms:
        alarm.ways_out = ways.get(alarm.about) if alarm.rule == monitoring.SILENT_FAILURE else None  # type: ignore[attr-defined] # for the page
    ran = dict(RuleRun.objects.values_list("rule", "ran_at"))
    # One row a session, with its reward on it.
    flags = {flag.session_id: flag for flag in reversed(list(monitoring.flagged_sessions()[:LISTED]))}
    sessions = Session.objects.with_reward().with_people().in_bulk(list(flags))
    for flag in flags.values():
        flag.session = sessions[flag.session_id]
    context = {
        "title": "Alarms",
        "open": sorted(
            (alarm for alarm in alarms if alarm.resolved_at is None), key=lambda alarm: is_advisory(alarm.rule)
        ),
        "past": [alarm for alarm in alarms if alarm.resolved_at is not None],
        "rules": [
            {"id": rule.id, "title": rule.title, "means": rule.means, "every": rule.every, "ran_at": ran.get(rule.id)}
            for rule in monitoring.RULES.values()
        ],
        "flags": list(reversed(flags.values())),
    }
    return TemplateResponse(request, "alarms/alarms.html", context)


def detail(request: HttpRequest, pk: int) -> TemplateResponse:
    """One alarm: what was expected, what came, what to do, and the sessions that it was found in."""
    alarm = get_object_or_404(Alarm.objects.select_related("acknowledged_by"), pk=pk)
    rule = monitoring.RULES.get(alarm.rule)
    keys = [] if rule is None or alarm.resolved_at else list(rule.sessions(alarm.about, timezone.now()))
    is_silence = alarm.rule == monitoring.SILENT_FAILURE and alarm.resolved_at is None
    latest = keys[-LISTED:]
    sessions = Session.objects.with_reward().with_people().in_bulk(latest)
    why = dict(Flag.objects.filter(rule=alarm.rule, session__in=latest).values_list("session", "detail"))
    rows = [(sessions[key], why.get(key, "")) for key in reversed(latest) if key in sessions]
    context = {
        "title": f"{alarm.rule}, alarm",
        "alarm": alarm,
        "rule": rule,
        "ways": _ways_out().get(alarm.about) if is_silence else None,
        "rows": rows,
        "is_flagged": any(why for _session, why in rows),
        "total": len(keys),
        "ran_at": RuleRun.objects.filter(rule=alarm.rule).values_list("ran_at", flat=True).first(),
    }
    return TemplateResponse(request, "alarms/alarm.html", context)


def _ways_out() -> dict[str, dict[str, Any]]:
    """What a person may do about the sessions of each case that holds now, by what it is about."""
    found = {}
    for case in monitoring.cases(timezone.now()):
        chosen = urlencode({"session": case.sessions[-bulk.MOST :]}, doseq=True)
        there = f"{reverse('admin:bulk')}?{chosen}&answer="
        found[case.arm] = {
            "infrastructure": there + Answer.EXCLUDE,
            "bad": there + Answer.GRADE,
            "arm": Arm.objects.of(priority.BANDIT).select_related("bandit").filter(name=case.arm).first(),
            "total": len(case.sessions),
            "shown": min(len(case.sessions), bulk.MOST),
        }
    return found


@require_POST
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    alarm = get_object_or_404(Alarm, pk=pk)
    if monitoring.acknowledge(alarm, request.user):  # type: ignore[arg-type] # the screen needs a login
        messages.success(request, f"{alarm.rule} is acknowledged by you. It stays open until the rule no longer holds.")
    else:
        messages.info(request, f"Somebody else acknowledged {alarm.rule} first.")
    back = request.headers.get("Referer", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return redirect(back if safe else "admin:alarms")
