"""The page for removing all sample sessions."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from bandit.models import LedgerEntry
from grading.agent import samples
from grading.models import Session
from grading.screens.http import StaffRequest, staff_view


@staff_view("grading.delete_session")
def remove_samples(request: StaffRequest) -> HttpResponse:
    """A GET asks for confirmation, or says how to load samples if there are none. A POST removes all samples."""
    if request.method == "POST":
        count = Session.objects.samples().count()
        samples.remove(request.user.get_username())
        removed = "1 sample session was removed" if count == 1 else f"{count} sample sessions were removed"
        messages.success(request, f"{removed}. The bandits are as if the samples had never existed.")
        return redirect("admin:index")
    sessions = list(Session.objects.samples())
    has_learned = LedgerEntry.objects.filter(observation__in=[session.observation for session in sessions]).exists()
    context = {"title": "Remove samples", "count": len(sessions), "has_learned": has_learned}
    return TemplateResponse(request, "samples/samples.html", context)
