"""The judge, end to end in one process: the real SDK over a real socket, real rows, every outcome on record."""

import datetime as dt
import threading
import uuid
from contextlib import contextmanager

import pytest
import time_machine
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from grading.backoff import DICE
from grading.evidence.material import judgeable
from grading.judging import enqueuing, inputs, results, sweeper, worker
from grading.judging.allowance import prices, quota
from grading.judging.core.verdict_score import VERSION
from grading.judging.worker import begin_attempt
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session, Settlement
from grading.models.judging import AttemptOutcome, JobState
from grading.models.quota import QuotaState
from grading.monitoring import operation
from grading.reward import rewards
from grading.roles import OPERATOR
from grading.simulator import Mode
from grading.vocabulary import Outcome, Reason, Source, Status
from tests.casts import judge as judge_cast
from tests.corpus import grammar
from tests.examples import examples
from tests.site import Site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


BIG_PATCH = b"+++ b/x\n" + b"+one more line\n" * 500


def judge_grades(job):
    return Grade.objects.filter(session=job.session, source=Source.JUDGE)


@pytest.fixture
def half(monkeypatch):
    """Each wait is half of the longest."""
    monkeypatch.setattr(DICE, "random", lambda: 0.5)


def run(job):
    """Run a job now, whatever its waiting time."""
    JudgeJob.objects.filter(pk=job.pk).update(next_attempt_at=timezone.now())
    outcome = worker.run(job.pk)
    job.refresh_from_db()
    return outcome


def later(**by):
    return time_machine.travel(timezone.now() + dt.timedelta(**by), tick=True)


# --- a verdict -------------------------------------------------------------------------------------------------------


def test_a_verdict_becomes_the_reward_with_its_whole_identity_and_its_attempt_says_what_it_cost(site, sim):
    sim.script({"score": 0.78})
    job = site.judge_job()
    assert run(job) is AttemptOutcome.GRADED
    grade = judge_grades(job).get()
    assert (grade.status, grade.value, grade.reason) == (Status.SCORED, 0.78, "")
    assert (grade.model, grade.version) == ("claude-sonnet-5-5", VERSION)
    assert grade.route == sim.url.removeprefix("http://")
    assert grade.rubric == Rubric.objects.active().sha256
    assert len(grade.inputs_sha256) == 64
    assert grade.cost_usd > 0
    assert set(grade.evidence["dimensions"]) == {"execution", "goal_fit", "harmlessness"}
    assert grade.evidence["rationale"]
    assert (
        grade.detail == f"{len(grade.evidence['citations'])} of {len(grade.evidence['citations'])} citations check out"
    )
    settlement = rewards.live(job.session)
    assert (settlement.value, settlement.source, settlement.final) == (0.78, "judge", True)
    assert (job.state, job.finished_at is not None, job.lease_token) == (JobState.DONE, True, None)
    (attempt,) = judge_cast.attempts(job)
    assert (attempt.outcome, attempt.http_status, attempt.model) == (AttemptOutcome.GRADED, 200, "claude-sonnet-5-5")
    assert attempt.request_id == sim.calls[0].request_id
    assert attempt.input_tokens == sim.calls[0].request.input_tokens
    assert attempt.cost_usd == pytest.approx((attempt.input_tokens * 2 + attempt.output_tokens * 10) / 1e6)
    assert len(attempt.prompt_sha256) == 64


def test_the_prompt_holds_first_what_the_site_confirmed_then_the_session_and_no_other_source_s_grade(site, sim):
    session = site.session().with_work().graded(Source.TRAJECTORY, 0.123456, detail="trajectory says").session
    worker.run(enqueuing.enqueue(session).pk)
    sent = sim.calls[0].request
    confirmed = ["Confirmed: 1 commit", "Test runs: 1 passed, 0 failed; the tests passed at the end"]
    assert grammar.sheet(sent.user)[:2] == confirmed
    assert "  | 4c1e9b2 send a failed call once" in sent.user
    assert "Fix the retry guard" in sent.user
    assert "Submitted PR 619" in sent.user
    assert "0.123456" not in sent.system + sent.user
    assert "trajectory says" not in sent.user


def test_a_session_without_a_transcript_is_judged_on_what_it_has(site, sim):
    job = site.session().with_journal().enqueue()
    assert run(job) is AttemptOutcome.GRADED
    assert judge_grades(job).get().detail == "No transcript to cite"


