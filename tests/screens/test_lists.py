"""Dashboard, review, alarms, bandit and quota: what they list."""

import datetime as dt

import pytest
from django.utils import timezone

from bandit.models import Arm
from bandit.selection import complete, select
from grading.models import JudgeAttempt
from grading.models.judging import AttemptOutcome
from grading.models.quota import QuotaState
from grading.screens.bandit.decisions import left_out
from grading.vocabulary import Reason, Source
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db


def read(client, path) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return flat(response)


def contradicted(site, hours=1):
    """A session with a pull request that only its journal graded: flagged."""
    builder = site.session(ended_at=timezone.now() - dt.timedelta(hours=hours)).with_pull_request()
    builder.graded(Source.JOURNAL, 0.32).with_judge_job(reason=Reason.QUOTA_EXHAUSTED)
    session = builder.session
    JudgeAttempt.objects.create(
        job=builder.job, lease_token="12345678123456781234567812345678", finished_at=timezone.now(),
        outcome=AttemptOutcome.DEFERRED, reason=Reason.QUOTA_EXHAUSTED, detail="come back tomorrow",
    )  # fmt: skip
    decision = select(bandit="category", decision_id=f"d-{session.pk}", supply=None, now=timezone.now())
    complete(decision, observation=session.observation, executed_arm="cross-repo", now=timezone.now())
    return builder.recheck()


def test_the_dashboard_says_what_contradicts_the_rewards(site, reviewer):
    session = contradicted(site)
    html = read(reviewer, "/")
    assert "Not fully." in html
    assert "Review the one</a>" in html
    assert session.short_id in html
    assert "1 of 1 grades in 14 days are provisional or missing." in html
    assert "url(#hatch)" in html


def test_coverage_and_validity_are_two_figures(site, reviewer):
    contradicted(site)
    html = read(reviewer, "/")
    assert "Validity</a>, 7 days" in html
    assert "0 of 1 grades are reliable" in html
    assert "1 of 1 sessions have a grade" in html


def test_the_bandit_page_shows_each_arm_with_what_it_rests_on(site, reviewer):
    contradicted(site)
    html = read(reviewer, "/bandits/category/")
    for arm in Arm.objects.in_bandit("category"):
        assert f'<div class="name">{arm}</div>' in html
    assert "1 pending" in html
    assert "1 session without a confirmed grade counts as 0.3 observations" in html
    assert "never ran, so its mean is the prior that all arms share" in html


def test_a_decision_shows_its_chance_what_ran_and_what_it_earned(site, reviewer):
    session = contradicted(site)
    html = read(reviewer, "/bandits/category/")
    log = html.partition("<h2>Decisions</h2>")[2]
    assert f"d-{session.pk}" in log
    assert '<td data-label="Ran">cross-repo' in log
    assert ".32</span>" in log


def test_arms_left_out_for_one_reason_stand_together():
    eligible = {"social": "2 of 2 used today", "code": 0.4, "news": "2 of 2 used today", "infra": "paused"}
    assert left_out(eligible) == ["infra: paused", "news, social: 2 of 2 used today"]


def test_a_waiting_job_is_next_tried_when_the_quota_returns(site, reviewer, settings):
    quota_cast.use(settings)
    session = contradicted(site)
    tomorrow = timezone.now() + dt.timedelta(days=1, hours=1)
    quota_cast.quota(QuotaState.EXHAUSTED, until=tomorrow)
    for path in ("/quota/", f"/sessions/{session.pk}/"):
        assert f"{tomorrow:%-d %b, %H:%M}" in read(reviewer, path)
