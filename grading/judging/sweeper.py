"""The sweep: every few seconds it recovers lost jobs, records why jobs wait, and wakes workers for those due."""

import datetime as dt
import logging
import time

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from grading import clock
from grading.backoff import DICE, backoff
from grading.days import tomorrow
from grading.judging import client, enqueuing, judges, results
from grading.judging.allowance import quota
from grading.judging.core.retry import PARKED_FOR, PARKED_TRIES, READERS_LOST
from grading.judging.core.verdict_score import VERSION
from grading.judging.ordering import single_call_jobs
from grading.judging.worker import ready_judges
from grading.models import JudgeAttempt, JudgeJob, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.monitoring import operation
from grading.monitoring.sessions import overdue
from grading.monitoring.watch import watch
from grading.review import queue
from grading.reward.grade import unscored
from grading.vocabulary import Reason, Source, Status

logger = logging.getLogger(__name__)

# The most that one sweep does; the next one comes in seconds.
WAKEUPS_PER_SWEEP, CHANGES_PER_SWEEP = 16, 100
# The most time it spends on recording why jobs wait before it wakes the workers.
RECORD_SECONDS = 4.0
LOSSES_COUNTED = 5
# Reasons to wait that may end before the jobs are due. The jobs are then made due within SOON.
EARLY_RETRY_REASONS = (Reason.TIMEOUT, Reason.CONNECTION, Reason.OVERLOADED, Reason.NEEDS_ATTENTION, Reason.UNREADABLE)
# The longest wait is until midnight, on a day when the clock is put back.
LONGEST_WAIT = dt.timedelta(hours=26)
SOON = dt.timedelta(minutes=1)
# Reasons that make all jobs wait and end for all of them at once.
PASSING_REASONS = (
    Reason.QUOTA_EXHAUSTED,
    Reason.BUDGET_SPENT,
    Reason.PAUSED,
    Reason.AUTH,
    Reason.NOT_CONFIGURED,
)


def sweep() -> list[int]:
    """Recover lost jobs, record why jobs wait, and return the jobs that are next, to wake workers for."""
    now = clock.now()
    reset_impossible_times(now)
    apply_stored_answers(now)
    release_lost(now)
    retry_early(now)
    record_waits(now)
    # Check the review rules of sessions that have waited too long: no other event may ever do so.
    for key in overdue(now).values_list("pk", flat=True)[:CHANGES_PER_SWEEP]:
        with transaction.atomic():
            queue.recheck(Session.objects.select_for_update(of=("self",)).with_people().get(pk=key))
    watch()
    if not quota.is_configured():
        return []
    quota.retire_others(now)
    reassign_jobs(now)
    return next_jobs(now)


def record_waits(now: dt.datetime) -> None:
    """Record why sessions wait for a verdict, or that the reason is gone. Each sweep does only some sessions."""
    obstacle = quota.obstacle()
    waiting = JudgeJob.objects.queued().filter(purpose=Purpose.VERDICT).select_related("session")
    # Jobs whose token has used its quota keep that reason.
    waiting = waiting.exclude(reason=Reason.BUDGET_SPENT, next_attempt_at=tomorrow(now))
    if obstacle is None:
        waiting = waiting.filter(reason__in=PASSING_REASONS)
        grade = unscored(Source.JUDGE, Reason.AWAITING_JUDGE, version=VERSION, detail="The judge is back; in the queue")
    else:
        waiting = waiting.exclude(reason=obstacle.reason)
        grade = enqueuing.obstacle_grade(obstacle)
    deadline = time.monotonic() + RECORD_SECONDS
    for job in waiting[:CHANGES_PER_SWEEP]:
        results.record_wait(job, grade)
        if time.monotonic() > deadline:
            break


def reassign_jobs(now: dt.datetime) -> None:
    """Reassign the queued jobs of judges that are no longer configured: a fallback judge's go to the first judge, a
    second judge's are abandoned.
    """
    configured = judges.configured()
    queued = JudgeJob.objects.filter(state__in=[JobState.QUEUED, JobState.PARKED])
    if JudgeRole.FALLBACK not in configured:
        queued.filter(judge=JudgeRole.FALLBACK).update(judge=JudgeRole.FIRST)
    if JudgeRole.SECOND not in configured:
        second = queued.filter(judge=JudgeRole.SECOND)
        second.update(state=JobState.ABANDONED, reason=Reason.NOT_CONFIGURED, finished_at=now)


def next_jobs(now: dt.datetime) -> list[int]:
    """The most urgent jobs of each judge that may be called now; only one if the call is a probe of its quota."""
    job_ids: list[int] = []
    for role, judge in ready_judges(now).items():
        limit = 1 if quota.current(judge).state in quota.STATES_WITH_PROBES else WAKEUPS_PER_SWEEP
        job_ids += single_call_jobs(now, [role]).values_list("pk", flat=True)[:limit]
    return job_ids