def test_a_dated_model_has_the_price_of_its_name():
    assert prices.per_million("claude-haiku-5-5-20260101") == (0.10, 0.50)
    assert prices.per_million("unheard-of") == (4.0, 20.0)


# --- asking ----------------------------------------------------------------------------------------------------------


def test_a_session_is_enqueued_once(site, sim):
    session = site.session().with_work().session
    assert enqueuing.enqueue(session) == enqueuing.enqueue(session)
    assert JudgeJob.objects.count() == 1


def test_a_judged_session_is_not_asked_again_until_its_evidence_changes(site, sim):
    job = site.judge_job()
    run(job)
    assert enqueuing.enqueue(job.session) is None
    site.on(job.session).with_file("patch", b"+++ b/x\n+new\n")
    assert enqueuing.enqueue(job.session).pk != job.pk


def test_a_new_digest_asks_no_judged_session_again(site, sim):
    """What the judge reads of the same evidence has changed; a verdict holds until the evidence changes."""
    session = site.session().with_work().session
    read = inputs.inputs_sha256(judgeable(session))
    site.on(session).judged(0.7, version="digest/2", inputs_sha256=read, rubric="r", model="m", route="api")
    assert enqueuing.enqueue(session) is None
    assert enqueuing.enqueue_abandoned() == 0
    assert rewards.settle(session).source == "judge"
    site.on(session).with_file("patch", b"+++ b/x\n+new\n")
    assert enqueuing.enqueue(session) is not None


def test_asking_the_judge_leaves_the_session_s_row_alone(site, sim):
    job = site.judge_job()
    before = Session.objects.filter(pk=job.session_id).values().get()
    inputs.case(job.session)
    assert Session.objects.filter(pk=job.session_id).values().get() == before


def test_without_a_key_the_judge_link_says_so_and_there_is_no_job(site, settings):
    session = site.session().with_work().session
    assert enqueuing.enqueue(session) is None
    assert enqueuing.enqueue(session) is None
    grade = Grade.objects.get(session=session)
    assert (grade.source, grade.status, grade.reason) == (Source.JUDGE, Status.SKIPPED, Reason.NOT_CONFIGURED)
    settlement = rewards.settle(session)
    assert (settlement.final, settlement.reason) == (False, Reason.NOT_CONFIGURED)


def test_a_session_that_died_of_infrastructure_is_not_judged(site, sim):
    session = site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="out of quota").with_work().session
    assert enqueuing.enqueue(session) is None
    assert Grade.objects.get(session=session).reason == Reason.INFRASTRUCTURE


def test_a_session_without_evidence_is_not_judged(site, sim):
    session = site.session().session
    assert enqueuing.enqueue(session) is None
    assert Grade.objects.get(session=session).reason == Reason.NO_EVIDENCE
    assert not sim.calls


def test_without_an_active_rubric_sessions_still_come_in(site, sim):
    Rubric.objects.update(is_active=False)
    session = site.session().with_work().session
    assert enqueuing.enqueue(session) is None
    assert "Put a rubric in force" in Grade.objects.get(session=session).detail


def test_new_sessions_come_before_backlog(site, sim):
    hours_ago = site.session(ended_at=timezone.now() - dt.timedelta(hours=3)).with_work().enqueue()
    fresh = site.session(ended_at=timezone.now()).with_work().enqueue()
    assert sweeper.sweep() == [fresh.pk, hours_ago.pk]


# --- every other outcome ---------------------------------------------------------------------------------------------

