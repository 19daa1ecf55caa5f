"""Withdraw a person's verdict, with a reason: what held before it holds again."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse

from grading import review
from grading.models import Grade
from grading.review import answers
from grading.reward import rewards
from grading.screens.http import StaffRequest, staff_view
from grading.vocabulary import Source


@staff_view("grading.add_grade")
def show(request: StaffRequest, pk: int) -> HttpResponse:
    """Withdraw a person's verdict, with a reason. What held before it holds again."""
    grade = get_object_or_404(Grade.objects.select_related("session", "author"), pk=pk, source=Source.HUMAN)
    reason = request.POST.get("reason", "").strip()
    problem = ""
    if request.method == "POST" and not reason:
        problem = "Say in a few words why: the history keeps it."
    elif request.method == "POST":
        # Through the answer that gave it, so that the history says so and the queue follows.
        given = getattr(grade, "answer", None)
        try:
            if given is None:
                review.undo(grade, request.user, reason=reason)
            else:
                answers.undo(given, request.user, reason)
        except review.CorrectionError as error:
            problem = str(error)
        else:
            settlement = rewards.live(grade.session)
            messages.success(request, f"Undone. {settlement.sentence if settlement else ''}")
            return redirect("admin:session", pk=grade.session_id)
    context = {"title": "Undo a correction", "grade": grade, "problem": problem, "session": grade.session}
    return TemplateResponse(request, "history/undo.html", context)
