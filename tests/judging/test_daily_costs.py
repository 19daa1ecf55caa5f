"""The costs of each day are what the calls say now, whatever came of them since."""

import datetime as dt

import pytest
import time_machine

from grading.intake.erasing import erase
from grading.judging.outlook import costs, daily_costs
from grading.judging.outlook.attempts import BY_NAME
from grading.judging.outlook.costs import Spend
from grading.models import JudgeAttempt, Session
from grading.models.judging import AttemptOutcome
from grading.vocabulary import Reason
from tests.casts import quota as quota_cast

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
FIRST = (NOW - 9 * DAY).date()


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def lost() -> JudgeAttempt:
    """A call of five days ago that was lost, beside another of that day and one of the day before."""
    at = NOW - 5 * DAY
    judged(at)
    judged(at - DAY)
    call = quota_cast.attempt(quota_cast.job(at), at, AttemptOutcome.LOST, estimated_usd=0.5)
    assert_right()
    return call


def judged(at: dt.datetime, **fields) -> JudgeAttempt:
    return quota_cast.judged(at, cost_usd=0.25, **fields)  # whatever the order, the same sum


def assert_right() -> None:
    """What is told of each day is what its calls add up to."""
    told: dict[dt.date, Spend] = {}
    for row in daily_costs.spends(FIRST):
        told[row.day] = told.get(row.day, Spend()) + row.spend
    calls = costs.since(dt.datetime.combine(FIRST, dt.time(), dt.UTC))
    days = {at.date() for at in calls.values_list("started_at", flat=True)}
    assert told == {day: costs.spend(calls.filter(started_at__date=day)) for day in days}


def test_a_late_answer_changes_the_day_of_its_call(lost, clock):
    clock.shift(DAY)
    said = {"cost_usd": 0.75, "estimated_usd": None, "input_tokens": 7, "finished_at": NOW + DAY}
    JudgeAttempt.objects.filter(pk=lost.pk).update(**said)
    told = daily_costs.spends(FIRST)
    assert [row.spend.usd for row in told if row.day == lost.started_at.date()] == [0.25, 0.75]
    assert_right()


def test_an_answer_that_nobody_has_applied_yet_counts(lost):
    JudgeAttempt.objects.filter(pk=lost.pk).update(cost_usd=0.75, answer={"result": "late"})
    assert_right()


def test_a_call_that_runs_for_days_is_followed_to_its_end(clock):
    call = quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.RUNNING, estimated_usd=0.5)
    assert_right()
    clock.shift(3 * DAY)
    JudgeAttempt.objects.filter(pk=call.pk).update(estimated_usd=1.5)
    assert_right()
    ended = {"outcome": AttemptOutcome.GRADED, "cost_usd": 1.25, "estimated_usd": None, "finished_at": NOW + 3 * DAY}
    JudgeAttempt.objects.filter(pk=call.pk).update(**ended)
    assert_right()


def test_what_is_erased_is_in_no_sum(lost):
    erase(Session.objects.filter(pk=lost.job.session_id), who="olga", why="asked to")
    assert_right()


def test_what_came_while_the_clock_was_an_hour_back_is_in_the_sum(lost, clock):
    clock.shift(dt.timedelta(hours=-1))
    judged(NOW - dt.timedelta(hours=1))
    assert_right()
    clock.shift(dt.timedelta(hours=3))
    assert_right()


def test_each_call_is_of_one_kind_and_agent(site, lost):
    """The page narrows these sums where its list narrows calls."""
    quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.DEFERRED, Reason.RATE_LIMITED, http_status=429)
    quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.REFUSED, Reason.REFUSED)
    judged(NOW, agent=site.agent("carol"))
    rows = daily_costs.spends(FIRST)
    for name, kind in BY_NAME.items():
        count = sum(row.spend.attempts for row in rows if row.kind == name)
        assert count == JudgeAttempt.objects.filter(kind.condition).count(), name
    assert sum(row.spend.attempts for row in rows if row.agent == site.agent("carol").pk) == 1


def test_stored_days_and_today_are_what_all_calls_add_up_to(lost, clock):
    """The worker stores the days before today; the page adds today's calls, and a late answer with the next reading."""
    judged(NOW)
    daily_costs.store_spends(NOW)
    judged(NOW)
    assert daily_costs.latest_spends(FIRST) == (daily_costs.spends(FIRST), NOW)
    clock.shift(DAY)
    judged(NOW + DAY)
    assert daily_costs.latest_spends(FIRST) == (daily_costs.spends(FIRST), NOW)
    late = {"cost_usd": 0.75, "estimated_usd": None, "finished_at": NOW + DAY}
    JudgeAttempt.objects.filter(pk=lost.pk).update(**late)
    before = daily_costs.spends(FIRST)
    assert daily_costs.latest_spends(FIRST)[0] != before
    daily_costs.store_spends(NOW + DAY)
    assert daily_costs.latest_spends(FIRST) == (before, NOW + DAY)
