"""Judge jobs from asking for a verdict to having one: `enqueue`, `claim`, `run`, and the `sweep` that mends."""

import datetime as dt
import logging
import uuid
from random import Random, SystemRandom

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils import timezone

from grading import monitoring, rewards
from grading.core.grade import SourceGrade, unscored
from grading.core.prompt import VERSION
from grading.core.retry import backoff
from grading.core.verdict import Deferred, Scope
from grading.core.vocabulary import Outcome, Reason, Source, Status
from grading.judging import client, inputs, quota, results
from grading.judging.client import Answer
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState
from grading.models.quota import QuotaState

logger = logging.getLogger(__name__)

# What one sweep does at most; the next one comes in seconds.
RUNG_PER_SWEEP, NOTED_PER_SWEEP, CAUGHT_UP_AT_ONCE = 200, 100, 200
SMALLER = 0.5
# What keeps all jobs waiting, and is over for all of them at once.
PASSING_REASONS = (Reason.QUOTA_EXHAUSTED, Reason.AUTH, Reason.NOT_CONFIGURED)
NO_REWARD = (Outcome.INFRASTRUCTURE, Outcome.REFUSED)


# --- asking for a verdict --------------------------------------------------------------------------------------------


def enqueue(session: Session, *, backlog: bool = False) -> JudgeJob | None:
    """See to it that the session is judged: a job, unless one is open or these inputs were judged under this rubric.

    Runs in the caller's transaction, which settles afterwards. Where no job can be made, or it must wait for quota,
    a judge grade says why (L1). Rings the doorbell on commit.
    """
    open_job = session.judge_jobs.open().first()
    held, rubric = inputs.inputs(session), Rubric.objects.active()
    if open_job is not None or (rubric and is_judged(session, inputs.inputs_sha256(held), rubric)):
        return open_job
    said = status_grade(session, has_evidence=bool(held), has_rubric=rubric is not None)
    if said is not None:
        results.record(session, said)
    if rubric is None or (said is not None and said.status is Status.SKIPPED):
        return None
    reason = Reason.AWAITING_JUDGE if said is None else said.reason
    job = JudgeJob.objects.create(session=session, rubric=rubric, backlog=backlog, reason=reason)
    ring(job)
    return job


def status_grade(session: Session, *, has_evidence: bool = True, has_rubric: bool = True) -> SourceGrade | None:
    """What to say of a session before anything is asked; None where a job simply waits for its turn.

    `skipped` means that there is no job to make now.
    """
    if session.outcome in NO_REWARD:
        return _skipped(Reason.INFRASTRUCTURE, "A session without a reward is not judged")
    if not has_evidence:
        return _skipped(Reason.NO_EVIDENCE, "Nothing to read: no usable transcript, journal, patch or facts")
    if not has_rubric:
        return _skipped(Reason.NOT_CONFIGURED, "No rubric is active; activate one")
    obstacle = quota.obstacle()
    if obstacle is None:
        return None
    if obstacle.reason is Reason.NOT_CONFIGURED:
        return _skipped(obstacle.reason, obstacle.detail)
    return _failed(obstacle)


def _failed(obstacle: quota.Obstacle) -> SourceGrade:
    return unscored(Source.JUDGE, obstacle.reason, version=VERSION, detail=obstacle.detail, status=Status.FAILED)


def _skipped(reason: Reason, detail: str) -> SourceGrade:
    return unscored(Source.JUDGE, reason, version=VERSION, detail=detail, status=Status.SKIPPED)


def is_judged(session: Session, inputs_sha256: str, rubric: Rubric) -> bool:
    """Whether a verdict on exactly these inputs, under this rubric, is there."""
    verdicts = Grade.objects.filter(session=session, source=Source.JUDGE, status=Status.SCORED)
    return verdicts.filter(inputs_sha256=inputs_sha256, rubric=rubric.sha256).exists()


def ring(job: JudgeJob) -> None:
    """Tell a worker once this transaction is committed. A dead broker costs a log line and one sweep, nothing else."""
    from grading.judging.doorbell import publish

    transaction.on_commit(lambda: publish(job.pk))


# --- doing it --------------------------------------------------------------------------------------------------------


def claim(job_id: int) -> JudgeAttempt | None:
    """Take a due job, if the quota permits: a running attempt whose lease is the caller's. None for everybody else."""
    now, token = timezone.now(), uuid.uuid4()
    if not quota.is_configured():
        return None
    with transaction.atomic():
        due = JudgeJob.objects.filter(pk=job_id, state=JobState.QUEUED, next_attempt_at__lte=now)
        until = now + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
        if not due.update(state=JobState.LEASED, lease_token=token, leased_until=until):
            return None
        if not quota.take(now):
            transaction.set_rollback(True)
            return None
        return JudgeAttempt.objects.create(job_id=job_id, lease_token=token, started_at=now, model=settings.JUDGE_MODEL)


def run(job_id: int, *, rng: Random | None = None) -> AttemptOutcome | None:
    """Claim, ask, apply. None where the job was not to be had. No transaction is open while the judge is asked."""
    attempt = claim(job_id)
    if attempt is None:
        return None
    session = Session.objects.with_people().get(judge_jobs=job_id)
    inputs_sha256 = inputs.inputs_sha256(inputs.inputs(session))
    answer = _ask(attempt, session)
    outcome = results.apply(attempt, answer, inputs_sha256=inputs_sha256, rng=rng or SystemRandom())
    if outcome is AttemptOutcome.GRADED:
        _again_if_more_came(session)
    return outcome


