"""The backlog's forecast: when it is gone, when it never is, and what it waits for."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.forecast import HORIZON, Allowance, Conditions, ForecastEnding, forecast, pace, queue_history
from tests.examples import examples

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 4, 1, tzinfo=dt.UTC)


def at(hour: int, minute: int = 0, day: int = 31) -> dt.datetime:
    return dt.datetime(2026, 3, day, hour, minute, tzinfo=dt.UTC)


def conditions(**changes) -> Conditions:
    return Conditions(**{"waiting": 23, "arrivals": 3.0, "rate": 90.0, "opens_at": NOW} | changes)


def test_the_tightest_limit_decides_the_pace():
    limits = {"requests": 50, "input_tokens": 30_000, "output_tokens": 8_000}
    found = pace(limits, {"requests": 1, "input_tokens": 18_400, "output_tokens": 900}, share=0.97)
    assert found.dimension == "input_tokens"
    assert found.per_minute == pytest.approx(0.97 * 30_000 / 18_400)  # 1.58 a minute; 8.6 by output, 48.5 by requests


@pytest.mark.parametrize("limits", [{}, {"requests": 0}])
def test_without_a_limit_no_pace_is_known(limits):
    assert pace(limits, {"requests": 1}, share=1) is None


def test_without_a_verdict_to_measure_by_no_pace_is_known():
    assert pace({"input_tokens": 30_000}, {}, share=1) is None


def test_an_open_quota_drains_by_rate_less_arrivals():
    found = forecast(NOW, conditions(waiting=29, arrivals=3, rate=90))
    assert found.ending is ForecastEnding.DRAINED
    assert found.empty_at == NOW + dt.timedelta(minutes=20)  # 29 / (90 − 3) h
    assert found.opening is None


def test_nothing_drains_before_the_quota_returns():
    found = forecast(NOW, conditions(opens_at=MIDNIGHT, arrivals=3, rate=75))
    assert found.opening == (MIDNIGHT, pytest.approx(36))  # 23 + 3 · 4⅓
    assert found.empty_at == MIDNIGHT + dt.timedelta(minutes=30)  # 36 / (75 − 3) h
    assert [at for at, _ in found.curve] == [NOW, MIDNIGHT, found.empty_at]


def test_an_empty_queue_has_nothing_to_forecast():
    found = forecast(NOW, conditions(waiting=0))
    assert (found.ending, found.curve) == (ForecastEnding.EMPTY, ((NOW, 0.0),))


@pytest.mark.parametrize("arrivals", [90, 120])
def test_more_coming_than_can_be_judged_never_drains(arrivals):
    found = forecast(NOW, conditions(arrivals=arrivals))
    assert (found.ending, found.empty_at) == (ForecastEnding.NEVER, None)
    assert found.curve[-1] == (NOW + dt.timedelta(days=1), pytest.approx(23 + (arrivals - 90) * 24))


def test_nobody_knows_when_a_paused_judge_returns():
    found = forecast(NOW, conditions(opens_at=None))
    assert found.ending is ForecastEnding.SHUT
    assert found.curve[-1][1] == pytest.approx(23 + 3 * 24)


def test_an_unknown_rate_is_said_to_be_unknown():
    assert forecast(NOW, conditions(rate=None)).ending is ForecastEnding.UNKNOWN


def test_a_spent_budget_waits_for_the_next_day():
    allowance = Allowance(remaining=0, daily=1000, renews_at=MIDNIGHT)
    found = forecast(NOW, conditions(arrivals=3, rate=75, allowance=allowance))
    assert found.empty_at == MIDNIGHT + dt.timedelta(minutes=30)  # the same as without quota: 36 / (75 − 3) h


def test_a_budget_that_ends_in_between_goes_on_at_midnight():
    allowance = Allowance(remaining=20, daily=100, renews_at=MIDNIGHT)
    found = forecast(NOW, conditions(waiting=40, arrivals=0, rate=60, allowance=allowance))
    assert found.curve[1] == (NOW + dt.timedelta(minutes=20), pytest.approx(20))
    assert found.curve[2] == (MIDNIGHT, pytest.approx(20))
    assert found.empty_at == MIDNIGHT + dt.timedelta(minutes=20)


def test_a_budget_below_what_arrives_never_drains():
    """72 a day come in. The queue of 36 at midnight is gone for a while, until the 72nd verdict of the day."""
    allowance = Allowance(remaining=0, daily=72, renews_at=MIDNIGHT)
    found = forecast(NOW, conditions(arrivals=3, rate=75, allowance=allowance))
    assert (found.ending, found.empty_at) == (ForecastEnding.BUDGET, None)
    assert found.curve[2] == (MIDNIGHT + dt.timedelta(minutes=30), 0)
    assert found.curve[-1][1] > 0


def test_a_budget_missed_by_days_renews_each_day():
    """The outage lasts three days; the budget of the day of its end is whole."""
    allowance = Allowance(remaining=0, daily=1000, renews_at=MIDNIGHT)
    opens_at = MIDNIGHT + dt.timedelta(days=3, hours=1)
    found = forecast(NOW, conditions(opens_at=opens_at, arrivals=0, rate=23, allowance=allowance))
    assert found.empty_at == opens_at + dt.timedelta(hours=1)


def test_a_month_of_work_is_farther_than_the_horizon():
    assert forecast(NOW, conditions(waiting=100_000, arrivals=0, rate=1)).ending is ForecastEnding.FAR


@examples(300)
@given(
    waiting=st.integers(0, 10**6),
    arrivals=st.floats(0, 10**6),
    rate=st.none() | st.floats(0, 10**9),
    opens=st.none() | st.integers(-10, 10**4),
    allowance=st.none()
    | st.builds(
        Allowance,
        remaining=st.floats(0, 10**7),
        daily=st.floats(0, 10**7),
        renews_at=st.integers(-2, 2).map(lambda days: MIDNIGHT + dt.timedelta(days=days)),
    ),
)
def test_any_forecast_ends_and_never_goes_back_or_below_zero(waiting, arrivals, rate, opens, allowance):
    opens_at = None if opens is None else NOW + dt.timedelta(hours=opens)
    given_ = Conditions(waiting=waiting, arrivals=arrivals, rate=rate, opens_at=opens_at, allowance=allowance)
    found = forecast(NOW, given_)
    moments = [moment for moment, _ in found.curve]
    assert moments == sorted(moments)
    assert all(n >= 0 for _, n in found.curve)
    assert (found.empty_at is None) == (found.ending is not ForecastEnding.DRAINED)
    assert moments[-1] <= max(opens_at or NOW, NOW) + HORIZON + dt.timedelta(days=1)


def test_what_waited_is_told_from_when_jobs_came_and_went():
    came, went = [at(12), at(13), at(13, 30), at(18)], [at(14)]
    found = queue_history(3, came, went, [at(11), at(12), at(13, 30), at(14), at(19)])
    assert [n for _, n in found] == [0, 1, 3, 2, 3]
