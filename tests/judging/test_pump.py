"""A worker's pump: what it takes first, when it stops, what it never pays for twice."""

import datetime as dt

import pytest
import redis
import time_machine
from django.utils import timezone

from grading.judging import enqueuing, judges, sweeper, worker
from grading.judging.allowance import budget, limiter, quota
from grading.judging.allowance.limiter import LONGEST_WAIT
from grading.models import Grade, JudgeAttempt, JudgeJob, Quota
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.review import shares as review_shares
from grading.simulator import Mode
from grading.vocabulary import Reason

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


def asked(sim):
    """The titles of the sessions in the order in which the judge was asked about them."""
    return [
        line.removeprefix("title: ")
        for call in sim.calls
        for line in call.request.user.splitlines()
        if line.startswith("title: ")
    ]


def job(site, title, *, minutes_ago=1, worth=0.0):
    made = site.judge_job(title=title, ended_at=timezone.now() - dt.timedelta(minutes=minutes_ago))
    JudgeJob.objects.filter(pk=made.pk).update(worth=worth)
    return made


def test_new_sessions_go_first_then_valuable_ones_then_older_ones(site, sim):
    job(site, "old, routine", minutes_ago=90)
    job(site, "old, valuable", minutes_ago=80, worth=0.2)
    job(site, "new, routine")
    job(site, "new, valuable", worth=0.1)
    job(site, "new, routine, later")
    assert worker.pump() == 5
    assert asked(sim) == ["new, valuable", "new, routine", "new, routine, later", "old, valuable", "old, routine"]


@pytest.mark.django_db(transaction=True)
def test_a_pump_makes_way_for_other_messages_and_rings_for_the_rest(site, sim, redis_url):
    job(site, "first")
    job(site, "second")
    with redis.Redis.from_url(redis_url) as client:
        client.delete("celery")
        assert worker.pump(seconds=0) == 1
        assert client.llen("celery") == 1


def test_a_job_without_room_is_given_back_untouched_and_stays_the_first(site, sim):
    first = job(site, "first")
    limiter.shared().block(judges.first().name, timezone.now() + dt.timedelta(minutes=1))
    assert worker.pump() == 0
    first.refresh_from_db()
    assert (first.state, first.attempts, first.lease_token) == (JobState.QUEUED, 0, None)
    assert first.input_tokens > 0
    assert not JudgeAttempt.objects.exists()
    assert sweeper.next_jobs(timezone.now()) == [first.pk]


def test_a_judge_without_room_does_not_keep_another_judge_waiting(site, sim, settings):
    settings.JUDGE_SECOND_MODEL = "other-1"
    waiting = job(site, "first judge's")
    other = site.judge_job(title="second judge's")
    JudgeJob.objects.filter(pk=other.pk).update(judge=JudgeRole.SECOND, purpose=Purpose.SECOND)
    limiter.shared().block(judges.first().name, timezone.now() + dt.timedelta(seconds=LONGEST_WAIT + 60))
    assert worker.pump() == 1
    waiting.refresh_from_db()
    assert waiting.state == JobState.QUEUED
    assert [call.request.model for call in sim.calls] == ["other-1"]


def test_unchanged_inputs_under_the_same_identity_are_not_paid_for_twice(site, sim):
    made = job(site, "once")
    worker.pump()
    again = enqueuing.add(made.session, made.rubric)
    assert worker.pump() == 0
    again.refresh_from_db()
    assert (again.state, len(sim.calls)) == (JobState.DONE, 1)


def test_the_quota_that_closes_while_a_job_waits_for_room_stops_it(site, sim):
    turn = worker.claim(job(site, "late").pk)
    quota.pause(by=None)
    from grading.judging.worker import HoldReason, take_turn

    assert take_turn(turn) is HoldReason.NO_ROOM
    assert not sim.calls
    assert JudgeJob.objects.get().state == JobState.QUEUED


