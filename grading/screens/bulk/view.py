"""Corrects many sessions at once: the selection, a preview and one button. Saved and undone as a whole."""

import uuid
from collections.abc import Sequence
from statistics import fmean
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.urls import reverse

from grading.models import Alarm, Session
from grading.models.review import Answer
from grading.plain import counted, primary_key
from grading.review import bulk
from grading.review.bulk import BulkRefused, BulkStale, ChosenSession
from grading.review.corrections import CorrectionError
from grading.reward.explain import number
from grading.screens.desk.verdict_form import VerdictForm
from grading.screens.http import StaffRequest, staff_view
from grading.templatetags.gradingsite_tags import signed2

PROMPT = "Choose a grade for all selected sessions to see the effect on each arm. Nothing is saved yet."
# The most sessions that the page lists if none was selected.
CHOOSABLE = 20


class BulkForm(VerdictForm):
    """The verdict for all selected sessions (a grade, their current reward, or no reward), with the reason."""

    takes_value = (Answer.GRADE,)

    answer = forms.ChoiceField(
        choices=[(each.value, each.value) for each in bulk.VERDICTS],
        error_messages={
            "required": ("Choose what all selected sessions get: a grade, their current reward, or no reward.")
        },
    )


@staff_view("grading.add_grade")
def show(request: StaffRequest) -> HttpResponse:
    """The selected sessions and the effect of the verdict. A POST saves it, or with `preview` only shows the effect."""
    params = request.POST if request.method == "POST" else request.GET
    revisions = _revisions(params)
    bulk_id = _bulk_id(params)
    if request.method == "POST":
        form = BulkForm(request.POST)
    else:
        # Initial values from the page that led here; this saves nothing.
        proposed = request.GET.get("answer", "")
        form = BulkForm(initial={"answer": proposed if proposed in bulk.VERDICTS else Answer.GRADE})
    alarm = _alarm(params)
    context: dict[str, Any] = {"bulk_id": bulk_id, "alarm": alarm}
    stale: dict[int, Any] = {}
    problems: dict[int, str] = {}
    if request.method == "POST" and "preview" not in request.POST and form.is_valid():
        try:
            total = bulk.submit(
                revisions,
                request.user,
                answer=form.verdict,
                value=form.grade,
                reason=form.cleaned_data["reason"],
                bulk=bulk_id,
                alarm=alarm,
            )
        except CorrectionError as error:
            context["problem"] = str(error)
            if isinstance(error, BulkStale):
                stale = {each.session.pk: each for each in error.stale}
            if isinstance(error, BulkRefused):
                problems = {session.pk: text for session, text in error.problems}
        else:
            messages.success(
                request, f"Corrected {counted(total, 'session')}. The grades are final and show your name and reason."
            )
            return redirect(f"{reverse('admin:history')}?bulk={bulk_id}")
    chosen = bulk.choose(list(revisions)[: bulk.MAX_SESSIONS + 1], request.user)
    context["effect"] = effect(chosen, form)
    if request.POST.get("preview") == "panel":
        return render(request, "bulk/_effect.html", context)
    rows = []
    for each in chosen:
        key = each.session.pk
        rows.append({"chosen": each, "stale": stale.get(key), "problem": problems.get(key)})
    # Changed rewards and impossible answers come first.
    rows.sort(key=lambda row: row["stale"] is None and row["problem"] is None)
    context |= {
        "title": "Correct many",
        "form": form,
        "rows": rows,
        "total": len(revisions),
        "most": bulk.MAX_SESSIONS,
        "too_many": len(revisions) > bulk.MAX_SESSIONS,
        "was_asked": bool(params.getlist("session")),
        "choosable": Session.objects.with_people().yours().order_by("-ended_at", "-pk")[:CHOOSABLE],
        "choosable_words": "the latest",
    }
    return TemplateResponse(request, "bulk/bulk.html", context)


