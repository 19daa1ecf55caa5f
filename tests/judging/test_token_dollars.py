"""A token's daily quota of judge dollars: its sessions wait for midnight and say so, and nobody else's do."""

import datetime as dt

import pytest
import time_machine

from grading.judging import batches, sweeper, worker
from grading.judging.allowance import budget, quota
from grading.models import ApiToken, JudgeAttempt, JudgeJob, JudgeRun, Submission
from grading.models.judging import JobState
from grading.models.quota import QuotaState
from grading.vocabulary import Reason, Source
from tests.casts import judge as judge_cast

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url", "sim")]

NOON = dt.datetime(2026, 3, 31, 12, 4, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 4, 1, tzinfo=dt.UTC)


@pytest.fixture
def noon():
    with time_machine.travel(NOON, tick=False) as clock:
        budget.set_policy(by=None, repeat_share=0, second_share=0)
        yield clock


@pytest.fixture
def token(site):
    return ApiToken.objects.issue(site.agent("eve"))[0]


def job(site, token=None):
    made = site.judge_job()
    Submission.objects.create(session=made.session, token=token, body_sha256="0" * 64)
    return made


def spend(site, settings, token):
    """One verdict, and a quota of just that."""
    first = job(site, token)
    assert worker.pump() == 1
    settings.TOKEN_DAILY_JUDGE_USD = JudgeAttempt.objects.get(payer=token).cost_usd
    return first


def test_a_session_over_its_tokens_quota_waits_and_says_so_while_others_are_judged(site, noon, settings, token):
    spend(site, settings, token)
    held, other, imported = job(site, token), job(site, ApiToken.objects.issue(site.agent("bob"))[0]), job(site)
    assert worker.pump() == 2
    held.refresh_from_db()
    assert (held.state, held.reason, held.next_attempt_at) == (JobState.QUEUED, Reason.BUDGET_SPENT, MIDNIGHT)
    assert {made.session.grades.verdicts().count() for made in (other, imported)} == {1}
    said = held.session.grades.filter(source=Source.JUDGE).latest("pk")
    assert said.reason == Reason.BUDGET_SPENT
    assert f"The token …{token.hint} has used its $" in said.detail
    assert "from 1 Apr 00:00 UTC on" in said.detail
    assert quota.current().state == QuotaState.OPEN


def test_at_midnight_it_is_judged_and_no_sweep_says_otherwise_before(site, noon, settings, token):
    spend(site, settings, token)
    held = job(site, token)
    worker.pump()
    quota.pause(by=None, note="lunch")
    sweeper.sweep()
    quota.resume(by=None)
    sweeper.sweep()
    held.refresh_from_db()
    assert (held.reason, held.next_attempt_at) == (Reason.BUDGET_SPENT, MIDNIGHT)
    assert held.session.grades.filter(source=Source.JUDGE).count() == 1
    assert worker.pump() == 0
    noon.move_to(MIDNIGHT)
    assert worker.pump() == 1
    assert held.session.grades.verdicts().count() == 1


def test_what_a_person_asked_for_is_on_nobodys_quota(site, noon, settings, token):
    spend(site, settings, token)
    held = job(site, token)
    JudgeJob.objects.filter(pk=held.pk).update(run=JudgeRun.objects.create(rubric=held.rubric))
    assert worker.pump() == 1
    assert JudgeAttempt.objects.latest("pk").payer is None


def test_the_first_token_of_a_session_pays_for_it(site, noon, settings, token):
    made = job(site, token)
    Submission.objects.create(session=made.session, token=ApiToken.objects.issue(token.agent)[0], body_sha256="1" * 64)
    worker.pump()
    assert JudgeAttempt.objects.get().payer == token


def test_a_quota_of_nought_is_none(site, noon, settings, token):
    settings.TOKEN_DAILY_JUDGE_USD = 0
    for _ in range(3):
        job(site, token)
    assert worker.pump() == 3


def test_a_batch_holds_to_the_quota_too(site, noon, settings, token):
    spend(site, settings, token)
    settings.TOKEN_DAILY_JUDGE_USD *= 2.2
    judge_cast.in_batches(settings)
    jobs = [job(site, token) for _ in range(6)]
    JudgeJob.objects.filter(pk__in=[made.pk for made in jobs]).update(backlog=True)
    sent = batches.send()
    assert 2 <= sent < 6
    waiting = JudgeJob.objects.filter(state=JobState.QUEUED, next_attempt_at=MIDNIGHT, reason=Reason.BUDGET_SPENT)
    assert waiting.count() == 6 - sent
    assert set(JudgeAttempt.objects.values_list("payer", flat=True)) == {token.pk}