DEFERRED, INVALID, REFUSED = AttemptOutcome.DEFERRED, AttemptOutcome.INVALID, AttemptOutcome.REFUSED
ROWS = [
    # mood, attempt, reason, HTTP status, counts towards giving up, quota afterwards
    (Mode.RATE_LIMIT, DEFERRED, Reason.RATE_LIMITED, 429, 0, QuotaState.PACING),
    (Mode.RAMP_LIMIT, DEFERRED, Reason.RATE_LIMITED, 429, 0, QuotaState.PACING),
    (Mode.LONG_CONTEXT, DEFERRED, Reason.INPUT_TOO_LARGE, 429, 0, QuotaState.OPEN),
    (Mode.SPEND_LIMIT, DEFERRED, Reason.QUOTA_EXHAUSTED, 429, 0, QuotaState.EXHAUSTED),
    (Mode.CONTRACT_LIMIT, DEFERRED, Reason.QUOTA_EXHAUSTED, 429, 0, QuotaState.EXHAUSTED),
    (Mode.USAGE_LIMITS, DEFERRED, Reason.QUOTA_EXHAUSTED, 400, 0, QuotaState.EXHAUSTED),
    (Mode.NO_CREDIT, DEFERRED, Reason.QUOTA_EXHAUSTED, 400, 0, QuotaState.EXHAUSTED),
    (Mode.BILLING, DEFERRED, Reason.QUOTA_EXHAUSTED, 402, 0, QuotaState.EXHAUSTED),
    (Mode.OVERLOADED, DEFERRED, Reason.OVERLOADED, 529, 1, QuotaState.OPEN),
    (Mode.SERVER_ERROR, DEFERRED, Reason.OVERLOADED, 500, 1, QuotaState.OPEN),
    (Mode.NOT_JSON, DEFERRED, Reason.OVERLOADED, 200, 1, QuotaState.OPEN),
    (Mode.AUTH, DEFERRED, Reason.AUTH, 401, 0, QuotaState.MISCONFIGURED),
    (Mode.FORBIDDEN, DEFERRED, Reason.AUTH, 403, 0, QuotaState.MISCONFIGURED),
    (Mode.UNKNOWN_MODEL, DEFERRED, Reason.NEEDS_ATTENTION, 404, 0, QuotaState.MISCONFIGURED),
    (Mode.TOO_LARGE, DEFERRED, Reason.INPUT_TOO_LARGE, 413, 0, QuotaState.OPEN),
    (Mode.BAD_REQUEST, DEFERRED, Reason.NEEDS_ATTENTION, 400, 1, QuotaState.OPEN),
    (Mode.DROP, DEFERRED, Reason.CONNECTION, None, 1, QuotaState.OPEN),
    (Mode.HANG, DEFERRED, Reason.TIMEOUT, None, 1, QuotaState.OPEN),
    (Mode.GARBAGE, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.TRUNCATED, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.WRONG_SCHEMA, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.OUT_OF_RANGE, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.FALSE_CITATION, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.EMPTY, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.BARE_ZERO, INVALID, Reason.UNPARSABLE_VERDICT, 200, 0, QuotaState.OPEN),
    (Mode.REFUSAL, REFUSED, Reason.REFUSED, 200, 0, QuotaState.OPEN),
]


def test_the_table_has_every_mood():
    assert {row[0] for row in ROWS} == set(Mode) - {Mode.VERDICT}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_outcome_is_on_record_none_is_a_grade_and_a_verdict_still_comes(site, sim, settings, row):
    mode, outcome, reason, status, counts, state = row
    settings.JUDGE_TIMEOUT = 0.3 if mode is Mode.HANG else 20
    settings.JUDGE_INPUT_TOKENS = 1000  # so that a smaller digest is really smaller
    sim.script(mode)
    job = site.session().with_work().with_patch(BIG_PATCH).enqueue()
    assert run(job) is outcome
    (attempt,) = judge_cast.attempts(job)
    assert (attempt.outcome, attempt.reason, attempt.http_status) == (outcome, reason, status)
    assert attempt.detail
    assert (job.state, job.reason, job.attempts) == (JobState.QUEUED, reason, counts)
    grade = judge_grades(job).get()
    assert (grade.value, grade.reason) == (None, reason)
    assert quota.current().state == state
    settlement = rewards.live(job.session)
    assert (settlement.final, settlement.reason, settlement.weight) == (False, reason, 0)
    settings.JUDGE_TIMEOUT = 20
    quota.probe_now()
    with later(seconds=10):
        assert run(job) is AttemptOutcome.GRADED
    assert rewards.live(job.session).source == "judge"


@pytest.mark.parametrize("mode", [Mode.REFUSAL, Mode.GARBAGE, Mode.FALSE_CITATION, Mode.TOO_LARGE])
def test_what_lies_in_the_data_is_tried_twice_then_given_up(site, sim, settings, mode):
    settings.JUDGE_INPUT_TOKENS = 1000
    sim.mode = mode
    job = site.session().with_work().with_patch(BIG_PATCH).enqueue()
    run(job)
    run(job)
    assert (job.state, job.finished_at is not None) == (JobState.ABANDONED, True)
    assert len(sim.calls) == 2
    assert run(job) is None
    assert rewards.live(job.session).value == 0.1


