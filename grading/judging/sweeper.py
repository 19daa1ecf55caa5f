"""The sweep: every few seconds it puts right what was lost, says what waits and why, and wakes workers for the rest."""

import datetime as dt
from random import Random, SystemRandom

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from grading import monitoring, review
from grading.backoff import backoff
from grading.judging import enqueuing, judges, results
from grading.judging.allowance import quota
from grading.judging.core.verdict_score import VERSION
from grading.judging.lanes import one_by_one
from grading.judging.worker import ready
from grading.models import JudgeAttempt, JudgeJob, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.reward.grade import unscored
from grading.vocabulary import Reason, Source

# What one sweep does at most; the next one comes in seconds.
RUNG_PER_SWEEP, NOTED_PER_SWEEP = 16, 100
LOSSES_COUNTED = 5
# What keeps all jobs waiting, and is over for all of them at once.
PASSING_REASONS = (
    Reason.QUOTA_EXHAUSTED,
    Reason.BUDGET_SPENT,
    Reason.PAUSED,
    Reason.AUTH,
    Reason.NOT_CONFIGURED,
)


def sweep(*, rng: Random | None = None) -> list[int]:
    """Put right what was lost, say what waits and why, and return the jobs that are next, to wake workers for."""
    now = timezone.now()
    release_lost(now, rng or SystemRandom())
    # Every waiting session says why it waits, or that it no longer waits for that; some at a time.
    obstacle = quota.obstacle()
    waiting = JudgeJob.objects.filter(state=JobState.QUEUED, purpose=Purpose.VERDICT).select_related("session")
    if obstacle is None:
        waiting = waiting.filter(reason__in=PASSING_REASONS)
        said = unscored(Source.JUDGE, Reason.AWAITING_JUDGE, version=VERSION, detail="The judge is back; in the queue")
    else:
        waiting = waiting.exclude(reason=obstacle.reason)
        said = enqueuing.held_up(obstacle)
    for job in waiting[:NOTED_PER_SWEEP]:
        results.note(job, said)
    look_again(now)
    monitoring.watch()
    if not quota.is_configured():
        return []
    quota.retire_others(now)
    # Jobs for a judge that is not configured any more: the fallback's go back to the first, the second's end.
    configured, queued = judges.configured(), JudgeJob.objects.filter(state=JobState.QUEUED)
    if JudgeRole.FALLBACK not in configured:
        queued.filter(judge=JudgeRole.FALLBACK).update(judge=JudgeRole.FIRST)
    if JudgeRole.SECOND not in configured:
        second = queued.filter(judge=JudgeRole.SECOND)
        second.update(state=JobState.ABANDONED, reason=Reason.NOT_CONFIGURED, finished_at=timezone.now())
    return next_jobs(now)


def next_jobs(now: dt.datetime) -> list[int]:
    """The most urgent jobs that may be tried now; of a judge whose quota lets only a probe through, one."""
    jobs: list[int] = []
    for role, judge in ready(now).items():
        probes = quota.current(judge).state == QuotaState.EXHAUSTED
        jobs += one_by_one(now, [role]).values_list("pk", flat=True)[: 1 if probes else RUNG_PER_SWEEP]
    return jobs


def release_lost(now: dt.datetime, rng: Random) -> int:
    """Take back the jobs whose worker did not come back in time; how many. Repeated losses wait longer."""
    released, base = 0, dt.timedelta(seconds=settings.JUDGE_BACKOFF_SECONDS)
    for job in JudgeJob.objects.filter(state=JobState.LEASED, leased_until__lte=now):
        # Workers that die are rarely the job's fault: it waits longer each time, and never for long.
        wait = backoff(min(job.losses, LOSSES_COUNTED), base, rng) if job.losses else dt.timedelta(0)
        with transaction.atomic():
            mine = JudgeJob.objects.filter(pk=job.pk).held_by(str(job.lease_token))
            if mine.queue_again(next_attempt_at=now + wait, losses=F("losses") + 1):
                released += 1
                JudgeAttempt.objects.filter(lease_token=str(job.lease_token), outcome=AttemptOutcome.RUNNING).update(
                    outcome=AttemptOutcome.LOST,
                    finished_at=now,
                    detail="The worker did not come back before its lease ended",
                )
    return released


def look_again(now: dt.datetime) -> None:
    """Let the rules look again at sessions whose work has waited too long: nothing else may ever happen to them."""
    for key in monitoring.overdue(now).values_list("pk", flat=True)[:NOTED_PER_SWEEP]:
        with transaction.atomic():
            review.recheck(Session.objects.select_for_update(of=("self",)).with_people().get(pk=key))
