"""The backlog in batches: through the real SDK, over a real socket, against the simulator's batch endpoints."""

import datetime as dt
import io
import json
import uuid

import pytest
import time_machine
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from grading import tasks
from grading.judging import batch_api, batches, enqueuing, judges, ordering, sweeper, worker
from grading.judging.allowance import budget, quota
from grading.models import Grade, JudgeAttempt, JudgeBatch, JudgeJob, Quota, Settlement
from grading.models.judging import AttemptOutcome, BatchState, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.vocabulary import Reason, Source
from tests.casts import judge as judge_cast
from tests.examples import examples
from tests.site import Site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def sim(sim, settings):
    judge_cast.in_batches(settings)
    return sim


def backlog(site, count):
    """Sessions that ended long ago, each with a job."""
    return [site.judge_job() for _ in range(count)]


def polled():
    """Poll, whatever the gap."""
    JudgeBatch.objects.update(polled_at=None)
    return batches.poll()


def later(**by):
    return time_machine.travel(timezone.now() + dt.timedelta(**by), tick=True)


def states():
    return sorted(JudgeJob.objects.values_list("state", flat=True))


def outcomes():
    return sorted(JudgeAttempt.objects.values_list("outcome", flat=True))


def verdicts(job):
    return Grade.objects.chain().verdicts().filter(session=job.session)


# --- sending ---------------------------------------------------------------------------------------------------------


def test_a_backlog_is_sent_as_one_and_its_results_are_verdicts(site, sim):
    sim.batches.polls = 1
    jobs = backlog(site, 3)
    assert batches.send() == 3
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.provider_id[:8], batch.judge) == (BatchState.RUNNING, "msgbatch", JudgeRole.FIRST)
    assert states() == [JobState.SENT] * 3
    attempts = JudgeAttempt.objects.all()
    assert {(row.batch_id, row.outcome, row.model) for row in attempts} == {(batch.pk, "running", judges.first().model)}
    assert all(row.estimated_usd > 0 and len(row.prompt_sha256) == len(row.inputs_sha256) == 64 for row in attempts)
    assert polled() == 0
    assert polled() == 3
    batch.refresh_from_db()
    assert (batch.state, batch.ended_at is not None, batch.detail) == (BatchState.ENDED, True, "")
    assert (states(), outcomes()) == ([JobState.DONE] * 3, [AttemptOutcome.GRADED] * 3)
    assert not sim.calls
    assert all(verdicts(job).count() == 1 for job in jobs)
    assert Settlement.objects.filter(source=Source.JUDGE, final=True).count() == 3


def test_a_verdict_from_a_batch_says_its_route_and_costs_half(site, sim):
    backlog(site, 2)
    batches.send()
    polled()
    grade = Grade.objects.verdicts().first()
    row = JudgeAttempt.objects.get(pk=grade.evidence["attempt"])
    assert grade.route == sim.url.removeprefix("http://") + " batches"
    assert grade.inputs_sha256 == row.inputs_sha256
    assert grade.evidence["prompt_sha256"] == row.prompt_sha256
    # half of 2 and 10 dollars per million tokens, in and out
    expected = (row.input_tokens * 2 + row.output_tokens * 10) / 2 / 1_000_000
    assert grade.cost_usd == row.cost_usd == pytest.approx(expected)
    assert row.estimated_usd is None


def test_a_batch_asks_what_a_single_call_asks(site, sim):
    job, _ = backlog(site, 2)
    batches.send()
    sent = next(iter(sim.batches.by_id.values())).requests
    budget.set_policy(by=None, use_batches=False)
    token = JudgeAttempt.objects.get(job=job).lease_token
    JudgeJob.objects.filter(pk=job.pk).update(state=JobState.QUEUED)
    worker.run(job.pk)
    assert sim.calls[0].request == sent[token.hex]


