"""Which sessions are judged first: the arithmetic by hand, the order from real rows."""

import datetime as dt
import math

import numpy as np
import pytest
from django.utils import timezone

from bandit import ledger
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import RewardRow
from bandit.ledger import Credit, GraderKey
from bandit.models import Arm, Bandit
from grading import tasks
from grading.judging import ordering
from grading.models import JudgeJob
from grading.models.judging import JobState
from grading.review import priority

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 4, 1, 12, 0, tzinfo=dt.UTC)
JUDGE = GraderKey(source="judge")


def of(*, strength, chance, scale=2.0, weight=0.3):
    values = priority.sensitivity(strength=np.array([strength]), chance=np.array([chance]), scale=scale, weight=weight)
    return priority.SURPRISE * float(values[0])


def reward(arm, value, day=dt.date(2026, 3, 30), *, times=1):
    for number in range(times):
        ledger.set_credits(
            {"category": {arm: Credit(value=value, grader=JUDGE)}},
            observation=f"{arm}-{value}-{day}-{number}",
            effective_day=day,
            settlement="test",
            policy_version="test",
            provisional=False,
        )


def queued(site, category, *, minutes_ago=1):
    job = site.session(category).with_judge_job().job
    JudgeJob.objects.filter(pk=job.pk).update(created_at=NOW - dt.timedelta(minutes=minutes_ago))
    return job


def held(job):
    job.refresh_from_db()
    return job.worth


# --- the formula -----------------------------------------------------------------------------------------------------


def test_worth_is_the_expected_move_of_the_mean_times_the_chance():
    # .2·√(2/π) = .159577; e / (n + e·(1 − w)) = 2 / (12 + 2·.7) = .149254; times a chance of .5
    assert of(strength=12, chance=0.5) == pytest.approx(0.5 * 0.159577 * 0.149254, rel=1e-5)


def test_worth_is_what_replacing_a_reward_really_does_to_the_mean():
    """Against the posterior itself, with a long-run centre that hardly moves, as the formula leaves that out."""
    rows = [RewardRow(arm="a", source="judge", day=dt.date(2020, 1, 1), n=10**6, s=5 * 10**11, q=25 * 10**16)]
    day, micro = dt.date(2026, 4, 1), 500_000
    policy = Policy(
        weights={"judge": 1.0, "trajectory": 0.3}, evidence_scale=2.0, half_life=21, long_run_half_life=10**6
    )

    def mean(source, value):
        extra = RewardRow(arm="a", source=source, day=day, n=1, s=value, q=value**2)
        posterior = fold([*rows, extra], arms=["a"], policy=policy, today=day)
        return posterior.arms["a"].mean, posterior.alpha[0] + posterior.beta[0]

    before, strength = mean("trajectory", micro)
    moves = [abs(mean("judge", micro + int(200_000 * z))[0] - before) for z in np.linspace(-2.4, 2.4, 4801)]
    density = np.exp(-(np.linspace(-2.4, 2.4, 4801) ** 2) / 2)
    expected = float((moves * density).sum() / density.sum())
    # The tails beyond ±2.4 standard deviations are cut off: E|z| is .756 there instead of .798.
    cut = (1 - math.exp(-(2.4**2) / 2)) / math.erf(2.4 / math.sqrt(2))
    assert expected == pytest.approx(cut * of(strength=strength, chance=1.0), rel=1e-3)


def test_more_evidence_is_worth_less_and_more_choice_is_worth_more():
    assert of(strength=12, chance=0.5) > of(strength=40, chance=0.5) > of(strength=40, chance=0.2) > 0


def test_a_verdict_on_what_counts_fully_already_still_moves_it():
    # w = 1: e / n = 2/12
    assert of(strength=12, chance=1.0, weight=1.0) == pytest.approx(0.159577 / 6, rel=1e-5)


# --- from the posterior ----------------------------------------------------------------------------------------------


def test_arms_without_evidence_are_all_worth_the_same():
    worths = priority.by_arm(NOW)
    assert set(worths) == set(Arm.objects.in_bandit("category").values_list("pk", flat=True))
    # 8 arms, each chosen 1 in 8; κ = 12, e = 1, w = .3: .159577/8 / 12.7 = .0015707
    assert set(worths.values()) == {0.0016}


def test_a_little_known_arm_that_is_often_chosen_is_worth_most():
    reward("code", 0.9, times=3)
    reward("infra", 0.9, times=60)
    reward("triage", 0.05, times=60)
    worths = {Arm.objects.get(pk=pk).name: value for pk, value in priority.by_arm(NOW).items()}
    assert worths["code"] > worths["infra"] > worths["triage"] > 0


def test_an_arm_that_cannot_be_chosen_is_not_ignored():
    Arm.objects.in_bandit("category").filter(name="code").update(paused=True)
    worths = {Arm.objects.get(pk=pk).name: value for pk, value in priority.by_arm(NOW).items()}
    # half of an equal share, 1/16, for the paused one; 1/7 for the others: .159577/16/12.7 and .159577/7/12.7
    assert (worths["code"], worths["infra"]) == (0.00079, 0.0018)


def test_a_bandit_without_arms_has_no_worths(site):
    Arm.objects.in_bandit("category").delete()
    assert priority.by_arm(NOW) == {}
    job = queued(site, None)
    assert ordering.prioritise(NOW) == 0
    assert held(job) == 0


# --- the queue -------------------------------------------------------------------------------------------------------


def test_queued_jobs_have_the_worth_of_their_arms_and_valuable_ones_come_first(site):
    reward("triage", 0.05, times=60)
    routine, valuable, unknown = queued(site, "triage"), queued(site, "code"), queued(site, None)
    assert ordering.prioritise(NOW) == 3
    by_name = {Arm.objects.get(pk=pk).name: value for pk, value in priority.by_arm(NOW).items()}
    assert held(routine) == by_name["triage"] < held(valuable) == by_name["code"]
    assert held(unknown) == sorted(by_name.values())[4]  # of eight, the middle one
    assert list(JudgeJob.objects.all())[-1] == routine
    assert ordering.prioritise(NOW) == 0


def test_jobs_that_are_not_queued_keep_theirs(site):
    job = queued(site, "code")
    JudgeJob.objects.filter(pk=job.pk).update(state=JobState.DONE)
    assert ordering.prioritise(NOW) == 0
    assert held(job) == 0


def test_what_has_waited_long_is_backlog(site, settings):
    settings.JUDGE_NEW_MINUTES = 15
    old, new = queued(site, "code", minutes_ago=16), queued(site, "code", minutes_ago=14)
    ordering.prioritise(NOW)
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.backlog, new.backlog) == (True, False)


def test_jobs_are_written_once(site):
    bandit = Bandit.objects.named("category")
    arms = Arm.objects.bulk_create([Arm(bandit=bandit, name=f"arm-{number}") for number in range(300)])
    for number in range(30):
        reward(f"arm-{number}", number / 30, times=1 + number % 5)
    for arm in arms:
        queued(site, arm.name)
    assert ordering.prioritise(NOW) == 300
    assert ordering.prioritise(NOW) == 0


def test_without_a_time_it_is_now(site):
    job = site.session().with_judge_job().job
    JudgeJob.objects.filter(pk=job.pk).update(created_at=timezone.now() - dt.timedelta(days=1))
    tasks.prioritise()
    job.refresh_from_db()
    assert (job.backlog, job.worth > 0) == (True, True)
