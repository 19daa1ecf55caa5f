"""Trying a rubric on one session: the prompt, and the judge's answer by dimension."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.response import TemplateResponse
from django.urls import reverse

from grading.evidence.material import judgeable
from grading.judging.allowance import quota
from grading.judging.rubrics import trials
from grading.judging.rubrics.verdicts import answers, staleness, verdicts
from grading.models import Grade, Rubric, Session
from grading.models.judging import Purpose
from grading.screens.http import StaffRequest, staff_view
from grading.screens.rubrics.preview import PromptPreview, find_session, full_name, recent, recent_sessions

# The latest sessions from which candidates for a trial are taken, and how many are listed.
LATEST, LISTED = 100, 12


@staff_view("grading.view_rubric")
def show(request: StaffRequest, pk: int) -> HttpResponse:
    """The exact prompt and its price; after the trial, the judge's answer beside the current verdict."""
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
            queued = "The call is queued. The judge’s answer will appear here."
            messages.success(request, queued if job else "The judge has already answered this question.")
            return redirect(f"{reverse('admin:rubric_try', args=[pk])}?{urlencode({'session': full_name(session)})}")
    if "state" in request.GET and session is not None:
        return render(request, "rubrics/_trial_state.html", _state(rubric, session))
    context: dict[str, Any] = {
        "title": "Try a rubric",
        "rubric": rubric,
        "session": session,
        "problem": problem,
        "recent": recent_sessions(),
        "named": full_name(session) if session else request.GET.get("session", ""),
    }
    if session is None:
        context["candidates"] = candidates(rubric)
    if session is not None:
        # The current verdict and the trial's answer, dimension by dimension, and the state of the trial.
        current = verdicts().filter(session=session).first()
        latest = session.grades.verdicts().filter(rubric=rubric.sha256).order_by("-pk").first()
        state = _state(rubric, session)
        trial = state["trial"]
        context |= {
            "current": current,
            "answer": latest,
            "is_already_judged": answers(session, rubric, judgeable(session)).exists(),
            "rows": dimension_rows(current, latest),
            **state,
            "attempt": trial.attempt_rows.order_by("-pk").first() if trial else None,
            "stale_why": staleness(current, Rubric.objects.active(session.work)),
            "preview": PromptPreview.for_session(session, rubric),
        }
    return TemplateResponse(request, "rubrics/rubric_try.html", context)


def _state(rubric: Rubric, session: Session) -> dict[str, Any]:
    """The latest trial, and the obstacle for which all calls wait, "" if there is none."""
    trial = session.judge_jobs.filter(purpose=Purpose.TRIAL, rubric=rubric).order_by("-pk").first()
    obstacle = quota.obstacle()
    return {"trial": trial, "obstacle": obstacle.detail if obstacle else ""}


def candidates(rubric: Rubric) -> list[dict[str, Any]]:
    """The latest sessions to try the rubric on, first those of its kind of work; samples if there are no others."""
    rows = recent(LATEST)
    rows.sort(key=lambda session: session.work != rubric.kind)
    return [{"session": row, "query": urlencode({"session": full_name(row)})} for row in rows[:LISTED]]


def dimension_rows(before: Grade | None, after: Grade | None) -> list[dict[str, Any]]:
    """Score and dimensions of two verdicts side by side; None for a dimension that one of them lacks."""
    old = {} if before is None else before.evidence.get("dimensions", {})
    new = {} if after is None else after.evidence.get("dimensions", {})
    rows = [("Score", None if before is None else before.value, None if after is None else after.value)]
    rows += [
        (name.replace("_", " ").capitalize(), old.get(name), new.get(name)) for name in dict.fromkeys([*new, *old])
    ]
    return [
        {
            "name": name,
            "before": before_value,
            "after": after_value,
            "difference": None if before_value is None or after_value is None else after_value - before_value,
        }
        for name, before_value, after_value in rows
    ]