def test_the_backlog_leaves_the_workers_to_new_sessions(site, sim):
    backlog(site, 2)
    new = site.judge_job(ended_at=timezone.now())
    assert sweeper.next_jobs(timezone.now()) == [new.pk]
    assert worker.pump() == 1
    assert states() == [JobState.DONE, JobState.QUEUED, JobState.QUEUED]


def test_a_few_jobs_go_one_by_one(site, sim):
    backlog(site, 1)
    assert batches.send() == 0
    assert worker.pump() == 1
    assert not JudgeBatch.objects.exists()


def test_without_the_setting_nothing_is_sent_and_what_was_sent_comes_back(site, sim):
    backlog(site, 2)
    batches.send()
    backlog(site, 2)
    budget.set_policy(by=None, use_batches=False)
    assert batches.send() == 0
    assert polled() == 2
    assert worker.pump() == 2
    assert states() == [JobState.DONE] * 4


@pytest.mark.parametrize("how", ["paused", "exhausted"])
def test_no_batch_is_sent_while_the_quota_is_closed_but_polling_goes_on(site, sim, how):
    backlog(site, 2)
    batches.send()
    backlog(site, 2)
    if how == "paused":
        quota.pause(by=None)
    else:
        quota.exhaust_budget(judges.first(), timezone.now(), "spent")
    assert batches.send() == 0
    assert polled() == 2
    assert states() == [JobState.DONE] * 2 + [JobState.QUEUED] * 2
    assert quota.current().state == how


def test_each_judge_has_batches_of_its_own(site, sim, settings):
    settings.JUDGE_SECOND_MODEL = "other-1"
    for job in backlog(site, 4)[:2]:
        JudgeJob.objects.filter(pk=job.pk).update(judge=JudgeRole.SECOND, purpose=Purpose.SECOND)
    assert batches.send() == 4
    polled()
    grades = Grade.objects.verdicts().order_by("pk")
    assert sorted((grade.model, grade.parallel) for grade in grades) == [
        (settings.JUDGE_MODEL, False),
        (settings.JUDGE_MODEL, False),
        ("other-1", True),
        ("other-1", True),
    ]


def test_what_was_judged_in_a_batch_is_not_paid_for_again(site, sim):
    jobs = backlog(site, 2)
    batches.send()
    polled()
    for job in jobs:
        enqueuing.add(job.session, job.rubric)
    assert batches.send() == 0
    assert worker.pump() == 0
    assert states() == [JobState.DONE] * 4
    assert JudgeAttempt.objects.count() == 2


def test_a_day_s_budget_bounds_a_batch(site, sim):
    backlog(site, 2)
    batches.send()
    usd = JudgeAttempt.objects.latest("estimated_usd").estimated_usd  # of each of these, give or take a token
    backlog(site, 6)
    # Two are out; of 5.5, three more can be afforded.
    budget.set_policy(by=None, daily_budget_usd=usd * 5.5)
    assert batches.send() == 3
    assert states() == [JobState.QUEUED] * 3 + [JobState.SENT] * 5
    assert budget.spent_today(timezone.now()) == pytest.approx(usd * 5, rel=0.01)
    held = quota.current()
    assert (held.state, held.reason) == (QuotaState.EXHAUSTED, Reason.BUDGET_SPENT)
    assert polled() == 5


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_batch_that_the_budget_cuts_short_is_sent_outside_any_transaction(site, sim):
    """As the schedule sends it. PostgreSQL locks rows only within a transaction."""
    backlog(site, 3)
    budget.set_policy(by=None, daily_budget_usd=1)
    usd = batches.draft_batch(judges.first(), io.BytesIO()).usd / 3
    JudgeJob.objects.all().queue_again()
    budget.set_policy(by=None, daily_budget_usd=usd * 2.5)
    assert batches.send() == 2
    assert JudgeBatch.objects.get().state == BatchState.RUNNING
    held = quota.current()
    assert (held.state, held.reason) == (QuotaState.EXHAUSTED, Reason.BUDGET_SPENT)