def test_an_unparsable_reply_is_kept(site, sim):
    sim.mode = Mode.GARBAGE
    job = site.judge_job()
    run(job)
    assert "rather well" in judge_grades(job).get().evidence["reply"]
    assert "rather well" in judge_cast.attempts(job)[0].detail


def test_after_413_a_smaller_digest_is_sent(site, sim, settings):
    settings.JUDGE_INPUT_TOKENS = 1000
    sim.script(Mode.TOO_LARGE)
    job = site.session().with_work().with_patch(BIG_PATCH).enqueue()
    run(job)
    run(job)
    first, second = sim.calls
    assert len(second.request.user) < len(first.request.user)


def test_a_digest_that_cannot_be_smaller_is_not_sent_again(site, sim):
    sim.mode = Mode.TOO_LARGE
    job = site.judge_job()
    run(job)
    run(job)
    assert job.state == JobState.ABANDONED
    assert len(sim.calls) == 1
    assert "cannot be made smaller" in judge_cast.attempts(job)[1].detail


@pytest.mark.parametrize("mode", [Mode.BAD_REQUEST, Mode.HANG, Mode.OVERLOADED, Mode.DROP])
def test_what_the_judge_does_not_say_of_the_session_never_ends_its_job(site, sim, settings, mode):
    settings.JUDGE_MAX_ATTEMPTS, settings.JUDGE_TIMEOUT = 2, 0.1 if mode is Mode.HANG else 20
    assert run(site.judge_job()) is AttemptOutcome.GRADED
    sim.mode = mode
    job = site.judge_job()
    for _ in range(3):
        run(job)
    assert (job.state, job.attempts, job.own_failures) == (JobState.QUEUED, 3, 0)
    assert not rewards.live(job.session).final
    sim.apply({"mode": "verdict", "release": True})
    run(job)
    assert rewards.live(job.session).source == "judge"


def test_one_that_fails_while_others_do_not_is_parked_tried_daily_and_then_by_hand(site, sim, settings):
    """Each try may be billed; so it is tried once a day for a week, and then when a person says so."""
    settings.JUDGE_MAX_ATTEMPTS = 3
    job, sim.mode = site.judge_job(), Mode.BAD_REQUEST
    for number in range(4):
        run(job)
        assert job.own_failures == number
        grade_others(site, 7)
    assert (job.state, job.is_open, job.others_graded) == (JobState.PARKED, True, 21)
    settlement = rewards.live(job.session)
    assert (settlement.final, settlement.reason) == (False, Reason.NEEDS_ATTENTION)
    assert sweeper.sweep() == []
    for day in range(1, 7):
        with later(days=day, minutes=day):
            grade_others(site, 1)
            sweeper.sweep()
            worker.run(job.pk)
            job.refresh_from_db()
            assert job.state == JobState.PARKED
    with later(days=9):
        sweeper.sweep()
        job.refresh_from_db()
        assert job.state == JobState.PARKED
        sim.mode = Mode.VERDICT
        assert sweeper.try_now(by=site.person("olga", OPERATOR)) == 1
        assert worker.run(job.pk) is AttemptOutcome.GRADED
    assert len(judge_cast.attempts(job)) == 4 + 6 + 1


def test_an_outage_that_all_share_parks_nobody(site, sim, settings):
    settings.JUDGE_MAX_ATTEMPTS = 2
    grade_others(site, 25)
    sim.mode = Mode.BAD_REQUEST
    jobs = [site.judge_job() for _ in range(3)]
    for _ in range(4):
        for job in jobs:
            run(job)
    assert {(job.state, job.own_failures) for job in jobs} == {(JobState.QUEUED, 0)}


def test_a_service_that_answers_nonsense_to_all_ends_nobodys_job(site, sim):
    sim.mode = Mode.GARBAGE
    jobs = [site.judge_job() for _ in range(5)]
    for _ in range(2):
        for job in jobs:
            run(job)
    assert [job.state for job in jobs] == [JobState.QUEUED] * 5
    sim.mode = Mode.VERDICT
    for job in jobs:
        assert run(job) is AttemptOutcome.GRADED