def _ask(attempt: JudgeAttempt, session: Session) -> Answer:
    """The call, or why it was not made."""
    job = attempt.job
    smaller = SMALLER if job.reason == Reason.INPUT_TOO_LARGE else 1.0
    try:
        prompt = inputs.build(session, job.rubric, budget=settings.JUDGE_INPUT_TOKENS, smaller=smaller)
    except Exception as error:
        logger.exception("the prompt of session %s could not be made", session.pk)
        detail = f"The evidence could not be read: {type(error).__name__}: {error}"
        return Answer(result=Deferred(reason=Reason.UNREADABLE, scope=Scope.JOB, detail=detail[:2000]))
    if smaller < 1 and job.attempt_rows.filter(prompt_sha256=prompt.sha256).exists():
        detail = "The request was too large, and this session's evidence cannot be made smaller"
        return Answer(result=Deferred(reason=Reason.INPUT_TOO_LARGE, scope=Scope.INPUT, detail=detail))
    attempt.prompt_sha256 = prompt.sha256
    attempt.save(update_fields=["prompt_sha256"])
    return client.ask(prompt, job.rubric)


def _again_if_more_came(session: Session) -> None:
    """Evidence that came in while the judge was reading is judged too."""
    with transaction.atomic():
        enqueue(Session.objects.select_for_update(of=("self",)).get(pk=session.pk))


# --- the sweep -------------------------------------------------------------------------------------------------------


def sweep(*, rng: Random | None = None) -> list[int]:
    """Put right what was lost, say what waits and why, and return the ids of the jobs to ring for, in order."""
    now = timezone.now()
    release_lost(now, rng or SystemRandom())
    _note(quota.obstacle())
    monitoring.watch()
    if not quota.is_configured():
        return []
    quota.retire_others(now)
    return due(now)


def due(now: dt.datetime) -> list[int]:
    """The jobs that may be tried now: all that are due, or one where only a probe may go."""
    held = quota.current()
    if not quota.is_due(held, now):
        return []
    count = 1 if held.state == QuotaState.EXHAUSTED else RUNG_PER_SWEEP
    jobs = JudgeJob.objects.filter(state=JobState.QUEUED, next_attempt_at__lte=now)
    return list(jobs.values_list("pk", flat=True)[:count])


def release_lost(now: dt.datetime, rng: Random) -> int:
    """Take back the jobs whose worker did not come back in time; how many. Repeated losses wait longer."""
    lost = JudgeJob.objects.filter(state=JobState.LEASED, leased_until__lte=now)
    return sum(_release(job, str(job.lease_token), now, rng) for job in lost)


def _release(job: JudgeJob, token: str, now: dt.datetime, rng: Random) -> bool:
    with transaction.atomic():
        lost_before = job.attempt_rows.filter(outcome=AttemptOutcome.LOST).count()
        base = dt.timedelta(seconds=settings.JUDGE_BACKOFF_SECONDS)
        wait = backoff(lost_before, base, rng) if lost_before else dt.timedelta(0)
        mine = JudgeJob.objects.filter(pk=job.pk, state=JobState.LEASED, lease_token=token)
        released = mine.update(state=JobState.QUEUED, lease_token=None, leased_until=None, next_attempt_at=now + wait)
        if released:
            JudgeAttempt.objects.filter(lease_token=token, outcome=AttemptOutcome.RUNNING).update(
                outcome=AttemptOutcome.LOST,
                finished_at=now,
                detail="The worker did not come back before its lease ended",
            )
    return bool(released)


def _note(obstacle: quota.Obstacle | None) -> None:
    """Write on every waiting session why it waits, or that it no longer waits for that, some at a time."""
    waiting = JudgeJob.objects.filter(state=JobState.QUEUED)
    if obstacle is None:
        waiting = waiting.filter(reason__in=PASSING_REASONS)
        said = unscored(Source.JUDGE, Reason.AWAITING_JUDGE, version=VERSION, detail="The judge is back; in the queue")
    else:
        waiting = waiting.exclude(reason=obstacle.reason)
        said = _failed(obstacle)
    for job in waiting.select_related("session")[:NOTED_PER_SWEEP]:
        results.note(job, said)


def catch_up(*, abandoned: bool = False, limit: int = CAUGHT_UP_AT_ONCE) -> int:
    """Enqueue sessions that came in while no judge was configured (and, if asked, those given up); how many."""
    if not quota.is_configured():
        return 0
    count = 0
    for session in unjudged(abandoned=abandoned)[:limit]:
        with transaction.atomic():
            locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
            count += enqueue(locked) is not None
            rewards.settle(locked)
    return count


def unjudged(*, abandoned: bool = False) -> QuerySet[Session]:
    """Sessions without an open job that the judge has not seen for want of a key (or whose job was given up)."""
    latest = Grade.objects.filter(session=OuterRef("pk"), source=Source.JUDGE).order_by("-pk")
    sessions = Session.objects.annotate(
        judge_says=Subquery(latest.values("reason")[:1]), judge_status=Subquery(latest.values("status")[:1])
    ).exclude(Exists(JudgeJob.objects.open().filter(session=OuterRef("pk"))))
    if not abandoned:
        return sessions.filter(judge_says=Reason.NOT_CONFIGURED)
    given_up = Exists(JudgeJob.objects.filter(session=OuterRef("pk"), state=JobState.ABANDONED))
    return sessions.filter(given_up).exclude(judge_status=Status.SCORED)