def test_a_batch_is_no_larger_than_the_service_takes(site, sim, monkeypatch):
    monkeypatch.setattr(batches, "MAX_REQUESTS", 3)
    backlog(site, 5)
    assert [batches.send(), batches.send(), batches.send()] == [3, 2, 0]
    monkeypatch.setattr(batches, "MAX_BYTES", 1)
    backlog(site, 2)
    assert batches.send() == 0
    assert states().count(JobState.QUEUED) == 2


def test_evidence_that_cannot_be_read_is_said_and_leaves_the_others(site, sim):
    from grading.evidence import store

    broken, *_ = backlog(site, 3)
    name = store.blob_name(broken.session.evidence.get(kind="transcript").sha256)
    store.default_storage.delete(name)
    assert batches.send() == 2
    row = JudgeAttempt.objects.get(job=broken)
    assert (row.batch, row.outcome, row.reason) == (None, AttemptOutcome.DEFERRED, Reason.UNREADABLE)


# --- the provider takes nothing in -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "reason", "state"),
    [
        ("usage_limits", Reason.QUOTA_EXHAUSTED, QuotaState.EXHAUSTED),
        ("no_credit", Reason.QUOTA_EXHAUSTED, QuotaState.EXHAUSTED),
        ("spend_limit", Reason.QUOTA_EXHAUSTED, QuotaState.EXHAUSTED),
        ("billing", Reason.QUOTA_EXHAUSTED, QuotaState.EXHAUSTED),
        ("auth", Reason.AUTH, QuotaState.MISCONFIGURED),
        # These are about batches: single calls go on.
        ("rate_limit", Reason.RATE_LIMITED, QuotaState.OPEN),
        ("unknown_model", Reason.NEEDS_ATTENTION, QuotaState.OPEN),
        ("bad_request", Reason.NEEDS_ATTENTION, QuotaState.OPEN),
        ("overloaded", Reason.OVERLOADED, QuotaState.OPEN),
    ],
)
def test_a_batch_that_is_turned_away_goes_back_to_the_queue(site, sim, mode, reason, state):
    backlog(site, 2)
    sim.batches.script_calls(mode)
    assert batches.send() == 0
    batch = JudgeBatch.objects.get()
    assert (batch.state, batch.provider_id) == (BatchState.ENDED, "")
    assert batch.detail
    assert quota.current().state == state
    # The jobs did nothing wrong; the sweep says on their sessions what keeps everybody.
    assert set(JudgeJob.objects.values_list("state", "reason", "attempts", "lease_token")) == {
        (JobState.QUEUED, Reason.AWAITING_JUDGE, 0, None)
    }
    sweeper.sweep()
    said = Reason(quota.current().reason) or Reason.AWAITING_JUDGE
    assert set(JudgeJob.objects.values_list("reason", flat=True)) == {said}
    rows = JudgeAttempt.objects.all()
    assert {(row.outcome, row.reason, row.estimated_usd) for row in rows} == {(AttemptOutcome.DEFERRED, reason, None)}
    assert all(row.http_status and row.error_type and row.request_id and row.detail for row in rows)


def test_after_a_refusal_the_backlog_goes_one_by_one_for_a_while(site, sim):
    backlog(site, 2)
    sim.batches.script_calls("unknown_model")
    batches.send()
    assert batches.send() == 0
    assert worker.pump() == 2
    backlog(site, 2)
    with later(minutes=16):
        assert batches.send() == 2


