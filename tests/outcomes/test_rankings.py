"""The area under the ROC curve of grades against landed work."""

import datetime as dt
import random

import pytest

from grading.models import SessionLanding
from grading.models.outcomes import LandingState
from grading.outcomes.auc import rank
from grading.outcomes.rankings import TOOL_CALLS, load_rankings
from tests.site import NOON


def test_few_sessions_say_nothing():
    assert rank([0.9] * 9, [0.1] * 50).auc is None


# 12 × 12 pairs. Equal values count a half.
@pytest.mark.parametrize(
    ("landed", "others", "auc"),
    [
        ([0.9] * 12, [0.1] * 12, 1.0),
        ([0.1] * 12, [0.9] * 12, 0.0),
        ([0.5] * 12, [0.5] * 12, 0.5),
        ([0.9] * 6 + [0.1] * 6, [0.5] * 12, 0.5),  # 6 × 12 above, 6 × 12 below
        ([0.9] * 9 + [0.5] * 3, [0.5] * 12, 0.875),  # (9 × 12 + 3 × 12 / 2) / 144
    ],
)
def test_area(landed, others, auc):
    ranking = rank(landed, others)
    assert ranking.auc == pytest.approx(auc)
    assert 0 <= ranking.low <= ranking.auc <= ranking.high <= 1


def test_interval_contains_the_true_area_nine_times_of_ten():
    """Normal grades a standard deviation apart: the true area is Φ(1 / √2) = .760."""
    source = random.Random(7)
    inside = 0
    for _ in range(400):
        ranking = rank([source.gauss(1, 1) for _ in range(40)], [source.gauss(0, 1) for _ in range(40)])
        inside += ranking.low <= 0.760 <= ranking.high
    assert 0.86 <= inside / 400 <= 0.94


@pytest.mark.django_db
def test_only_old_sessions_with_known_outcomes_count(site):
    now = NOON + dt.timedelta(days=20)
    for number in range(12):
        landed = site.session().judged(0.8).settle()
        SessionLanding.objects.create(session=landed, state=LandingState.LANDED, landed=1)
        other = site.session().judged(0.2 if number else 0.9).settle()
        SessionLanding.objects.create(session=other, state=LandingState.REVERTED, reverted=1)
        recent = site.session(ago=-dt.timedelta(days=15)).judged(0.9).settle()
        SessionLanding.objects.create(session=recent, state=LandingState.OPEN, open=1)
        unknown = site.session().judged(0.9).settle()
        SessionLanding.objects.create(session=unknown)
    rankings = load_rankings(now)
    assert (rankings["judge"].landed, rankings["judge"].others) == (12, 12)
    assert rankings["judge"].auc == pytest.approx(11 / 12)
    assert rankings["journal"].auc is None
    assert rankings[TOOL_CALLS].auc is None