def test_what_waited_for_a_service_goes_on_within_a_minute_of_its_first_verdict(site, sim, settings, half):
    settings.JUDGE_BACKOFF_SECONDS = 3600
    sim.mode = Mode.OVERLOADED
    early, late = site.judge_job(), site.judge_job()
    worker.run(early.pk)
    worker.run(late.pk)
    sim.mode = Mode.VERDICT
    sweeper.sweep()
    late.refresh_from_db()
    assert late.next_attempt_at > timezone.now() + dt.timedelta(minutes=5)
    run(early)
    sweeper.sweep()
    late.refresh_from_db()
    assert late.next_attempt_at < timezone.now() + dt.timedelta(minutes=1)


def test_new_evidence_has_a_parked_session_tried_again(site, sim):
    job = site.judge_job()
    JudgeJob.objects.filter(pk=job.pk).update(state=JobState.PARKED, parked_at=timezone.now())
    site.on(job.session).with_file("patch", b"+++ b/x\n+new\n")
    enqueuing.enqueue(job.session)
    job.refresh_from_db()
    assert (job.state, job.parked_at) == (JobState.QUEUED, None)


def grade_others(site, count):
    """The attempts of so many other sessions, each with a verdict."""
    done = {"outcome": AttemptOutcome.GRADED, "finished_at": timezone.now()}
    for _ in range(count):
        job = site.session().with_judge_job(state=JobState.DONE).job
        JudgeAttempt.objects.create(job=job, lease_token=uuid.uuid4(), **done)


def test_what_an_earlier_version_gave_up_can_be_taken_up_again(site, sim):
    sim.script(Mode.OVERLOADED)
    job = site.judge_job()
    run(job)
    JudgeJob.objects.filter(pk=job.pk).update(
        state=JobState.ABANDONED, reason=Reason.TIMEOUT, finished_at=timezone.now()
    )
    assert [held.pk for held in operation.given_up()] == [job.pk]
    assert enqueuing.enqueue_abandoned() == 1
    assert not operation.given_up().exists()
    run(job.session.judge_jobs.get(state=JobState.QUEUED))
    assert rewards.live(job.session).source == "judge"
    assert enqueuing.enqueue_abandoned() == 0


def test_waiting_is_a_time_in_the_row(site, sim, settings, half):
    settings.JUDGE_BACKOFF_SECONDS = 100
    sim.mode = Mode.OVERLOADED
    job = site.judge_job()
    worker.run(job.pk)
    assert worker.run(job.pk) is None
    job.refresh_from_db()
    assert timezone.now() < job.next_attempt_at < timezone.now() + dt.timedelta(seconds=100)
    assert sweeper.sweep() == []
    with later(seconds=101):
        assert sweeper.sweep() == [job.pk]


def test_evidence_that_cannot_be_read_is_recorded_never_sent_and_waited_for(site, sim, settings, tmp_path):
    settings.JUDGE_MAX_ATTEMPTS = 1
    job, held = site.judge_job(), settings.MEDIA_ROOT
    settings.MEDIA_ROOT = tmp_path / "lost"
    for _ in range(3):
        run(job)
    assert (job.state, job.reason) == (JobState.QUEUED, Reason.UNREADABLE)
    assert judge_grades(job).get().reason == Reason.UNREADABLE
    assert not sim.calls
    settings.MEDIA_ROOT = held
    assert run(job) is AttemptOutcome.GRADED


@examples(10, HealthCheck.function_scoped_fixture)
@given(st.lists(st.sampled_from([mode for mode in Mode if mode not in (Mode.VERDICT, Mode.HANG)]), max_size=6))
def test_no_sequence_of_answers_makes_a_grade_without_a_verdict(sim, modes):
    with transaction.atomic():
        sim.script(*modes)
        job = Site().judge_job()
        for _ in modes:
            quota.probe_now()
            with later(seconds=5):
                run(job)
        sim.apply({"reset": True})
        scored = judge_grades(job).filter(status=Status.SCORED)
        assert not scored.exists()
        assert not Settlement.objects.filter(session=job.session, source="judge").exists()
        assert JudgeAttempt.objects.filter(job=job, outcome=AttemptOutcome.RUNNING).count() == 0
        transaction.set_rollback(True)


# --- leases ----------------------------------------------------------------------------------------------------------