@pytest.mark.parametrize("mode", ["server_error", "drop", "not_json"])
def test_a_batch_without_a_definite_answer_stays_out_until_it_is_known(site, sim, mode):
    backlog(site, 2)
    sim.batches.script_calls(mode)
    assert batches.send() == 0
    assert JudgeBatch.objects.get().state == BatchState.SENDING
    assert states() == [JobState.SENT] * 2
    assert polled() == 0
    assert JudgeBatch.objects.get().state == BatchState.SENDING, "its sender may still be at it"
    with later(minutes=13):
        polled()
    assert JudgeBatch.objects.get().state == BatchState.LOST
    assert states() == [JobState.QUEUED] * 2
    rows = JudgeAttempt.objects.all()
    assert {row.outcome for row in rows} == {AttemptOutcome.LOST}
    assert all("may have been paid for" in row.detail and row.estimated_usd for row in rows)


# --- a batch that nobody heard of ------------------------------------------------------------------------------------


def crash_before_the_id_is_stored():
    """As if the sender had been killed after the service took the batch in."""
    JudgeBatch.objects.update(state=BatchState.SENDING, provider_id="", expires_at=None)


def test_a_batch_that_was_taken_in_unheard_is_found_in_the_provider_s_list(site, sim):
    jobs = backlog(site, 2)
    batches.send()
    crash_before_the_id_is_stored()
    with later(minutes=13):
        sdk_batch(["0" * 32, "1" * 32])  # somebody else's, of the same size
        polled()
        assert JudgeBatch.objects.get().state == BatchState.SENDING, "it has not ended, so it may be ours"
        for batch in sim.batches.by_id.values():
            batch.poll(timezone.now())
        polled()
        batch = JudgeBatch.objects.get()
        assert (batch.state, batch.provider_id) == (BatchState.RUNNING, next(iter(sim.batches.by_id)))
        assert polled() == 2
    assert states() == [JobState.DONE] * 2
    assert all(verdicts(job).count() == 1 for job in jobs)


def sdk_batch(names):
    from grading.judging import client

    params = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    sdk = client.sdk(judges.first())
    return sdk.messages.batches.create(requests=[{"custom_id": name, "params": params} for name in names])


def test_others_batches_are_not_taken_for_ours(site, sim):
    backlog(site, 2)
    sim.batches.script_calls("drop")
    batches.send()
    sdk_batch(["0" * 32, "1" * 32])
    sdk_batch(["x"])
    with later(minutes=13):
        for batch in sim.batches.by_id.values():
            batch.poll(timezone.now())
        polled()
    assert JudgeBatch.objects.get().state == BatchState.LOST


def test_an_answer_that_comes_after_the_batch_was_given_up_cancels_it(site, sim):
    backlog(site, 2)
    sim.batches.polls = 5
    batches.send()
    batch = JudgeBatch.objects.get()
    crash_before_the_id_is_stored()
    batches.end_batch(batch, BatchState.LOST, "given up")
    body = json.dumps({"requests": [{"custom_id": "late", "params": {"model": "m", "max_tokens": 1, "messages": []}}]})
    with open_file(body) as file:
        assert batches.send_batch(judges.first(), batch, file)
    assert list(sim.batches.by_id.values())[-1].canceled_at is not None
    assert JudgeBatch.objects.get().state == BatchState.LOST


def open_file(text):
    import io

    return io.BytesIO(text.encode())


# --- polling ---------------------------------------------------------------------------------------------------------


def test_each_request_has_an_outcome_of_its_own(site, sim):
    kinds = ["verdict", "expired", "canceled", "overloaded", "too_large", "garbage", "refusal", "bad_request"]
    sim.batches.script(*kinds)
    jobs = backlog(site, len(kinds))
    batches.send()
    assert polled() == len(kinds)
    rows = [JudgeAttempt.objects.get(job=job) for job in jobs]
    found = {kind: (row.outcome, row.reason) for kind, row in zip(kinds, rows, strict=True)}
    assert found == {
        "verdict": ("graded", Reason.NONE),
        "expired": ("deferred", Reason.OVERLOADED),
        "canceled": ("deferred", Reason.AWAITING_JUDGE),
        "overloaded": ("deferred", Reason.OVERLOADED),
        "too_large": ("deferred", Reason.INPUT_TOO_LARGE),
        "garbage": ("invalid", Reason.UNPARSABLE_VERDICT),
        "refusal": ("refused", Reason.REFUSED),
        "bad_request": ("deferred", Reason.NEEDS_ATTENTION),
    }
    assert states() == [JobState.DONE] + [JobState.QUEUED] * (len(kinds) - 1)
    assert all(row.estimated_usd is None for row in rows)
    assert {row.http_status for row in rows} == {200, 400, 413, 529, None}


