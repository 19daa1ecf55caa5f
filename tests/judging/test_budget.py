"""The day's budget: counted from what calls cost, enforced before the call, lifted by a person or by midnight."""

import datetime as dt

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.utils import timezone

from grading.judging import inputs, judges, sweeper, worker
from grading.judging.allowance import budget, limiter, quota
from grading.models import Grade, JudgeAttempt, JudgeJob, JudgePolicy, QuotaTransition
from grading.models.quota import QuotaState
from grading.simulator import Mode
from grading.vocabulary import Reason

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]

NOON = dt.datetime(2026, 3, 31, 12, 4, tzinfo=dt.UTC)


def expected_usd():
    job = JudgeJob.objects.get()
    prompt = inputs.build(job.session, job.rubric, budget=24_000)
    judge = judges.first()
    return budget.estimate(judge, limiter.shared().estimate(judge.name, prompt.characters))


def test_the_call_that_would_pass_the_budget_is_not_made(site, sim):
    budget.set_policy(by=None, daily_budget_usd=0.001, repeat_share=0)
    with time_machine.travel(NOON, tick=False):
        made = site.judge_job()
        assert worker.pump() == 0
    assert not sim.calls
    held = quota.current()
    assert (held.state, held.reason) == (QuotaState.EXHAUSTED, Reason.BUDGET_SPENT)
    assert held.until == dt.datetime(2026, 4, 1, tzinfo=dt.UTC)
    assert "$0.00 of $0.00 are spent" in held.detail
    sweeper.sweep()
    assert Grade.objects.filter(session=made.session, source="judge").last().reason == Reason.BUDGET_SPENT


def test_at_midnight_judging_goes_on(site, sim):
    with time_machine.travel(NOON, tick=False):
        budget.set_policy(by=None, repeat_share=0)
        site.judge_job()
        assert worker.pump() == 1
        # Enough for the first call of a day, and not for the second.
        enough = expected_usd() + budget.spent_today(NOON) / 2
        budget.set_policy(by=None, daily_budget_usd=enough)
        site.judge_job()
        assert worker.pump() == 0
    with time_machine.travel(NOON + dt.timedelta(hours=11, minutes=55), tick=False):
        assert worker.pump() == 0
    with time_machine.travel(NOON + dt.timedelta(hours=11, minutes=56), tick=False):
        assert worker.pump() == 1
    assert list(QuotaTransition.objects.values_list("state", flat=True)) == ["exhausted", "open"]


def test_a_raised_budget_lets_judging_go_on_at_once_and_says_who_raised_it(site, sim):
    reviewer = site.person("carla", "operator")
    budget.set_policy(by=None, daily_budget_usd=0)
    site.judge_job()
    assert worker.pump() == 0
    budget.set_policy(by=reviewer, daily_budget_usd=5)
    assert worker.pump() >= 1
    assert QuotaTransition.objects.last().by == reviewer


def test_a_budget_raised_to_less_than_was_spent_changes_nothing(site, sim):
    site.judge_job()
    worker.pump()
    spent = budget.spent_today(timezone.now())
    budget.set_policy(by=None, daily_budget_usd=spent / 2)
    site.judge_job()
    worker.pump()
    budget.set_policy(by=None, daily_budget_usd=spent)
    assert quota.current().state == QuotaState.EXHAUSTED


def test_a_definite_error_costs_nothing_and_an_unknown_end_counts_as_estimated(site, sim, settings):
    settings.JUDGE_BACKOFF_SECONDS = 3600
    sim.script(Mode.OVERLOADED)
    site.judge_job()
    worker.pump()
    assert budget.spent_today(timezone.now()) == 0
    sim.script(Mode.DROP)
    site.judge_job()
    worker.pump()
    lost = JudgeAttempt.objects.get(reason=Reason.CONNECTION)
    assert lost.cost_usd is None
    assert budget.spent_today(timezone.now()) == pytest.approx(lost.estimated_usd)


def test_a_reply_whose_tokens_cannot_be_read_counts_as_estimated(site, sim):
    budget.set_policy(by=None, repeat_share=0)
    sim.script({"mode": "verdict", "cache_read_tokens": 10**9})  # the input's count is negative
    site.judge_job()
    worker.pump()
    row = JudgeAttempt.objects.get()
    assert (row.outcome, row.cost_usd) == ("graded", None)
    assert budget.spent_today(timezone.now()) == pytest.approx(row.estimated_usd)


def test_a_verdict_counts_at_its_cost_not_at_its_estimate(site, sim):
    budget.set_policy(by=None, repeat_share=0)
    site.judge_job()
    worker.pump()
    row = JudgeAttempt.objects.get()
    assert row.estimated_usd is None
    assert budget.spent_today(timezone.now()) == pytest.approx(row.cost_usd)


def test_policies_are_appended_and_the_latest_holds():
    assert JudgePolicy.objects.current().daily_budget_usd is None
    budget.set_policy(by=None, daily_budget_usd=3)
    budget.set_policy(by=None, reserved_share=0.5)
    held = JudgePolicy.objects.current()
    assert (held.daily_budget_usd, held.reserved_share) == (3, 0.5)
    assert JudgePolicy.objects.count() == 2


@pytest.mark.parametrize(
    "changes", [{"daily_budget_usd": -1}, {"reserved_share": 1.2}, {"second_share": -0.1}, {"repeat_share": "much"}]
)
def test_a_policy_out_of_range_is_refused(changes):
    with pytest.raises(ValidationError):
        budget.set_policy(by=None, **changes)
    assert not JudgePolicy.objects.exists()
