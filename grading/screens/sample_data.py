"""Removing all samples."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from bandit.models import LedgerEntry
from grading.agent import samples
from grading.models import Session
from grading.screens.http import StaffRequest, staff_view


@staff_view("grading.delete_session")
def show(request: StaffRequest) -> HttpResponse:
    """Asks before anything is removed."""
    if request.method == "POST":
        count = Session.objects.samples().count()
        samples.remove(request.user.get_username())
        gone = "1 sample session was removed" if count == 1 else f"{count} sample sessions were removed"
        messages.success(request, f"{gone}. The bandits are as if the samples had never existed.")
        return redirect("admin:index")
    loaded = list(Session.objects.samples())
    learned = LedgerEntry.objects.filter(observation__in=[session.observation for session in loaded]).exists()
    context = {"title": "Remove samples", "count": len(loaded), "learned": learned}
    return TemplateResponse(request, "samples/samples.html", context)
