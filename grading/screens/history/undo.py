"""Withdraws a person's verdict, so that the earlier grades count again."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse

from grading.models import Grade
from grading.review import answers, corrections
from grading.review.corrections import CorrectionError
from grading.reward import rewards
from grading.screens.http import StaffRequest, staff_view
from grading.vocabulary import Source


class UndoForm(forms.Form):
    reason = forms.CharField(error_messages={"required": "Give a short reason. It is stored in the history."})


@staff_view("grading.add_grade")
def show(request: StaffRequest, pk: int) -> HttpResponse:
    """The form for the reason, and the withdrawal."""
    grade = get_object_or_404(Grade.objects.select_related("session", "author"), pk=pk, source=Source.HUMAN)
    form = UndoForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        # A grade given by an answer is undone with the answer, which also updates the history and the queue.
        answer = getattr(grade, "answer", None)
        try:
            if answer is None:
                corrections.undo(grade, request.user, reason=reason)
            else:
                answers.undo(answer, request.user, reason)
        except CorrectionError as error:
            form.add_error(None, str(error))
        else:
            settlement = rewards.live(grade.session)
            messages.success(request, f"Undone. {settlement.sentence if settlement else ''}")
            return redirect("admin:session", pk=grade.session_id)
    context = {"title": "Undo a correction", "grade": grade, "form": form, "session": grade.session}
    return TemplateResponse(request, "history/undo.html", context)
