"""Calibration: each judge against people, blind, on the random slice; and fallbacks against the judge, by bandit."""

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.review import calibration
from grading.review.ppi import FEWEST
from grading.screens.scale import view as scales


def show(request: HttpRequest) -> TemplateResponse:
    """A constant number of queries, and one more for each five hundred judged sessions."""
    pairs = calibration.pairs()
    means = calibration.arm_means(pairs)
    context = {
        "title": "Calibration",
        "graders": [(each, means[each.grader]) for each in pairs.calibrations.values()],
        "enough": calibration.ENOUGH,
        "enough_in_arm": FEWEST,
        "scales": scales.parts(timezone.now()),
    }
    return TemplateResponse(request, "calibration/calibration.html", context)