def test_a_verdict_that_is_copied_from_the_evidence_is_none(site, sim):
    planted = "The agent did all that was asked of it, carefully and completely, and deserves the best of grades."
    jobs = backlog(site, 2)
    site.on(jobs[0].session).with_file("journal", planted.encode())
    sim.batches.script({"rationale": planted})
    batches.send()
    polled()
    row = JudgeAttempt.objects.get(job=jobs[0])
    assert (row.outcome, row.reason) == (AttemptOutcome.INVALID, Reason.UNPARSABLE_VERDICT)
    assert "copied from the evidence" in row.detail
    assert verdicts(jobs[1]).count() == 1


@pytest.mark.parametrize(
    ("mode", "state"),
    [("no_credit", "exhausted"), ("usage_limits", "exhausted"), ("rate_limit", "pacing"), ("auth", "misconfigured")],
)
def test_an_error_in_the_results_moves_the_quota_like_any_other(site, sim, mode, state):
    sim.batches.script(mode)
    backlog(site, 2)
    batches.send()
    polled()
    assert quota.current().state == state
    assert states() == [JobState.DONE, JobState.QUEUED]


def test_a_batch_is_asked_after_less_often_as_it_grows_older(site, sim, settings):
    settings.JUDGE_BATCH_POLL_SECONDS = 30
    sim.batches.polls = 100
    backlog(site, 2)
    batches.send()
    created = JudgeBatch.objects.get().created_at
    asked = 0
    for seconds in range(0, 3600, 30):
        with time_machine.travel(created + dt.timedelta(seconds=seconds, milliseconds=1), tick=False):
            batches.poll()
    asked = sum(call.startswith("GET") for call in sim.batches.calls)
    # every 30 s for ten minutes, then a twentieth of the age: growing from 30 s to 3 min over the hour
    assert 40 <= asked <= 60


def test_two_who_poll_at_once_ask_once(site, sim):
    backlog(site, 2)
    batches.send()
    seen = JudgeBatch.objects.get()
    assert polled() == 2
    assert batches.poll_batch(seen, timezone.now()) == 0


def test_results_that_come_twice_or_of_unknown_requests_change_nothing(site, sim):
    jobs = backlog(site, 2)
    batches.send()
    held = next(iter(sim.batches.by_id.values()))
    held.requests[uuid.uuid4().hex] = held.requests["not-an-id"] = next(iter(held.requests.values()))
    assert polled() == 2
    JudgeBatch.objects.update(state=BatchState.RUNNING)
    assert polled() == 0
    assert all(verdicts(job).count() == 1 for job in jobs)
    assert outcomes() == [AttemptOutcome.GRADED] * 2


def test_a_request_without_a_result_is_queued_again(site, sim):
    first, second = backlog(site, 2)
    batches.send()
    held = next(iter(sim.batches.by_id.values()))
    del held.requests[JudgeAttempt.objects.get(job=second).lease_token.hex]
    assert polled() == 1
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state, second.losses) == (JobState.DONE, JobState.QUEUED, 1)
    row = JudgeAttempt.objects.get(job=second)
    assert (row.outcome, "without a result" in row.detail) == (AttemptOutcome.LOST, True)
    assert "1 requests without a result" in JudgeBatch.objects.get().detail
    budget.set_policy(by=None, use_batches=False)
    worker.pump()
    assert verdicts(second).count() == 1