def expire(job):
    JudgeJob.objects.filter(pk=job.pk).update(leased_until=timezone.now() - dt.timedelta(seconds=1))


def test_a_claimed_job_is_nobody_else_s(site, sim):
    job = site.judge_job()
    assert worker.claim(job.pk) is not None
    assert worker.claim(job.pk) is None


def test_a_dead_worker_s_attempt_is_lost_and_its_job_goes_on(site, sim):
    job = site.judge_job()
    attempt = begin_attempt(worker.claim(job.pk), None)
    expire(job)
    assert sweeper.sweep() == [job.pk]
    attempt.refresh_from_db()
    assert (attempt.outcome, attempt.finished_at is not None) == (AttemptOutcome.LOST, True)
    assert run(job) is AttemptOutcome.GRADED
    assert job.attempts == 0


def test_a_session_over_which_three_workers_die_is_put_aside_and_the_others_go_on(site, sim):
    """Each loss leaves an attempt, though nothing was sent."""
    poison, other = site.judge_job(), site.judge_job()
    for _ in range(3):
        JudgeJob.objects.filter(pk=poison.pk).update(next_attempt_at=timezone.now())
        attempt = begin_attempt(worker.claim(poison.pk), None)
        JudgeAttempt.objects.filter(pk=attempt.pk).update(error_type=results.READING)
        expire(poison)
        sweeper.release_lost(timezone.now())
    poison.refresh_from_db()
    assert (poison.state, poison.reason, poison.losses) == (JobState.PARKED, Reason.UNREADABLE, 3)
    assert [attempt.outcome for attempt in judge_cast.attempts(poison)] == [AttemptOutcome.LOST] * 3
    assert "processes were lost" in judge_grades(poison).get().detail
    assert not rewards.live(poison.session).final
    assert worker.pump() == 1
    assert rewards.live(other.session).source == "judge"


def test_a_session_that_was_put_aside_and_can_be_read_now_is_not_put_aside_for_another_loss(site, sim):
    job = site.judge_job()
    for error_type in [results.READING] * 3 + [""]:
        JudgeJob.objects.filter(pk=job.pk).update(state=JobState.QUEUED, next_attempt_at=timezone.now())
        attempt = begin_attempt(worker.claim(job.pk), None)
        JudgeAttempt.objects.filter(pk=attempt.pk).update(error_type=error_type)
        expire(job)
        sweeper.release_lost(timezone.now())
    job.refresh_from_db()
    assert (job.state, job.losses) == (JobState.QUEUED, 4)


def test_workers_that_die_over_another_session_put_this_one_not_aside(site, sim):
    job = site.judge_job()
    for _ in range(4):
        JudgeJob.objects.filter(pk=job.pk).update(next_attempt_at=timezone.now())
        begin_attempt(worker.claim(job.pk), None)
        expire(job)
        sweeper.release_lost(timezone.now())
    job.refresh_from_db()
    assert job.state == JobState.QUEUED


def test_a_paid_answer_is_kept_whatever_breaks_after_it_and_completed_once(site, sim):
    """The database refuses the grade; the answer is on record, and a sweep after the lease makes a grade of it."""
    job = site.judge_job()
    with refused("grading_grade"), pytest.raises(DatabaseError):
        run(job)
    (attempt,) = judge_cast.attempts(job)
    assert (attempt.outcome, attempt.http_status, attempt.cost_usd > 0) == (AttemptOutcome.RUNNING, 200, True)
    assert not rewards.live(job.session)
    expire(job)
    sweeper.sweep()
    sweeper.sweep()
    (attempt,) = judge_cast.attempts(job)
    assert (attempt.outcome, attempt.answer) == (AttemptOutcome.GRADED, None)
    assert judge_grades(job).count() == 1
    assert rewards.live(job.session).source == "judge"
    assert len(sim.calls) == 1


def test_an_answer_that_cannot_be_made_a_grade_of_is_not_asked_for_again(site, sim):
    job = site.judge_job()
    with refused("grading_grade"):
        with pytest.raises(DatabaseError):
            run(job)
        expire(job)
        sweeper.sweep()
    job.refresh_from_db()
    assert job.state == JobState.LEASED
    with later(minutes=6):
        assert operation.unapplied(timezone.now()).count() == 1
        sweeper.sweep()
    assert (rewards.live(job.session).source, len(sim.calls)) == ("judge", 1)


