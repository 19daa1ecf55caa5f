"""Rubrics: the list, one of them with what came of it, putting one in force, and trying one on a session."""

import datetime as dt
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from grading.admin.rubric_preview import Preview, find_session, full_name, recent_sessions
from grading.core.rubric import difference
from grading.judging import plans, quota, rubrics, trials
from grading.judging.rubrics import Figures
from grading.judging.verdicts import staleness, verdicts, with_verdict
from grading.models import Grade, Rubric, RubricActivation, Session
from grading.models.judging import Purpose

LISTED = 20
# The windows of sessions whose price of judging again is named before a rubric is put in force.
WINDOWS = ((7, "of the last 7 days"), (30, "of the last 30 days"), (None, "all of them"))


def show(request: HttpRequest) -> TemplateResponse:
    rows = list(Rubric.objects.select_related("author", "parent").order_by("-is_active", "-created_at"))
    known = rubrics.figures()
    context = {
        "title": "Rubrics",
        "rows": [{"rubric": row, "figures": known.get(row.sha256, Figures())} for row in rows],
        "active": next((row for row in rows if row.is_active), None),
        "stale": stale().count(),
        "activations": RubricActivation.objects.select_related("rubric", "by")[:LISTED],
    }
    return TemplateResponse(request, "gradingsite/rubrics.html", context)


def detail(request: HttpRequest, pk: int) -> TemplateResponse:
    rubric = get_object_or_404(Rubric.objects.select_related("author", "parent"), pk=pk)
    parent = rubric.parent
    context = {
        "title": rubric.title,
        "rubric": rubric,
        "figures": rubrics.figures().get(rubric.sha256, Figures()),
        "differs": difference(rubrics.content(parent), rubrics.content(rubric)) if parent else [],
        "before_after": _reworded(parent, rubric) if parent else [],
        "stale": stale().count() if rubric.is_active else 0,
        "trials": _trials(rubric),
    }
    return TemplateResponse(request, "gradingsite/rubric.html", context)


def stale() -> QuerySet[Session]:
    """The sessions whose verdict is stale."""
    return with_verdict(Session.objects.all()).filter(is_stale=True)


def _reworded(parent: Rubric, rubric: Rubric) -> list[dict[str, str]]:
    """Each text that both have and that reads differently, before and after."""
    pairs = [("Instructions", parent.text, rubric.text)]
    for section in ("dimensions", "bands"):
        old = {row["name"]: row["text"] for row in getattr(parent, section)}
        pairs += [(row["name"], old.get(row["name"], row["text"]), row["text"]) for row in getattr(rubric, section)]
    return [{"name": name, "before": before, "after": after} for name, before, after in pairs if before != after]


def _trials(rubric: Rubric) -> list[Grade]:
    """What the judge said in trials of the rubric, the latest first."""
    rows = Grade.objects.filter(rubric=rubric.sha256, parallel=True, evidence__purpose=Purpose.TRIAL)
    return list(rows.select_related("session__category").order_by("-pk")[:LISTED])


def activate(request: HttpRequest, pk: int) -> HttpResponse:
    rubric = get_object_or_404(Rubric, pk=pk)
    if request.method == "POST":
        moved = rubrics.activate(rubric, by=request.user)  # type: ignore[arg-type] # the screen needs a login
        waiting = f" {moved} queued job{'s are' if moved != 1 else ' is'} asked by it." if moved else ""
        messages.success(request, f"{rubric} is in force.{waiting} Verdicts of other rubrics are stale, and hold.")
        return redirect("admin:rubric", pk=pk)
    now = timezone.now()
    latest = dict(verdicts().order_by("pk").values_list("session", "rubric")).values()
    context = {
        "title": "Put a rubric in force",
        "rubric": rubric,
        "active": Rubric.objects.active(),
        "stale": sum(sha256 != rubric.sha256 for sha256 in latest),
        "judged": len(latest),
        "windows": [_window(rubric, days, words, now) for days, words in WINDOWS],
    }
    return TemplateResponse(request, "gradingsite/rubric_activate.html", context)


def _window(rubric: Rubric, days: int | None, words: str, now: dt.datetime) -> dict[str, Any]:
    """What judging the sessions of some days again would cost, were the rubric in force."""
    sessions = Session.objects.filter(pk__in=verdicts().order_by().values("session"))
    if days is not None:
        sessions = sessions.filter(ended_at__gt=now - dt.timedelta(days=days))
    return {"words": words, "plan": plans.plan(sessions, rubric)}


def try_on(request: HttpRequest, pk: int) -> HttpResponse:
    """A rubric on one session: the exact prompt and its price, then the judge's answer beside the verdict that holds."""
    rubric = get_object_or_404(Rubric, pk=pk)
    session, problem = find_session(request.POST.get("session") or request.GET.get("session", ""))
    if request.method == "POST" and session is not None:
        if not request.user.has_perm("grading.change_rubric"):
            raise PermissionDenied
        try:
            job = trials.try_on(session, rubric)
        except trials.TrialError as error:
            problem = str(error)
        else:
            said = "The judge is asked; its answer shows here." if job else "The judge has answered just that before."
            messages.success(request, said)
            return redirect(f"{reverse('admin:rubric_try', args=[pk])}?{urlencode({'session': full_name(session)})}")
    context = {
        "title": "Try a rubric",
        "rubric": rubric,
        "session": session,
        "problem": problem,
        "recent": recent_sessions(),
        "named": full_name(session) if session else request.GET.get("session", ""),
        **(_compared(rubric, session) if session else {}),
    }
    return TemplateResponse(request, "gradingsite/rubric_try.html", context)


def _compared(rubric: Rubric, session: Session) -> dict[str, Any]:
    """The verdict that holds and the answer under the rubric, dimension by dimension; the trial that is under way."""
    held = verdicts().filter(session=session).first()
    answer = Grade.objects.filter(session=session, source="judge", status="scored", rubric=rubric.sha256)
    trial = session.judge_jobs.filter(purpose=Purpose.TRIAL, rubric=rubric).order_by("-pk").first()
    obstacle = quota.obstacle()
    latest = answer.order_by("-pk").first()
    return {
        "held": held,
        "answer": latest,
        "rows": dimension_rows(held, latest),
        "trial": trial,
        "attempt": trial.attempt_rows.order_by("-pk").first() if trial else None,
        "obstacle": obstacle.detail if obstacle else "",
        "stale_why": staleness(held, Rubric.objects.active()),
        "preview": Preview.of(session, rubric),
    }


def dimension_rows(before: Grade | None, after: Grade | None) -> list[dict[str, Any]]:
    """Score and dimensions of two verdicts side by side; None where one has no such dimension."""
    old, new = ({} if grade is None else grade.evidence.get("dimensions", {}) for grade in (before, after))
    rows = [("Score", before and before.value, after and after.value)]
    rows += [
        (name.replace("_", " ").capitalize(), old.get(name), new.get(name)) for name in dict.fromkeys([*new, *old])
    ]
    return [
        {"name": name, "before": a, "after": b, "moved": None if a is None or b is None else b - a}
        for name, a, b in rows
    ]
