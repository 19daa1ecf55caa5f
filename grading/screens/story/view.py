"""The incident of 31 March on a demo site: a button for each step, and the arm's posterior on two sites after each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from grading.review.corrections import CorrectionError
from grading.screens.charts import posteriors
from grading.screens.charts.posteriors import Beta
from grading.screens.http import StaffRequest, staff_view
from grading.story import march31
from grading.story.figures import ArmBelief, Figure
from grading.story.march31 import FIRST, STEPS, Incident, NotYet, StoryStep

# The widths of the chart for a screen and for a phone.
WIDE, NARROW = 900, 324


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step with its state: "done", "working" (a worker is doing it), "now" or "later"."""

    step: StoryStep
    state: str
    figures: tuple[Figure, ...]


def on_a_demo(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A decorator of views: 404 on sites that are not a demo."""

    @wraps(view)
    def wrapped(*args: Any, **kwargs: Any) -> HttpResponse:
        if not march31.is_demo():
            raise Http404
        return view(*args, **kwargs)

    return wrapped


@staff_view("grading.view_session")
@on_a_demo
def show(request: StaffRequest) -> TemplateResponse:
    incident = Incident(timezone.now())
    ledger = incident.ledger
    here, floors, before = ledger.belief(), ledger.with_floors, ledger.without
    curves = _beta(before), _beta(here), _beta(floors)
    context = {
        "title": "31 March: the day the reward lied",
        "steps": [_step_context(step, at, incident) for at, step in enumerate(STEPS)],
        "begun": bool(incident.pressed_at),
        "finished": incident.current is None,
        "verdict": march31.VERDICT,
        "here": here,
        "floors": floors,
        "before": before,
        "submitted": len(ledger.sessions),
        "floor": settings.FLOOR,
        "wide": posteriors.compared(*curves, ("this site", "with floors"), WIDE),
        "narrow": posteriors.compared(*curves, ("here", "with floors"), NARROW),
        "series": posteriors.by_step(incident.series, len(STEPS)) if incident.series else "",
        "narrow_series": (
            posteriors.by_step(incident.series, len(STEPS), size=posteriors.PHONE_STEPS) if incident.series else ""
        ),
        "first": FIRST,
        "session": ledger.sessions.get(FIRST.name),
        "entries": ledger.entries.get(FIRST.name, ()),
    }
    return TemplateResponse(request, "story/story.html", context)


@staff_view("grading.change_quota")
@on_a_demo
@require_POST
def press(request: StaffRequest, name: str) -> HttpResponse:
    """Do a step. The open page follows effects that take a while."""
    if name not in march31.BY_NAME:
        raise Http404
    try:
        march31.press(name, request.user)
    except (NotYet, march31.SimulatorAway, CorrectionError) as error:
        messages.error(request, str(error))
    return redirect("admin:story")


@staff_view("grading.delete_session")
@on_a_demo
@require_POST
def again(request: StaffRequest) -> HttpResponse:
    try:
        march31.start_again(request.user)
    except march31.SimulatorAway as error:
        messages.error(request, str(error))
    return redirect("admin:story")


def _step_context(step: StoryStep, at: int, incident: Incident) -> StepRow:
    is_done = at < incident.done
    if is_done:
        state = "done"
    elif at > incident.done:
        state = "later"
    else:
        state = "working" if step.name in incident.pressed_at else "now"
    return StepRow(step=step, state=state, figures=tuple(step.figures(incident)) if is_done else ())


def _beta(belief: ArmBelief) -> Beta:
    return Beta(alpha=belief.arm.alpha, beta=belief.arm.beta)
