"""Calibration: each judge against people, blind, on the random slice; and fallbacks against the judge, by bandit."""

from django.conf import settings
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.models import CanaryRun
from grading.review import calibration
from grading.review.ppi import FEWEST
from grading.reward.one_scale import latest_judgements
from grading.screens.scale import view as scales

# Two a day, for a week.
CANARIES_SHOWN = 14


def show(request: HttpRequest) -> TemplateResponse:
    """The agreement of judges and people as it is now; means of arms and pairs of the scales as the worker last read
    them. A constant number of queries.
    """
    now = timezone.now()
    pairs = calibration.pairs()
    means, means_read_at = calibration.latest_arm_means(pairs)
    judgements = latest_judgements(now)
    context = {
        "title": "Calibration",
        "graders": [(each, means.get(each.grader, {})) for each in pairs.calibrations.values()],
        "means_read_at": means_read_at,
        "enough": calibration.ENOUGH,
        "enough_in_arm": FEWEST,
        "scales": scales.parts(judgements, now),
        "pairs_read_at": judgements.read_at,
        "canaries": CanaryRun.objects.select_related("call")[:CANARIES_SHOWN],
        "is_canary_on": settings.CANARY,
    }
    return TemplateResponse(request, "calibration/calibration.html", context)
