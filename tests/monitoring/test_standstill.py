"""What stands still for no reason of its own: one alarm with a number, and a button."""

import datetime as dt

import pytest
import time_machine
from django.urls import reverse
from django.utils import timezone

from grading.judging import results, sweeper, worker
from grading.judging.client import CallOutcome
from grading.judging.core.verdict import DeferralScope, Deferred
from grading.judging.worker import begin_attempt
from grading.models import Alarm, JudgeJob
from grading.models.judging import AttemptOutcome, JobState
from grading.monitoring.alarms import open_alarms
from grading.monitoring.watch import watch
from grading.roles import OPERATOR
from grading.simulator import Mode
from grading.vocabulary import Reason
from tests.casts import judge as judge_cast

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


def run(job):
    JudgeJob.objects.filter(pk=job.pk).update(next_attempt_at=timezone.now())
    outcome = worker.run(job.pk)
    job.refresh_from_db()
    return outcome


def alarms(rule):
    return list(open_alarms().filter(rule=rule))


def test_evidence_that_cannot_be_read_is_one_alarm_until_it_can(site, sim, settings, tmp_path):
    jobs, held = [site.judge_job() for _ in range(3)], settings.MEDIA_ROOT
    settings.MEDIA_ROOT = tmp_path / "away"
    for job in jobs:
        run(job)
    sweeper.sweep()
    (alarm,) = alarms("A44")
    assert "3 sessions have no verdict" in alarm.detail
    assert "3 × unreadable evidence" in alarm.detail
    settings.MEDIA_ROOT = held
    for job in jobs:
        assert run(job) is AttemptOutcome.GRADED
    with time_machine.travel(timezone.now() + dt.timedelta(minutes=1)):
        sweeper.sweep()
        assert not alarms("A44")


def test_a_session_over_which_three_readers_are_lost_is_named(site, sim):
    job = site.judge_job()
    judge = worker.ready_judges(timezone.now())["first"]
    why = Deferred(reason=Reason.UNREADABLE, scope=DeferralScope.READER, detail="The reader was lost")
    for _ in range(3):
        JudgeJob.objects.filter(pk=job.pk).update(next_attempt_at=timezone.now())
        attempt = begin_attempt(worker.claim(job.pk), None)
        answer = CallOutcome(result=why, row={"error_type": results.READER_LOST})
        results.apply(attempt, answer, judge, inputs_sha256="")
    job.refresh_from_db()
    assert job.state == JobState.PARKED
    sweeper.sweep()
    (alarm,) = alarms("A44")
    assert job.session.external_id in alarm.detail


def test_a_service_that_hangs_is_an_alarm_from_its_first_time_out(site, sim, settings):
    """However few sessions there are, and however long each call hangs."""
    settings.JUDGE_TIMEOUT = 0.1
    sim.mode = Mode.HANG
    job = site.judge_job()
    run(job)
    (alarm,) = alarms("A2")
    assert "first judge" in alarm.about
    assert alarm.opened_at - judge_cast.attempts(job)[0].finished_at < dt.timedelta(seconds=5)
    sim.apply({"mode": "verdict", "release": True})
    settings.JUDGE_TIMEOUT = 20
    assert run(job) is AttemptOutcome.GRADED
    assert not alarms("A2")


def test_one_call_without_an_answer_among_others_is_no_outage(site, sim, settings):
    settings.JUDGE_TIMEOUT = 2
    sim.script(Mode.HANG)
    job = site.judge_job()
    run(job)
    sim.apply({"release": True})
    settings.JUDGE_TIMEOUT = 20
    run(site.judge_job())
    watch()  # as the sweep does, every few seconds
    assert not alarms("A2")


def test_the_button_has_everything_tried_now_that_stands_still(site, sim, client):
    parked, held = site.judge_job(), site.judge_job()
    tomorrow = timezone.now() + dt.timedelta(days=1)
    JudgeJob.objects.filter(pk=parked.pk).update(
        state=JobState.PARKED, reason=Reason.TIMEOUT, parked_at=timezone.now(), next_attempt_at=tomorrow
    )
    JudgeJob.objects.filter(pk=held.pk).update(reason=Reason.UNREADABLE, next_attempt_at=tomorrow)
    client.force_login(site.person("olga", OPERATOR))
    page = client.get(reverse("admin:quota")).content.decode()
    assert "Stuck" in page
    assert "Try 2 now" in page
    client.post(reverse("admin:quota_try_now"))
    assert {run(job) for job in (parked, held)} == {AttemptOutcome.GRADED}
    assert "Stuck" not in client.get(reverse("admin:quota")).content.decode()


def test_what_earlier_versions_gave_up_is_offered_with_its_price(site, sim, client):
    job = site.judge_job()
    JudgeJob.objects.filter(pk=job.pk).update(
        state=JobState.ABANDONED, reason=Reason.TIMEOUT, finished_at=timezone.now()
    )
    sweeper.sweep()
    (alarm,) = Alarm.objects.filter(rule="A44")
    assert "given up by an earlier version" in alarm.detail
    client.force_login(site.person("olga", OPERATOR))
    assert "given_up=yes" in client.get(reverse("admin:quota")).content.decode()
    plan = client.get(reverse("admin:run_plan"), {"given_up": "yes"}).content.decode()
    assert "$" in plan
    client.post(f"{reverse('admin:run_plan')}?given_up=yes", {"seen": "1"})
    again = job.session.judge_jobs.get(state=JobState.QUEUED)
    assert run(again) is AttemptOutcome.GRADED
