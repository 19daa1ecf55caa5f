"""Calibration: each judge against people, blind, on the random slice; as a whole and by arm and flag."""

from django.http import HttpRequest
from django.template.response import TemplateResponse

from grading.review import calibration


def show(request: HttpRequest) -> TemplateResponse:
    """A constant number of queries."""
    standing = calibration.in_use()
    context = {
        "title": "Calibration",
        "graders": calibration.calibrations(),
        "standing": standing,
        "enough": calibration.ENOUGH,
    }
    return TemplateResponse(request, "gradingsite/calibration.html", context)
