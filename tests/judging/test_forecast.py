"""The backlog's outlook from rows and limits: what waits, what verdicts took, what comes in, what the budget bears."""

import datetime as dt

import pytest
import time_machine

from grading.judging.core.forecast import ForecastEnding
from grading.judging.outlook.forecast import QueueOutlook, outlook
from grading.judging.outlook.standing import headroom, standings
from grading.models import JudgePolicy, JudgeRun, Rubric
from grading.models.judging import JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from tests.casts import quota as quota_cast

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 4, 1, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def judge(settings):
    quota_cast.use(settings)
    with time_machine.travel(NOW, tick=False):
        quota_cast.quota(QuotaState.OPEN, limits=quota_cast.LIMITS, limits_at=NOW)
        yield


def seen(policy: JudgePolicy | None = None, left: float | None = None) -> QueueOutlook:
    first = standings()[JudgeRole.FIRST]
    return outlook(first, headroom(first), policy or JudgePolicy(), left_usd=left)


def test_the_rate_is_what_the_tightest_limit_bears_of_what_verdicts_took():
    quota_cast.judged(NOW - MINUTE)
    assert seen().pace.per_minute == pytest.approx(0.98 * 30_000 / 18_400)


def test_a_standing_reserve_does_not_lower_the_rate():
    quota_cast.judged(NOW - MINUTE)
    assert seen(JudgePolicy(reserved_share=0.9)).pace == seen(JudgePolicy(reserved_share=0)).pace


def test_arrivals_are_what_the_last_days_sessions_brought(site):
    """Of these, two: an import of old sessions and a run of judging again come once; a second judge has its own way."""
    quota_cast.job(NOW - MINUTE)
    quota_cast.job(NOW - 2 * MINUTE, done=NOW)
    quota_cast.job(NOW - dt.timedelta(hours=25))
    quota_cast.job(NOW - MINUTE, session=site.session(ended_at=NOW - dt.timedelta(days=30)).session)
    again = JudgeRun.objects.create(rubric=Rubric.objects.active())
    quota_cast.job(NOW - MINUTE, run=again)
    quota_cast.job(NOW - MINUTE, judge=JudgeRole.SECOND, purpose=Purpose.SECOND)
    assert seen().arrivals == pytest.approx(2 / 24)


def test_what_waited_ends_at_what_waits():
    quota_cast.job(NOW - dt.timedelta(hours=3))
    quota_cast.job(NOW - dt.timedelta(hours=2), done=NOW - dt.timedelta(hours=1))
    found = seen()
    assert found.waiting == found.past[-1][1] == 1
    assert found.past[0] == (NOW - dt.timedelta(hours=6), 0)
    assert max(waiting for _, waiting in found.past) == 2


def test_what_is_in_a_batch_waits_elsewhere():
    quota_cast.job(NOW - MINUTE)
    quota_cast.job(NOW - MINUTE, state=JobState.SENT)
    found = seen()
    assert (found.waiting, found.sent, found.past[-1][1]) == (1, 1, 1)


def test_the_past_reaches_back_to_the_oldest_job_within_three_days():
    quota_cast.job(NOW - dt.timedelta(hours=30))
    assert seen().past[0][0] == NOW - dt.timedelta(hours=30)
    quota_cast.job(NOW - dt.timedelta(days=9))
    assert seen().past[0] == (NOW - dt.timedelta(days=3), 1)


def test_a_dozen_jobs_are_gone_in_minutes():
    quota_cast.judged(NOW - MINUTE)
    for _ in range(12):
        quota_cast.job(NOW - MINUTE)
    found = seen()
    assert found.forecast.ending is ForecastEnding.DRAINED
    assert found.expected_usd == pytest.approx(12 * 0.0458)
    # 13 arrivals in a day; 12 / (95.87 − .54) an hour
    assert (found.forecast.empty_at - NOW) / dt.timedelta(hours=1) == pytest.approx(
        12 / (60 * 0.98 * 30 / 18.4 - 13 / 24)
    )


def test_nothing_drains_before_the_reset():
    quota_cast.judged(NOW - MINUTE)
    quota_cast.job(NOW - MINUTE)
    quota_cast.quota(QuotaState.EXHAUSTED, until=MIDNIGHT, limits=quota_cast.LIMITS)
    assert seen().forecast.empty_at > MIDNIGHT


@pytest.mark.parametrize("state", [QuotaState.PAUSED, QuotaState.MISCONFIGURED])
def test_what_a_person_must_end_has_no_forecast_end(state):
    quota_cast.judged(NOW - MINUTE)
    quota_cast.job(NOW - MINUTE)
    quota_cast.quota(state, limits=quota_cast.LIMITS)
    assert seen().forecast.ending is ForecastEnding.SHUT


def test_a_budget_that_is_used_up_waits_for_midnight():
    """4.58 ¢ a verdict: $1 a day pays for 21.8, and nothing is left today."""
    quota_cast.judged(NOW - MINUTE)
    quota_cast.job(NOW - MINUTE)
    found = seen(JudgePolicy(daily_budget_usd=1.0), left=0.0)
    assert found.allowance.daily == pytest.approx(21.83, abs=0.01)
    assert found.forecast.empty_at > MIDNIGHT


def test_a_budget_for_less_than_comes_in_never_drains():
    quota_cast.judged(NOW - MINUTE)
    for _ in range(20):
        quota_cast.job(NOW - MINUTE)
    assert seen(JudgePolicy(daily_budget_usd=0.5), left=0.5).forecast.ending is ForecastEnding.BUDGET


def test_without_a_verdict_to_measure_by_the_end_is_unknown():
    quota_cast.job(NOW - MINUTE)
    found = seen()
    assert (found.pace, found.expected_usd) == (None, None)
    assert found.forecast.ending is ForecastEnding.UNKNOWN


def test_the_limiters_own_view_goes_before_the_last_headers(redis_url):
    from grading.judging.allowance import limiter
    from grading.judging.core.ratelimits import CallCost

    first = standings()[JudgeRole.FIRST]
    shared = limiter.shared()
    slot = shared.reserve(first.judge.name, CallCost(input_tokens=100, output_tokens=10))
    said = {"requests": {"limit": 40, "remaining": 39}, "input_tokens": {"limit": 20_000, "remaining": 19_900}}
    shared.settle(slot, CallCost(input_tokens=100, output_tokens=10), said)
    assert headroom(first).limits == {"requests": 40, "input_tokens": 20_000}
