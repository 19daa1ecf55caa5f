"""Calibration: each judge against people, blind, on the random check; and fallbacks against the judge, by bandit."""

from django.conf import settings
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.models import CanaryRun, Repository
from grading.monitoring.judges import ENOUGH
from grading.outcomes.rankings import load_rankings
from grading.review import calibration
from grading.review.ppi import FEWEST
from grading.reward.judged_pairs import latest_judgements
from grading.screens.calibration import card
from grading.screens.http import StaffRequest, staff_view

# Measured by `benchmarks/truth.py` (docs/measured.md). `raw` and `issued`: the AUC of the trajectory's number and of
# grades issued from it, over all logs and over those of equal length. `share`: the share of logs that get a grade.
FALLBACK_AUC = {"raw": (0.78, 0.73), "issued": (0.52, 0.5), "share": 0.31}
# Two a day, for a week.
CANARIES_SHOWN = 14


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The current agreement of judges and people; means of arms and judged sessions as the worker last computed them.
    A constant number of queries.
    """
    now = timezone.now()
    pairs = calibration.load_blind_pairs()
    means, means_read_at = calibration.latest_arm_means(pairs)
    judgements = latest_judgements(now)
    in_use = calibration.recent_graders(now)
    status = request.frame.calibration
    graders = [*in_use, *(each for each in pairs.calibrations if each not in in_use)]
    context = {
        "title": "Calibration",
        "agreement": None if status is None else pairs.calibration_of(status.grader).whole,
        "has_pairs": any(pairs.calibration_of(each).whole.n for each in graders),
        "graders": [(pairs.calibration_of(each), means.get(each, {}), each in in_use) for each in graders],
        "means_read_at": means_read_at,
        "enough": ENOUGH,
        "enough_in_arm": FEWEST,
        "fallback_auc": FALLBACK_AUC,
        "bandits": card.load_bandit_calibrations(judgements),
        "pairs_read_at": judgements.read_at,
        "rankings": load_rankings(now) if Repository.objects.exists() else {},
        "canaries": CanaryRun.objects.select_related("call")[:CANARIES_SHOWN],
        "is_canary_on": settings.CANARY,
    }
    return TemplateResponse(request, "calibration/calibration.html", context)
