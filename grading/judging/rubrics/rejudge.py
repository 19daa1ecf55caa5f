"""Judging again: a run of jobs for a selection of sessions, made in chunks and resumable from its row."""

import logging
from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from grading import clock
from grading.evidence.material import JUDGED_KINDS, judgeable
from grading.judging import enqueuing
from grading.judging.rubrics.plans import LeftOut
from grading.judging.rubrics.verdicts import answers, verdicts
from grading.models import Evidence, Grade, JudgeJob, JudgeRun, Rubric, Session
from grading.models.judging import JobState, Purpose
from grading.review import queue
from grading.reward import reserving, rewards
from grading.vocabulary import NO_REWARD, Reason, WorkKind

logger = logging.getLogger(__name__)

# Sessions in one transaction, and in one turn of the schedule. A run up to SYNC_LIMIT gets its jobs at once.
CHUNK_SIZE, BATCH_SIZE = 25, 250
SYNC_LIMIT = 50
IDENTITY = ("source", "inputs_sha256", "version", "model", "route", "rubric")


def start(
    sessions: Sequence[int], rubric: Rubric, *, by: User | None, why: str, estimated_usd: float | None
) -> JudgeRun:
    """Judge these sessions (primary keys) again, each by the rubric in force for its kind of work.

    `rubric` is that of most of them. A small run gets its jobs at once; a large one gets them from the schedule.
    """
    run = JudgeRun.objects.create(
        rubric=rubric, by=by, why=why, estimated_usd=estimated_usd, sessions=list(sessions), total=len(sessions)
    )
    if run.total <= SYNC_LIMIT:
        while _enqueue_chunk(run.pk):
            pass
        run.refresh_from_db(fields=["placed", "left_out"])
    return run


def enqueue() -> int:
    """Make the next jobs of unfinished runs. Returns for how many sessions; the last chunk may exceed BATCH_SIZE.

    Safe to call concurrently.
    """
    count = 0
    while count < BATCH_SIZE:
        run = JudgeRun.objects.filter(cancelled_at=None, placed__lt=F("total")).order_by("pk").only("pk").first()
        if run is None:
            break
        count += _enqueue_chunk(run.pk)
    return count


def cancel(run: JudgeRun, *, by: User) -> int:
    """Cancel the queued jobs of a run. Returns how many.

    Jobs that would exist without the run stay queued: older jobs, and the jobs of sessions without a verdict or with
    evidence that their verdict has not read. Sessions that arrived while there was no judge (`judging.earlier`) would
    have no job, unless more evidence came since.
    """
    now = clock.now()
    with transaction.atomic():
        running = JudgeRun.objects.select_for_update().filter(pk=run.pk, cancelled_at=None)
        if not running.update(cancelled_at=now, cancelled_by=by):
            return 0
        queued = JudgeJob.objects.filter(run=run, state__in=[JobState.QUEUED, JobState.PARKED])
        verdict_dates = verdicts().filter(session=OuterRef("session")).values("created_at")
        evidence = Evidence.objects.filter(session=OuterRef("session"), kind__in=JUDGED_KINDS, problem="")
        evidence_dates = evidence.order_by("-received_at").values("received_at")
        dated = queued.annotate(verdict_at=Subquery(verdict_dates[:1]), evidence_at=Subquery(evidence_dates[:1]))
        came_without_judge = Exists(Grade.objects.chain().without_judge().filter(session=OuterRef("session")))
        exists_without_run = (
            Q(created_at__lt=run.created_at)
            | Q(evidence_at__gt=Coalesce(F("verdict_at"), F("created_at")))
            | Q(verdict_at=None) & ~came_without_judge
        )
        needed_jobs = list(dated.filter(exists_without_run).values_list("pk", flat=True))
        queued.filter(pk__in=needed_jobs).update(run=None)  # so that `queued` and `dated` no longer contain them
        unjudged_sessions = list(dated.filter(verdict_at=None).values_list("session", flat=True))
        count = queued.update(state=JobState.CANCELLED, reason=Reason.NONE, finished_at=now)
    # These sessions get no verdict now: settle them, and let them wait for a choice again.
    for pk in unjudged_sessions:
        with transaction.atomic():
            session = Session.objects.for_grading().get(pk=pk)
            if enqueuing.came_without_judge(session):
                enqueuing.enqueue(session)
            rewards.settle(session)
    return count