def reset_impossible_times(now: dt.datetime) -> int:
    """End waits and leases that are longer than the site ever sets: a wrong clock wrote them. Returns how many."""
    jobs = JudgeJob.objects
    lease = dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
    attempts = JudgeAttempt.objects.filter(job=OuterRef("pk"))
    in_future = attempts.filter(Q(started_at__gt=now + SOON) | Q(finished_at__gt=now + SOON))
    # A spent budget makes a job wait until midnight, whether it was tried or not.
    not_for_budget = jobs.queued().exclude(reason=Reason.BUDGET_SPENT)
    impossible_waits = [
        jobs.queued().filter(next_attempt_at__gt=now + LONGEST_WAIT),
        jobs.parked().filter(next_attempt_at__gt=now + PARKED_FOR + SOON),
        not_for_budget.filter(attempts=0, next_attempt_at__gt=now + enqueuing.QUIET + SOON),  # never tried
        not_for_budget.filter(Exists(in_future), next_attempt_at__gt=now + SOON),  # tried while the clock was wrong
    ]
    impossible_leases = jobs.filter(state=JobState.LEASED, leased_until__gt=now + lease + SOON)
    count = sum(waits.update(next_attempt_at=now) for waits in impossible_waits)
    return count + impossible_leases.update(leased_until=now)


def apply_stored_answers(now: dt.datetime) -> int:
    """Apply the stored answers of workers that were lost before they applied them. Returns how many."""
    configured = judges.configured()
    count = 0
    expired = JudgeAttempt.objects.filter(job__state=JobState.LEASED, job__leased_until__lte=now)
    answered = expired.filter(answer__isnull=False, job__lease_token=F("lease_token"))
    for attempt in answered.select_related("job__rubric")[:CHANGES_PER_SWEEP]:
        judge = configured.get(JudgeRole(attempt.judge))
        if judge is not None and judge.model != attempt.model:
            judge = None  # another model is configured now
        try:
            answer = client.from_dict(attempt.answer or {})
            results.apply(attempt, answer, judge, inputs_sha256=attempt.inputs_sha256)
            count += 1
        except Exception:  # the answer stays stored, and the next sweep tries again
            logger.exception("the answer of attempt %s cannot be applied", attempt.pk)
    return count


def release_lost(now: dt.datetime) -> int:
    """Queue jobs again whose lease ended without an answer. Returns how many.

    After repeated losses a job waits longer. One whose evidence keeps killing its readers is parked.
    """
    released = 0
    base = dt.timedelta(seconds=settings.JUDGE_BACKOFF_SECONDS)
    answered = JudgeAttempt.objects.filter(lease_token=OuterRef("lease_token"), answer__isnull=False)
    expired = JudgeJob.objects.filter(state=JobState.LEASED, leased_until__lte=now)
    for job in expired.exclude(Exists(answered)):
        # Workers rarely die because of the job: it waits longer each time, but never for long.
        wait = backoff(min(job.losses, LOSSES_COUNTED), base, DICE) if job.losses else dt.timedelta(0)
        with transaction.atomic():
            session = Session.objects.select_for_update(of=("self",)).get(pk=job.session_id)
            mine = JudgeJob.objects.filter(pk=job.pk).held_by(str(job.lease_token))
            if not mine.queue_again(next_attempt_at=now + wait, losses=F("losses") + 1):
                continue
            released += 1
            lost = JudgeAttempt.objects.filter(lease_token=str(job.lease_token), outcome=AttemptOutcome.RUNNING)
            at_reading = lost.filter(error_type=results.READING).exists()
            lost.update(
                outcome=AttemptOutcome.LOST,
                finished_at=now,
                detail="The worker did not come back before its lease ended",
            )
            if at_reading and results.readers_lost(job.attempt_rows.all()) >= READERS_LOST:
                detail = f"{READERS_LOST} processes were lost one after the other while they read its evidence"
                grade = unscored(Source.JUDGE, Reason.UNREADABLE, version=VERSION, detail=detail, status=Status.FAILED)
                results.park(job, session, grade, now)
    return released


def retry_early(now: dt.datetime) -> int:
    """Queue parked jobs that are due for their daily try, in the first week. Also make waiting jobs due within a minute
    if the cause of their wait is gone. Returns how many jobs.
    """
    daily = JudgeJob.objects.parked().filter(next_attempt_at__lte=now, parked_at__gt=now - PARKED_TRIES)
    count = daily.queue_again()
    waiting = JudgeJob.objects.queued().filter(next_attempt_at__gt=now + SOON, own_failures=0)
    waiting_for = waiting.filter(reason__in=EARLY_RETRY_REASONS).order_by().values_list("judge", "reason").distinct()
    for judge, reason in waiting_for:
        # The cause is gone if an attempt has succeeded since it last occurred.
        ended = JudgeAttempt.objects.filter(judge=judge, finished_at__isnull=False).order_by("-finished_at")
        last_failure = ended.filter(outcome=AttemptOutcome.DEFERRED, reason=reason).first()
        if reason == Reason.UNREADABLE:
            successes = ended.exclude(prompt_sha256="")  # those whose evidence was read
        else:
            successes = ended.filter(outcome=AttemptOutcome.GRADED)
        if last_failure is None or not successes.filter(finished_at__gt=last_failure.finished_at).exists():
            continue
        for job in waiting.filter(judge=judge, reason=reason)[:CHANGES_PER_SWEEP]:
            mine = JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED)
            count += mine.update(next_attempt_at=now + SOON * DICE.random())
    return count


def try_now(*, by: User | None) -> int:
    """Make every stalled job due now, on a person's request. Returns how many. A job that fails again waits again."""
    stalled = (operation.held_back(), operation.parked(), operation.quarantined())
    job_ids = [job_id for jobs in stalled for job_id in jobs.values_list("pk", flat=True)]
    waiting = JudgeJob.objects.filter(pk__in=job_ids, state__in=operation.WAITING_STATES)
    count = waiting.queue_again(next_attempt_at=clock.now())
    logger.info("%s had %d stalled judge jobs tried now", by or "a program", count)
    enqueuing.wake_workers()
    return count
