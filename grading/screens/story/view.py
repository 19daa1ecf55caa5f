"""The incident of 31 March on a demo site: a panel of buttons, and what two sites believe after each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from grading import review
from grading.screens import charts
from grading.story import march31
from grading.story.figures import ArmBelief, Figure
from grading.story.march31 import FIRST, STEPS, Incident, NotYet, StoryStep

# Pictures of the curves for a screen and for a phone, so that their words keep their size.
WIDE, NARROW = 900, 330


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShown:
    """A step as the page has it: `state` is done, working (a worker is at it), now or later."""

    step: StoryStep
    state: str
    figures: tuple[Figure, ...]


def on_a_demo(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A page that no other site has."""

    @wraps(view)
    def shown(*args: Any, **named: Any) -> HttpResponse:
        if not march31.is_demo():
            raise Http404
        return view(*args, **named)

    return shown


@on_a_demo
def show(request: HttpRequest) -> TemplateResponse:
    incident = Incident(timezone.now())
    ledger = incident.ledger
    here, floors, before = ledger.belief(), ledger.with_floors, ledger.without
    curves = _beta(before), _beta(here), _beta(floors)
    context = {
        "title": "31 March: the day the reward lied",
        "steps": [_shown(step, at, incident) for at, step in enumerate(STEPS)],
        "begun": bool(incident.pressed),
        "finished": incident.current is None,
        "verdict": march31.VERDICT,
        "here": here,
        "floors": floors,
        "before": before,
        "submitted": len(ledger.sessions),
        "floor": settings.FLOOR,
        "wide": charts.compared(*curves, ("this site", "with floors"), WIDE),
        "narrow": charts.compared(*curves, ("here", "with floors"), NARROW),
        "series": charts.by_step(incident.series, len(STEPS)) if incident.series else "",
        "first": FIRST,
        "session": ledger.sessions.get(FIRST.name),
        "entries": ledger.entries.get(FIRST.name, ()),
    }
    return TemplateResponse(request, "story/story.html", context)


@on_a_demo
@require_POST
def press(request: HttpRequest, name: str) -> HttpResponse:
    """Do a step. What does not come about at once does so on the open page."""
    if name not in march31.BY_NAME:
        raise Http404
    try:
        march31.press(name, request.user)  # type: ignore[arg-type] # the screen needs a login
    except (NotYet, march31.SimulatorAway, review.CorrectionError) as error:
        messages.error(request, str(error))
    return redirect("admin:story")


@on_a_demo
@require_POST
def again(request: HttpRequest) -> HttpResponse:
    try:
        march31.start_again(request.user)  # type: ignore[arg-type] # the screen needs a login
    except march31.SimulatorAway as error:
        messages.error(request, str(error))
    return redirect("admin:story")


def _shown(step: StoryStep, at: int, incident: Incident) -> StepShown:
    is_done, is_pressed = at < incident.done, step.name in incident.pressed
    state = "done" if is_done else "later" if at > incident.done else "working" if is_pressed else "now"
    return StepShown(step=step, state=state, figures=tuple(step.figures(incident)) if is_done else ())


def _beta(belief: ArmBelief) -> charts.Beta:
    return charts.Beta(alpha=belief.arm.alpha, beta=belief.arm.beta)