# --- making jobs ------------------------------------------------------------------------------------------------------


def _enqueue_chunk(run_id: int) -> int:
    """Make the jobs of the next sessions of a run, at most CHUNK_SIZE, in one transaction.

    Returns for how many sessions; 0 if the run had ended.
    """
    with transaction.atomic():
        run = JudgeRun.objects.select_for_update().select_related("rubric").get(pk=run_id)
        if run.cancelled_at is not None or run.placed == run.total:
            return 0
        # The rubrics in force, which may have changed since the run was started.
        rubrics = Rubric.objects.in_force()
        chunk = run.sessions[run.placed : run.placed + CHUNK_SIZE]
        for session_id in chunk:
            why: LeftOut | None = LeftOut.UNREADABLE  # if `_place` raises an error
            try:
                with transaction.atomic():
                    why = _place(session_id, run, rubrics)
            except Exception:  # one broken session must not stop the others of the run
                logger.exception("session %s cannot be judged again", session_id)
            if why is not None:
                run.left_out[why] = run.left_out.get(why, 0) + 1
        run.placed += len(chunk)
        run.save(update_fields=["placed", "left_out"])
        enqueuing.wake_workers()
        return len(chunk)


def _place(session_id: int, run: JudgeRun, rubrics: Mapping[WorkKind, Rubric]) -> LeftOut | None:
    """Make a job for one session, or take over its open job. Returns why if neither is possible, else None."""
    session = Session.objects.select_for_update(of=("self",)).with_people().filter(pk=session_id).first()
    if session is None:
        return LeftOut.GONE
    if session.outcome in NO_REWARD:
        return LeftOut.NO_REWARD
    rubric = rubrics.get(session.work)
    if rubric is None:
        return LeftOut.NO_RUBRIC
    open_job = JudgeJob.objects.open().filter(session=session, purpose=Purpose.VERDICT).first()
    if open_job is not None:
        JudgeJob.objects.parked().filter(pk=open_job.pk).queue_again(next_attempt_at=clock.now())
        taken_over = JudgeJob.objects.filter(pk=open_job.pk, state=JobState.QUEUED).update(run=run, rubric=rubric)
        return None if taken_over else LeftOut.JUDGING
    hashes = judgeable(session)
    if not hashes:
        return LeftOut.NO_EVIDENCE
    earlier_answers = list(answers(session, rubric, hashes).order_by("parallel", "pk"))
    latest = verdicts().filter(session=session).first()
    if latest in earlier_answers:
        return LeftOut.UNCHANGED
    job = JudgeJob(session=session, rubric=rubric, run=run, backlog=True)
    if earlier_answers:
        # The question was answered before. Copy the answer as the current verdict: the job is done without a call.
        answer = earlier_answers[0]
        identity = {name: getattr(answer, name) for name in IDENTITY}
        replicate = session.grades.filter(**identity).aggregate(last=Max("replicate"))["last"] + 1
        Grade.objects.create(
            session=session,
            status=answer.status,
            value=answer.value,
            detail=answer.detail,
            evidence={**answer.evidence, "taken_from": answer.pk},
            replicate=replicate,
            cost_usd=0.0,
            **identity,
        )
        job.state, job.reason, job.finished_at = JobState.DONE, Reason.NONE, clock.now()
        job.save()
        rewards.settle(session)
        queue.recheck(session)
    else:
        job.reserved = latest is None and reserving.is_reserved(session)
        job.save()
        if latest is None:  # a verdict may come now where none could before
            rewards.settle(session)
    return None