def test_a_call_has_a_whole_lease_however_long_its_evidence_took_to_read(site, sim, settings):
    started = timezone.now()
    turn = worker.claim(job(site, "large").pk)
    attempt = worker.begin_attempt(turn, None)
    with time_machine.travel(started + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS - 5), tick=True):
        assert worker.mark_as_sent(turn, attempt, 0.01)
    with time_machine.travel(started + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS + 60), tick=True):
        sweeper.sweep()
    assert JudgeJob.objects.get().state == JobState.LEASED


# --- fallback --------------------------------------------------------------------------------------------------------


def now_due():
    JudgeJob.objects.filter(state=JobState.QUEUED).update(next_attempt_at=timezone.now())


def test_the_other_model_takes_turns_once_the_service_failed_often_enough(site, sim, settings):
    settings.JUDGE_FALLBACK_MODEL, settings.JUDGE_FALLBACK_AFTER = "claude-haiku-5-5", 2
    sim.script(*[Mode.OVERLOADED] * 4, Mode.VERDICT)
    job(site, "in trouble")
    for _ in range(5):
        now_due()
        worker.pump()
    first, other = settings.JUDGE_MODEL, "claude-haiku-5-5"
    assert [call.request.model for call in sim.calls] == [first, first, other, first, other]
    grade = Grade.objects.chain().verdicts().get()
    assert (grade.model, grade.parallel) == (other, False)
    assert [row.judge for row in JudgeAttempt.objects.all()] == ["first", "first", "fallback", "first", "fallback"]


def test_without_a_fallback_the_first_judge_is_waited_for(site, sim, settings):
    settings.JUDGE_FALLBACK_AFTER = 1
    sim.script(Mode.OVERLOADED, Mode.OVERLOADED, Mode.VERDICT)
    job(site, "in trouble")
    for _ in range(3):
        now_due()
        worker.pump()
    assert {call.request.model for call in sim.calls} == {settings.JUDGE_MODEL}
    assert Grade.objects.chain().verdicts().exists()


def test_a_fallback_that_is_not_configured_any_more_leaves_nobody_waiting(site, sim):
    made = job(site, "left over")
    JudgeJob.objects.filter(pk=made.pk).update(judge=JudgeRole.FALLBACK)
    assert sweeper.sweep() == [made.pk]
    assert worker.pump() == 1


# --- beside the chain ------------------------------------------------------------------------------------------------


def shares(**changes):
    from grading.judging.allowance import budget

    return budget.set_policy(by=None, **{"repeat_share": 0, "second_share": 0, **changes})


def test_a_repeat_is_stored_beside_the_verdict_and_changes_no_reward(site, sim):
    shares(repeat_share=1)
    sim.script({"score": 0.7}, {"score": 0.4})
    made = job(site, "twice")
    assert worker.pump() == 2
    assert [(grade.value, grade.parallel, grade.replicate) for grade in Grade.objects.verdicts()] == [
        (0.7, False, 0),
        (0.4, True, 1),
    ]
    assert made.session.settlements.last().value == 0.7
    assert worker.pump() == 0


def test_a_second_family_s_opinion_stands_beside_the_chain_with_its_own_identity(site, sim, settings):
    settings.JUDGE_SECOND_MODEL = "other-1"
    settings.JUDGE_SECOND_API_KEY, settings.JUDGE_SECOND_BASE_URL = "sk-other", sim.url
    shares(second_share=1)
    sim.script({"score": 0.7}, {"score": 0.2})
    made = job(site, "two families")
    assert worker.pump() == 2
    other = Grade.objects.verdicts().get(parallel=True)
    assert (other.model, other.value, other.evidence["purpose"]) == ("other-1", 0.2, "second")
    assert sim.calls[1].api_key == "sk-other"
    assert made.session.settlements.last().value == 0.7


def test_who_gets_a_second_opinion_is_drawn_with_the_sites_key(site, sim, settings):
    settings.JUDGE_SECOND_MODEL = "other-1"
    shares(second_share=0.25)
    for number in range(16):
        site.judge_job(external_id=f"s{number}")
    worker.pump(seconds=600)
    chosen = set(JudgeJob.objects.filter(purpose=Purpose.SECOND).values_list("session__external_id", flat=True))
    names = [f"s{number}" for number in range(16)]
    assert chosen == {name for name in names if review_shares.keyed_number("second", "bob", name) < 0.25}
    assert 2 <= len(chosen) <= 8