def test_a_worker_killed_among_the_results_is_followed_by_another(site, sim):
    jobs = backlog(site, 3)
    batches.send()
    batch, judge = JudgeBatch.objects.get(), judges.first()
    batch_api.retrieve(judge, batch.provider_id)
    line = next(batch_api.results(judge, batch.provider_id))
    assert batches.apply_result(batch, judge, line)
    assert states() == [JobState.DONE, JobState.SENT, JobState.SENT]
    assert polled() == 2
    assert all(verdicts(job).count() == 1 for job in jobs)


def test_a_result_that_cannot_be_applied_leaves_the_others_and_comes_again(site, sim, caplog):
    jobs = backlog(site, 2)
    batches.send()
    row = JudgeAttempt.objects.get(job=jobs[0])
    JudgeAttempt.objects.filter(pk=row.pk).update(citable=[["no number"]])
    assert polled() == 1
    assert JudgeBatch.objects.get().state == BatchState.RUNNING
    assert "could not be applied" in caplog.text
    JudgeAttempt.objects.filter(pk=row.pk).update(citable=row.citable)
    assert polled() == 1
    assert JudgeBatch.objects.get().state == BatchState.ENDED


def test_polling_that_fails_is_tried_again(site, sim):
    backlog(site, 2)
    batches.send()
    for mode in ("rate_limit", "overloaded", "server_error", "drop", "not_json"):
        with site.rolled_back():
            sim.batches.script_calls(mode)
            assert polled() == 0, mode
            assert quota.current().state == QuotaState.OPEN, mode
            assert states() == [JobState.SENT] * 2, mode
            assert JudgeBatch.objects.get().detail, mode
            assert polled() == 2, mode


def test_a_batch_that_the_provider_does_not_know_is_lost(site, sim, settings):
    backlog(site, 2)
    batches.send()
    settings.ANTHROPIC_API_KEY = "sk-other"
    polled()
    assert JudgeBatch.objects.get().state == BatchState.LOST
    assert states() == [JobState.QUEUED] * 2
    assert quota.current().state == QuotaState.OPEN


def test_a_batch_that_never_ends_is_given_up(site, sim):
    sim.batches.polls = 100
    backlog(site, 2)
    batches.send()
    with later(hours=25):
        polled()
    assert JudgeBatch.objects.get().state == BatchState.RUNNING
    with later(hours=27):
        polled()
    assert JudgeBatch.objects.get().state == BatchState.LOST
    assert states() == [JobState.QUEUED] * 2


def test_a_batch_whose_judge_is_gone_is_given_up_after_a_day(site, sim, settings):
    backlog(site, 2)
    batches.send()
    settings.ANTHROPIC_API_KEY = ""
    assert polled() == 0
    with later(hours=27):
        polled()
    assert JudgeBatch.objects.get().state == BatchState.LOST


# --- what happens meanwhile ------------------------------------------------------------------------------------------


def test_the_sweep_leaves_what_was_sent_alone(site, sim):
    backlog(site, 2)
    batches.send()
    with later(hours=20):
        sweeper.release_lost(timezone.now())
        sweeper.sweep()
    assert states() == [JobState.SENT] * 2
    assert outcomes() == [AttemptOutcome.RUNNING] * 2


def test_a_session_whose_job_was_sent_has_no_other(site, sim):
    job, _ = backlog(site, 2)
    batches.send()
    assert enqueuing.enqueue(job.session) == job


def test_evidence_that_comes_while_the_batch_is_out_is_judged_too(site, sim):
    job, _ = backlog(site, 2)
    batches.send()
    site.on(job.session).with_file("patch", b"+++ b/x\n+one more\n")
    assert polled() == 2
    assert verdicts(job).count() == 1
    again = JudgeJob.objects.get(session=job.session, state=JobState.QUEUED)
    worker.run(again.pk)
    first, second = verdicts(job)
    assert first.inputs_sha256 != second.inputs_sha256
    assert first.inputs_sha256 == JudgeAttempt.objects.get(job=job).inputs_sha256


