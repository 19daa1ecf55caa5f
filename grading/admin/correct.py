"""Correct a grade, see what it does before it is saved, and undo it. Every change goes through `grading.review`."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from grading import charts, review, rewards
from grading.admin.session import tiles
from grading.core.explain import number
from grading.core.vocabulary import Source
from grading.judging.rubrics.first_rubric import BANDS
from grading.models import Grade, Rubric, Session, Settlement

OUT_OF_RANGE = "A grade is a number from 0 to 1 with at most two decimals, for example .80."


class CorrectionForm(forms.Form):
    """A person's verdict: a grade or an exclusion, why, and the settlement that was on the screen."""

    value = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=1,
        max_digits=4,
        decimal_places=2,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value", "max_digits", "max_decimal_places", "max_whole_digits"), OUT_OF_RANGE
        ),
    )
    exclude = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=2000, strip=True)
    seen_revision = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given.get("value") is not None and given.get("exclude"):
            raise forms.ValidationError("Give a grade or exclude the session, not both: clear one of them.")
        if "value" in given and given["value"] is None and not given.get("exclude"):
            self.add_error("value", OUT_OF_RANGE + " Or exclude the session.")
        return given

    @property
    def grade(self) -> float | None:
        value = self.cleaned_data.get("value")
        return None if value is None else float(value)

    @property
    def excludes(self) -> bool:
        return bool(self.cleaned_data.get("exclude"))


def show(request: HttpRequest, pk: int) -> HttpResponse:
    session = get_object_or_404(Session.objects.with_people(), pk=pk)
    form = CorrectionForm(request.POST or None)
    saving = request.method == "POST" and "preview" not in request.POST
    if saving and form.is_valid():
        try:
            saved = review.record_correction(
                session,
                request.user,  # type: ignore[arg-type] # the screen needs a login
                value=form.grade,
                exclude=form.excludes,
                reason=form.cleaned_data["reason"],
                seen_revision=form.cleaned_data["seen_revision"],
            )
        except review.CorrectionError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"Saved. {saved.sentence}")
            return redirect("admin:session", pk=pk)
    settlement = rewards.live(session)
    context = {
        "title": f"Correct the grade of {session.short_id}",
        "session": session,
        "settlement": settlement,
        "tiles": tiles(settlement),
        "form": form,
        "bands": bands(),
        "effect": effect(session, settlement, form if request.method == "POST" else None),
    }
    return TemplateResponse(request, "gradingsite/correct.html", context)


def bands() -> list[dict[str, Any]]:
    """The bands of the rubric in force, so that people and the judge grade by the same words."""
    rubric = Rubric.objects.active()
    return rubric.bands if rubric and rubric.bands else BANDS


@require_GET
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    """The effect panel alone, for a grade that is being typed. Saves nothing."""
    session = get_object_or_404(Session.objects.with_people(), pk=pk)
    panel = effect(session, rewards.live(session), CorrectionForm(request.GET))
    return render(request, "gradingsite/_effect.html", {"effect": panel, "session": session})


def effect(session: Session, settlement: Settlement | None, form: CorrectionForm | None) -> dict[str, Any]:
    """What submitting would do: the arm's posterior before and after, drawn; and the words on the button."""
    held = None if settlement is None or settlement.source == Source.FLOOR else settlement.value
    if form is None:
        return {
            "names": "Submit",
            "held": held,
            "say": "Type a grade: the arm's posterior before and after it shows here.",
        }
    if not form.is_valid():
        problems = [str(error) for errors in form.errors.values() for error in errors]
        return {"names": "Submit", "held": held, "say": problems[0]}
    names = "Exclude the session" if form.excludes else f"Submit {number(form.grade)}"
    panel: dict[str, Any] = {"names": names, "held": held, "value": form.grade, "excludes": form.excludes}
    if held is not None and form.grade is not None:
        panel["moves"] = form.grade - held
        panel["needs_reason"] = abs(form.grade - held) > review.REASON_NEEDED_ABOVE
    told = review.preview(session, form.grade)
    if told.before is None or told.after is None:
        return {**panel, "say": "This session has no category, so no arm learns from it."}
    before, after = (charts.Beta(alpha=arm.alpha, beta=arm.beta) for arm in (told.before, told.after))
    shares = (told.share_before or 0.0, told.share_after or 0.0)
    return {
        **panel,
        "arm": told.arm,
        "chart": charts.before_after(before, after),
        "mean": after.mean,
        "mean_before": before.mean,
        "mean_moves": round(after.mean, 3) - round(before.mean, 3),
        "share": round(shares[1]),
        "share_before": round(shares[0]),
        "share_moves": round(shares[1]) - round(shares[0]),
    }


def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw a person's verdict, with a reason. What held before it holds again."""
    grade = get_object_or_404(Grade.objects.select_related("session", "author"), pk=pk, source=Source.HUMAN)
    reason = request.POST.get("reason", "").strip()
    problem = ""
    if request.method == "POST" and not reason:
        problem = "Say in a few words why: the history keeps it."
    elif request.method == "POST":
        try:
            settlement = review.undo(grade, request.user, reason=reason)  # type: ignore[arg-type] # login needed
        except review.CorrectionError as error:
            problem = str(error)
        else:
            messages.success(request, f"Undone. {settlement.sentence}")
            return redirect("admin:session", pk=grade.session_id)
    context = {"title": "Undo a correction", "grade": grade, "problem": problem, "session": grade.session}
    return TemplateResponse(request, "gradingsite/undo.html", context)