def test_a_second_judge_in_trouble_says_so_beside_the_chain_only(site, sim, settings):
    settings.JUDGE_SECOND_MODEL = "other-1"
    shares(second_share=1)
    sim.script(Mode.VERDICT, Mode.REFUSAL, Mode.REFUSAL)
    made = job(site, "refused")
    worker.pump()
    now_due()
    worker.pump()
    assert [attempt.outcome for attempt in JudgeAttempt.objects.all()] == ["graded", "refused", "refused"]
    assert made.session.settlements.last().source == "judge"
    assert Grade.objects.get(parallel=True).reason == Reason.REFUSED


def test_a_second_judge_that_is_out_leaves_the_first_one_s_state_alone(site, sim, settings):
    settings.JUDGE_SECOND_MODEL = "other-1"
    shares(second_share=1)
    sim.script(Mode.VERDICT, Mode.NO_CREDIT)
    job(site, "one")
    worker.pump()
    assert quota.current(judges.first()).state == QuotaState.OPEN
    assert quota.current(judges.configured().get("second")).state == QuotaState.EXHAUSTED
    assert quota.obstacle() is None


def test_a_second_judge_that_is_not_configured_any_more_ends_its_jobs(site, sim):
    made = job(site, "left over")
    JudgeJob.objects.filter(pk=made.pk).update(judge=JudgeRole.SECOND, purpose=Purpose.SECOND)
    assert sweeper.sweep() == []
    made.refresh_from_db()
    assert (made.state, made.reason) == (JobState.ABANDONED, Reason.NOT_CONFIGURED)


def test_nothing_is_asked_while_paused_and_everything_after(site, sim):
    quota.pause(by=None, note="maintenance")
    made = job(site, "paused")
    assert worker.pump() == 0
    assert Grade.objects.get(session=made.session, source="judge").reason == Reason.PAUSED
    quota.resume(by=None)
    assert worker.pump() == 1
    assert [attempt.outcome for attempt in JudgeAttempt.objects.all()] == [AttemptOutcome.GRADED]


def test_a_pause_keeps_an_outage_that_is_not_over(site, sim):
    sim.script({"mode": "usage_limits", "regain": f"{timezone.now() + dt.timedelta(days=2):%F} at 00:00"})
    job(site, "one")
    worker.pump()
    until = quota.current().until
    quota.pause(by=None)
    quota.resume(by=None)
    assert (quota.current().state, quota.current().until) == (QuotaState.EXHAUSTED, until)


def test_after_a_pause_one_probe_finds_out_whether_an_outage_is_over(site, sim):
    """Its first probe, of which the transition knows, was due long ago; others have failed since."""
    sim.mode = "no_credit"
    job(site, "one")
    job(site, "two")
    worker.pump()
    Quota.objects.update(until=timezone.now())
    worker.pump()
    later = timezone.now() + dt.timedelta(hours=1)
    quota.pause(by=None)
    with time_machine.travel(later, tick=True):
        quota.resume(by=None)
        assert quota.current().state == QuotaState.EXHAUSTED
        calls = len(sim.calls)
        worker.pump()
        assert len(sim.calls) == calls + 1


def test_a_budget_that_was_raised_during_a_pause_holds_nothing_back_after_it(site, sim):
    budget.set_policy(by=None, daily_budget_usd=0)
    job(site, "one")
    assert worker.pump() == 0
    quota.pause(by=None)
    budget.set_policy(by=None, daily_budget_usd=None)
    quota.resume(by=None)
    assert worker.pump() == 1


def test_an_answer_during_a_pause_does_not_end_it(site, sim):
    turn = worker.claim(job(site, "under way").pk)
    from grading.judging.worker import begin_attempt

    attempt = begin_attempt(turn, None)
    quota.pause(by=None)
    from grading.judging.core.verdict import Graded

    verdict = Graded(score=0.5, dimensions={}, rationale="", citations=(), reached=None)
    quota.learn(turn.judge, verdict, started_at=attempt.started_at, now=timezone.now())
    assert quota.current().state == QuotaState.PAUSED
