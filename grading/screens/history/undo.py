"""Withdraws a person's verdict, so that the earlier grades count again."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse

from grading import review
from grading.models import Grade
from grading.review import answers
from grading.reward import rewards
from grading.vocabulary import Source


def show(request: HttpRequest, pk: int) -> HttpResponse:
    """The form for the reason, and the withdrawal."""
    grade = get_object_or_404(Grade.objects.select_related("session", "author"), pk=pk, source=Source.HUMAN)
    reason = request.POST.get("reason", "").strip()
    problem = ""
    if request.method == "POST" and not reason:
        problem = "Say in a few words why: the history keeps it."
    elif request.method == "POST":
        # If an answer gave it, the answer is undone, which also updates the history and the queue.
        answer = getattr(grade, "answer", None)
        try:
            if answer is None:
                review.undo(grade, request.user, reason=reason)  # type: ignore[arg-type] # the screen needs a login
            else:
                answers.undo(answer, request.user, reason)  # type: ignore[arg-type] # as above
        except review.CorrectionError as error:
            problem = str(error)
        else:
            settlement = rewards.live(grade.session)
            messages.success(request, f"Undone. {settlement.sentence if settlement else ''}")
            return redirect("admin:session", pk=grade.session_id)
    context = {"title": "Undo a correction", "grade": grade, "problem": problem, "session": grade.session}
    return TemplateResponse(request, "history/undo.html", context)