def effect(chosen: Sequence[ChosenSession], form: BulkForm) -> dict[str, Any]:
    """The preview of the correction's total effect, and the label of the button."""
    count = counted(len(chosen), "session")
    panel: dict[str, Any] = {"button": f"Correct {count}", "count": len(chosen)}
    if not form.is_bound or not chosen:
        return {**panel, "problem": PROMPT if chosen else "Select at least one session."}
    if not form.is_valid():
        return {**panel, "problem": next(str(error) for errors in form.errors.values() for error in errors)}
    preview = bulk.preview(chosen, form.verdict, form.grade)
    without_grade = sum(each.value is None for each in chosen) if form.verdict is Answer.ACCEPT else 0
    return {
        "button": {
            Answer.GRADE: f"Grade {count} {number(form.grade)}",
            Answer.ACCEPT: f"Accept {count} as {'it is' if len(chosen) == 1 else 'they are'}",
            Answer.EXCLUDE: f"Exclude {count}",
        }[form.verdict],
        "count": len(chosen),
        "preview": preview,
        "sentences": _sentences(preview),
        "without_grade": without_grade,
        "moves_other_arms": not all(move.touched for move in preview.arms),
    }


def _sentences(preview: bulk.BulkPreview) -> list[str]:
    """Describe the total effect, a sentence for each kind of change."""
    lines = []
    if preview.moves:
        by = signed2(fmean(preview.moves))
        if len(preview.moves) == 1:
            lines.append(f"1 reward changes by {by}.")
        else:
            low, high = signed2(min(preview.moves)), signed2(max(preview.moves))
            lines.append(f"{len(preview.moves)} rewards change by {by} on average, between {low} and {high}.")
    if preview.first_grades:
        lines.append(f"{_sessions(preview.first_grades, 'get')} a grade for the first time.")
    if preview.lost_grades:
        lines.append(
            f"{_sessions(preview.lost_grades, 'lose')} the reward, as if the bandits had never learned from it."
        )
    if preview.unchanged:
        lines.append(f"{_sessions(preview.unchanged, 'keep')} the same reward, which becomes final.")
    if preview.opinions:
        keep = "keeps" if preview.opinions == 1 else "keep"
        lines.append(
            f"{_sessions(preview.opinions, 'get')} your grade as an additional opinion and {keep} the current reward."
        )
    if preview.flags:
        lines.append(f"{counted(preview.flags, 'flag')} {'is' if preview.flags == 1 else 'are'} cleared.")
    return lines


def _sessions(count: int, verb: str) -> str:
    """The start of a sentence: "1 session gets", "2 sessions get"."""
    return f"{counted(count, 'session')} {verb}{'s' if count == 1 else ''}"


@staff_view("grading.add_grade")
def undo(request: StaffRequest, name: UUID) -> HttpResponse:
    """Undo those corrections of a bulk correction that still count. The form is on its page of the history."""
    if request.method == "POST":
        try:
            total = bulk.undo(str(name), request.user, request.POST.get("reason", ""))
        except CorrectionError as error:
            messages.error(request, str(error))
        else:
            messages.success(
                request, f"Undone. The previous rewards of {counted(total, 'session')} are restored exactly."
            )
    return redirect(f"{reverse('admin:history')}?bulk={name}")


def _revisions(params: QueryDict) -> dict[int, int]:
    """The selected sessions' ids, each with the settlement revision that the page showed; 0 if it showed none."""
    revisions = {}
    for text in params.getlist("session"):
        if key := primary_key(text):
            revisions[key] = primary_key(params.get(f"seen-{key}", ""))
    return revisions


def _alarm(params: QueryDict) -> Alarm | None:
    """The alarm from whose page the user came, if any."""
    return Alarm.objects.filter(pk=primary_key(params.get("alarm", ""))).first()


def _bulk_id(params: QueryDict) -> str:
    """The id of the bulk correction. The form sends it, so that submitting twice saves only once."""
    try:
        return str(UUID(params.get("bulk", "")))
    except ValueError:
        return str(uuid.uuid4())