def test_a_lease_that_was_lost_while_prompts_were_built_is_still_on_record(site, sim):
    backlog(site, 2)
    batches.send()
    job = JudgeJob.objects.first()
    JudgeJob.objects.filter(pk=job.pk).update(state=JobState.QUEUED, lease_token=None)
    polled()
    row = JudgeAttempt.objects.get(job=job)
    assert (row.outcome, row.cost_usd > 0) == (AttemptOutcome.LOST, True)
    assert not verdicts(job).exists()


def test_the_sessions_of_a_batch_can_be_erased(site, sim):
    from grading.intake import erasing
    from grading.models import Session

    job, _ = backlog(site, 2)
    batches.send()
    erasing.erase(Session.objects.filter(pk=job.session_id), who="op", why="asked")
    assert polled() == 1
    assert JudgeBatch.objects.get().state == BatchState.ENDED


def test_a_smaller_prompt_that_was_lost_is_sent_again(site, sim):
    job, _ = backlog(site, 2)
    site.on(job.session).with_file("patch", b"+++ b/x\n" + b"+one more line\n" * 5000)
    JudgeJob.objects.filter(pk=job.pk).update(reason=Reason.INPUT_TOO_LARGE)
    batches.send()
    held = next(iter(sim.batches.by_id.values()))
    del held.requests[JudgeAttempt.objects.get(job=job).lease_token.hex]
    assert polled() == 1
    budget.set_policy(by=None, use_batches=False)
    assert worker.pump() == 1
    assert verdicts(job).count() == 1


# --- whatever happens ------------------------------------------------------------------------------------------------

PASSING = ["verdict", "expired", "canceled", "overloaded", "server_error", "rate_limit", "no_credit", "usage_limits"]
CALLS = ["verdict", "overloaded", "server_error", "rate_limit", "no_credit", "drop", "not_json"]


@examples(6, HealthCheck.function_scoped_fixture)
@given(st.lists(st.sampled_from(PASSING), max_size=8), st.lists(st.sampled_from(CALLS), max_size=4))
def test_every_session_ends_with_one_live_verdict_and_every_attempt_on_record(sim, results, calls):
    with transaction.atomic():
        sim.batches.script(*results)
        sim.batches.script_calls(*calls)
        jobs = backlog(Site(), 3)
        now = timezone.now()
        for _ in range(20):
            now += dt.timedelta(hours=1)  # beyond every backoff, refusal and pause
            with time_machine.travel(now, tick=True):
                quota.probe_now()
                polled()
                batches.send()
                worker.pump()
            if states() == [JobState.DONE] * 3:
                break
        assert states() == [JobState.DONE] * 3
        assert all(verdicts(job).count() == 1 for job in jobs)
        assert AttemptOutcome.RUNNING not in outcomes()
        assert not JudgeBatch.objects.filter(state=BatchState.SENDING).exists()
        assert not Quota.objects.out().exists()
        sim.apply({"reset": True, "batches": {"reset": True}})
        transaction.set_rollback(True)


def test_the_clock_takes_in_what_is_out_and_sends_what_has_gathered(site, sim):
    backlog(site, 2)
    tasks.batches()
    backlog(site, 2)
    JudgeBatch.objects.update(polled_at=None)
    tasks.batches()
    assert states() == [JobState.DONE] * 2 + [JobState.SENT] * 2


def test_the_order_of_the_backlog_is_the_promised_one(site, sim):
    jobs = backlog(site, 3)
    JudgeJob.objects.filter(pk=jobs[2].pk).update(worth=0.1)
    assert list(ordering.batch_jobs(timezone.now(), JudgeRole.FIRST)) == [jobs[2], jobs[0], jobs[1]]
    assert ordering.batched_roles(timezone.now(), list(JudgeRole)) == [JudgeRole.FIRST]