@contextmanager
def refused(table):
    """The database takes no row into a table: the product's own code meets a real error."""
    name = f"no_{table}"
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"CREATE TRIGGER {name} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no room'); END")
        else:
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK (false) NOT VALID")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(f"DROP TRIGGER {name}")
            else:
                cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")


def test_a_job_that_is_lost_again_and_again_waits_longer(site, sim, settings, half):
    settings.JUDGE_BACKOFF_SECONDS = 1000
    job = site.judge_job()
    worker.claim(job.pk)
    expire(job)
    assert sweeper.sweep() == [job.pk]
    worker.claim(job.pk)
    expire(job)
    assert sweeper.sweep() == []


@pytest.mark.django_db(transaction=True)
def test_a_reply_after_its_lease_is_recorded_and_changes_nothing(site, sim):
    """The first worker hangs, its lease ends, a second one gets the verdict; then the first one's answer arrives."""
    sim.script({"mode": "hang", "score": 0.9}, {"mode": "verdict", "score": 0.3})
    job = site.judge_job()
    first = in_thread(worker.run, job.pk)
    wait_for(lambda: len(sim.calls) == 1)
    expire(job)
    assert sweeper.sweep() == [job.pk]
    assert worker.run(job.pk) is AttemptOutcome.GRADED
    sim.release()
    assert first() is AttemptOutcome.LOST
    lost, graded = judge_cast.attempts(job)
    assert (lost.outcome, graded.outcome) == (AttemptOutcome.LOST, AttemptOutcome.GRADED)
    assert "after its lease had ended" in lost.detail
    assert lost.cost_usd > 0
    assert judge_grades(job).get().value == 0.3
    assert rewards.live(job.session).value == 0.3


@pytest.mark.django_db(transaction=True)
def test_the_attempt_is_on_record_before_the_call(site, sim):
    sim.mode = Mode.HANG
    job = site.judge_job()
    finish = in_thread(worker.run, job.pk)
    wait_for(lambda: len(sim.calls) == 1)
    (attempt,) = judge_cast.attempts(job)
    assert (attempt.outcome, len(attempt.prompt_sha256)) == (AttemptOutcome.RUNNING, 64)
    sim.release()
    assert finish() is AttemptOutcome.GRADED


@pytest.mark.django_db(transaction=True)
def test_of_many_racers_one_gets_the_job(site, sim):
    job = site.judge_job()
    start = threading.Barrier(4)

    def race():
        start.wait(5)
        return worker.run(job.pk)

    outcomes = [finish() for finish in [in_thread(race) for _ in range(4)]]
    assert sorted(outcome is not None for outcome in outcomes) == [False, False, False, True]
    assert len(sim.calls) == 1
    assert judge_grades(job).count() == 1


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_judge_is_asked(site, sim):
    """A database that others can write to during a call is the proof."""
    sim.mode = Mode.HANG
    job = site.judge_job()
    finish = in_thread(worker.run, job.pk)
    wait_for(lambda: len(sim.calls) == 1)
    site.session()
    sim.release()
    assert finish() is AttemptOutcome.GRADED


@pytest.mark.django_db(transaction=True)
def test_evidence_that_comes_while_the_judge_reads_is_judged_too(site, sim):
    sim.script("hang")
    job = site.judge_job()
    finish = in_thread(worker.run, job.pk)
    wait_for(lambda: len(sim.calls) == 1)
    site.on(job.session).with_file("patch", b"+++ b/x\n+new\n")
    sim.release()
    assert finish() is AttemptOutcome.GRADED
    again = job.session.judge_jobs.get(state=JobState.QUEUED)
    assert worker.run(again.pk) is AttemptOutcome.GRADED
    assert judge_grades(job).count() == 2


def in_thread(work, *args):
    """Run `work` in a thread; the returned function waits for it and hands back what it returned."""
    results = []

    def target():
        try:
            results.append(work(*args))
        finally:
            connections.close_all()

    thread = threading.Thread(target=target)
    thread.start()

    def finish():
        thread.join(20)
        assert results, "the thread ended without a result"
        return results[0]

    return finish


def wait_for(condition, seconds=10.0):
    done = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        done.wait(0.02)
    raise AssertionError(f"still not so after {seconds} seconds on {connection.vendor}")
