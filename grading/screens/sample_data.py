"""Samples: what pages show of them while no session of the site's own has come, and removing them all."""

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import Count, Exists
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from bandit.models import LedgerEntry
from grading.agent import samples
from grading.models import Session

KEPT = "_samples_held"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesHeld:
    """How many samples there are; `alone`: some, and no session of the site's own, so that pages show what they will
    be from these, set apart.
    """

    count: int = 0
    alone: bool = False

    def __bool__(self) -> bool:
        return self.count > 0


def held(request: HttpRequest) -> SamplesHeld:
    """One query a request."""
    samples_held: SamplesHeld | None = getattr(request, KEPT, None)
    if samples_held is None:
        samples = Session.objects.samples().order_by().annotate(others=Exists(Session.objects.yours()))
        samples_held = SamplesHeld()
        for others, count in samples.values_list("others").annotate(n=Count("pk")):  # one row, or none
            samples_held = SamplesHeld(count=count, alone=not others)
        setattr(request, KEPT, samples_held)
    return samples_held


def show(request: HttpRequest) -> HttpResponse:
    """Asks before anything is removed."""
    if request.method == "POST":
        count = Session.objects.samples().count()
        samples.remove(request.user.get_username())
        gone = "1 sample session is gone" if count == 1 else f"{count} sample sessions are gone"
        messages.success(request, f"{gone}; the bandits are as if there had never been any.")
        return redirect("admin:index")
    loaded = list(Session.objects.samples())
    learned = LedgerEntry.objects.filter(observation__in=[session.observation for session in loaded]).exists()
    context = {"title": "Remove samples", "count": len(loaded), "learned": learned}
    return TemplateResponse(request, "samples/samples.html", context)
