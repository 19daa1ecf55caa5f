"""Enqueues sessions for judging: makes a job row, unless one is open or there is nothing new to judge."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery

from grading import clock
from grading.evidence import ownership
from grading.evidence.material import judgeable
from grading.judging import inputs, judges
from grading.judging.allowance import quota
from grading.judging.core.verdict_score import VERSION
from grading.models import Grade, JudgeJob, Rubric, Session
from grading.models.judging import OPEN_STATES, JobState, JudgeRole, Purpose
from grading.review import queue, shares
from grading.reward import rereading, reserving, rewards
from grading.reward.grade import SourceGrade, unscored
from grading.vocabulary import NO_REWARD, JudgeChoice, Reason, Source, Status

CATCH_UP_LIMIT = 200
# Why no job is made without a person's request.
HISTORY = "Submitted as history without a verdict; a person can request one"
SAMPLE = "A sample is judged only if a person asks for it, because calls cost money"
NO_JUDGE = (
    "There was no judge when this session arrived. Once a key is set, you can choose under Settings → Judge which "
    "of these sessions to judge"
)
# A session that goes on after its verdict is judged again once it has been quiet for this long, at most this often: an
# agent that could ask without limit would stop at the best answer.
QUIET, MAX_REJUDGED = dt.timedelta(minutes=30), 3


def enqueue(session: Session, *, is_new: bool = False) -> JudgeJob | None:
    """Make a job for the session, unless it has an open one or its verdict has read all evidence. Returns the open job.

    A session that arrived while there was no judge gets a job only if it `is_new`, that is, has new evidence. A person
    chooses which of the others are judged (`judging.earlier`).

    If a verdict has not read some evidence, its job goes first; there is at most one job for the same unread evidence.
    If no job can be made, or it must wait for quota, a judge grade says why. Runs in the caller's transaction, which
    settles afterwards. Wakes a worker on commit.
    """
    jobs = [job for job in session.judge_jobs.all() if job.state in OPEN_STATES and job.purpose == Purpose.VERDICT]
    hashes = judgeable(session)
    inputs_sha256 = inputs.inputs_sha256(hashes)
    verdict, unread = rewards.verdict_and_unread([grade for grade in session.grades.all() if not grade.parallel])
    if jobs:
        _update_job(jobs[0], verdict, inputs_sha256, unread)
        return jobs[0]
    if not _is_wanted(session, verdict, inputs_sha256, unread):
        return None
    rubric = Rubric.objects.active(session.work)
    grade = status_grade(session, has_evidence=bool(hashes), has_rubric=rubric is not None)
    if verdict is None:
        grade = _on_request_grade(session, grade, is_new=is_new) or grade
    if grade is not None:
        record_grade(session, grade)
    if rubric is None or (grade is not None and grade.status is Status.SKIPPED):
        return None
    reason = Reason.AWAITING_JUDGE if grade is None else grade.reason
    return add(session, rubric, reason=reason, unread=unread, due=_due_at(verdict))


def _update_job(job: JudgeJob, verdict: Grade | None, inputs_sha256: str, unread: str) -> None:
    """Adapt an open job to new evidence. A queued job goes first if the verdict has not read all of it (`unread`). A
    parked job is queued again if it was never tried with these inputs.
    """
    if unread:
        queued = JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED).exclude(unread=unread)
        queued.update(stale=True, unread=unread, backlog=False, next_attempt_at=_due_at(verdict))
    if job.state == JobState.PARKED and not job.attempt_rows.filter(inputs_sha256=inputs_sha256).exists():
        JudgeJob.objects.parked().filter(pk=job.pk).queue_again(next_attempt_at=_due_at(verdict), parked_at=None)


def _on_request_grade(session: Session, grade: SourceGrade | None, *, is_new: bool) -> SourceGrade | None:
    """The grade that says why a session without a verdict is judged only on request: it is a sample, history, or from
    before there was a judge. None for other sessions, and if `grade` names another reason to make no job.
    """
    is_skipped = grade is not None and grade.status is Status.SKIPPED
    why_declined = ""
    if session.is_sample:
        why_declined = SAMPLE
    elif session.history == JudgeChoice.NONE:
        why_declined = HISTORY
    lacks_judge = grade is not None and grade.reason is Reason.NOT_CONFIGURED
    # Declined goes before a missing judge, because it still holds once there is a judge.
    if why_declined and (lacks_judge or not is_skipped):
        return _skipped(Reason.DECLINED, why_declined)
    if not is_skipped and not is_new and came_without_judge(session):
        return _skipped(Reason.NOT_CONFIGURED, NO_JUDGE)
    return None


def came_without_judge(session: Session) -> bool:
    """Whether the session arrived while there was no judge and has had no job since, except cancelled ones.

    The status FAILED is what the sweep writes on sessions that have a job.
    """
    jobs = [job for job in session.judge_jobs.all() if job.purpose == Purpose.VERDICT]
    return all(job.state == JobState.CANCELLED for job in jobs) and any(
        grade.source == Source.JUDGE and grade.reason == Reason.NOT_CONFIGURED and grade.status != Status.FAILED
        for grade in session.grades.all()
    )


def _is_wanted(session: Session, verdict: Grade | None, inputs_sha256: str, unread: str) -> bool:
    """Whether to make a job: there is no verdict, or it has not read some evidence for which no job was made before.

    A verdict without a record of what it read has read exactly its inputs.
    """
    if verdict is None:
        return True
    if verdict.evidence.get("read"):
        earlier_unread = {job.unread for job in session.judge_jobs.all() if job.unread}
        return bool(unread) and unread not in earlier_unread and len(earlier_unread) < MAX_REJUDGED
    # Under any rubric: a person decides whether sessions are judged again by a new one.
    return not session.grades.chain().verdicts().filter(inputs_sha256=inputs_sha256).exists()


def _due_at(verdict: Grade | None) -> dt.datetime:
    """When a job is due: after QUIET if the current verdict has read a log, because the session may go on; else now."""
    read = {} if verdict is None else verdict.evidence.get("read") or {}
    return clock.now() + QUIET if read.get("transcript") else clock.now()


def add(
    session: Session,
    rubric: Rubric,
    *,
    purpose: Purpose = Purpose.VERDICT,
    judge: JudgeRole = JudgeRole.FIRST,
    reason: Reason = Reason.AWAITING_JUDGE,
    backlog: bool | None = None,
    unread: str = "",
    sample: int = 1,
    sample_of: Grade | None = None,
    due: dt.datetime | None = None,
) -> JudgeJob:
    """Create a queued job, and wake a worker once the caller's transaction is committed.

    By default, `backlog` follows from when the session ended. `unread` is the fingerprint of the evidence that a stale
    verdict has not read. For a further reading, `sample` is its number and `sample_of` the first verdict.
    """
    if backlog is None:
        backlog = is_backlog(session, clock.now())
    job = JudgeJob.objects.create(
        session=session,
        rubric=rubric,
        purpose=purpose,
        judge=judge,
        reason=reason,
        stale=bool(unread),
        unread=unread,
        reserved=purpose == Purpose.VERDICT and reserving.is_reserved(session),
        sample=sample,
        sample_of=sample_of,
        next_attempt_at=due or clock.now(),
        backlog=backlog and not unread,
    )
    wake_workers()
    return job


def is_backlog(session: Session, now: dt.datetime) -> bool:
    """Whether the session ended more than JUDGE_NEW_MINUTES ago, so that new sessions go before it."""
    return session.ended_at < now - dt.timedelta(minutes=settings.JUDGE_NEW_MINUTES)


def status_grade(session: Session, *, has_evidence: bool = True, has_rubric: bool = True) -> SourceGrade | None:
    """Why the session cannot be judged now; None if a job simply waits for its turn. SKIPPED means: make no job."""
    if session.outcome in NO_REWARD:
        return _skipped(Reason.INFRASTRUCTURE, "A session without a reward is not judged")
    if ownership.part_of(session) is not None:
        return _skipped(Reason.CARRIED, "A subagent’s session is judged together with the session that started it")
    if not has_evidence:
        return _skipped(Reason.NO_EVIDENCE, "There is no usable transcript, journal, patch or facts to judge")
    if not has_rubric:
        return _skipped(Reason.NOT_CONFIGURED, "No rubric is in force. Put a rubric in force")
    obstacle = quota.obstacle()
    if obstacle is None:
        return None
    if obstacle.reason is Reason.NOT_CONFIGURED:
        return _skipped(obstacle.reason, NO_JUDGE)
    return obstacle_grade(obstacle)


def obstacle_grade(obstacle: quota.Obstacle) -> SourceGrade:
    """The grade of a waiting session while nothing can be judged."""
    return unscored(Source.JUDGE, obstacle.reason, version=VERSION, detail=obstacle.detail, status=Status.FAILED)


def _skipped(reason: Reason, detail: str) -> SourceGrade:
    return unscored(Source.JUDGE, reason, version=VERSION, detail=detail, status=Status.SKIPPED)


def record_grade(session: Session, grade: SourceGrade, *, parallel: bool = False, **identity: Any) -> Grade | None:
    """Append a judge's grade without a score. None if the latest such row has the same status and reason."""
    rows = [row for row in session.grades.all() if row.source == Source.JUDGE and row.parallel == parallel]
    if rows and (rows[-1].status, rows[-1].reason) == (grade.status, grade.reason):
        return None
    return Grade.objects.create(
        session=session,
        source=Source.JUDGE,
        status=grade.status,
        reason=grade.reason,
        detail=grade.detail,
        evidence=dict(grade.evidence),
        version=grade.version,
        parallel=parallel,
        **identity,
    )


def wake_workers() -> None:
    """Wake a worker once the transaction is committed. Without a broker the job waits for the next sweep."""
    from grading.wakeup import publish

    transaction.on_commit(publish)


def read_again(session: Session) -> JudgeJob | None:
    """Make a job for the next of a contested session's three readings, if one is due.

    The readings are made one after the other, and after all other jobs. Runs in the caller's transaction, which settles
    afterwards if there is a job.
    """
    reading = rereading.next_reading(session)
    if reading is None:
        return None
    return add(
        session, reading.rubric, purpose=Purpose.SAMPLE, backlog=True, sample=reading.number, sample_of=reading.first
    )


def after_verdict(session: Session, job: JudgeJob) -> None:
    """Make the jobs that follow a verdict: for evidence that arrived meanwhile, else for further opinions and the next
    reading. Runs in the transaction that stored and settled the verdict.
    """
    if enqueue(session) is not None:
        rewards.settle(session)
        return
    add_further_opinions(session, job)
    if read_again(session) is not None:
        rewards.settle(session)


# --- beside the chain ------------------------------------------------------------------------------------------------


def add_further_opinions(session: Session, job: JudgeJob) -> list[JudgeJob]:
    """Make jobs for a repeat by the same judge, and for a second opinion by another family's model, if the session was
    drawn for them.

    It was drawn when it arrived (`grading.review.shares`), so that order, retries and restarts do not matter.
    """
    if not job.is_first:
        return []
    drawn = shares.for_session(session)
    open_purposes = {other.purpose for other in session.judge_jobs.all() if other.state in OPEN_STATES}
    wanted = [(Purpose.REPEAT, JudgeRole.FIRST, drawn.repeat)]
    if JudgeRole.SECOND in judges.configured():
        wanted.append((Purpose.SECOND, JudgeRole.SECOND, drawn.second))
    return [
        add(session, job.rubric, purpose=purpose, judge=role, backlog=True)
        for purpose, role, chance in wanted
        if chance is not None and purpose not in open_purposes
    ]


# --- what was missed -------------------------------------------------------------------------------------------------


def catch_up() -> int:
    """Make missing jobs for further readings. Where none can be made, recheck the session's review rules. Returns how
    many jobs were made.
    """
    if not quota.is_configured():
        return 0
    count = 0
    for session in rereading.contested_without_reading(clock.now())[:CATCH_UP_LIMIT]:
        with transaction.atomic():
            locked = Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)
            if read_again(locked) is not None:
                rewards.settle(locked)
                count += 1
            else:
                queue.recheck(locked)
    return count


def enqueue_abandoned() -> int:
    """Enqueue sessions whose job an earlier version abandoned. Returns how many."""
    latest = Grade.objects.chain().filter(source=Source.JUDGE, session=OuterRef("pk")).order_by("-pk")
    jobs = JudgeJob.objects.filter(session=OuterRef("pk"), purpose=Purpose.VERDICT)
    sessions = Session.objects.filter(~Exists(jobs.open()), Exists(jobs.filter(state=JobState.ABANDONED)))
    sessions = sessions.annotate(judge_status=Subquery(latest.values("status")[:1])).exclude(judge_status=Status.SCORED)
    count = 0
    for session in sessions[:CATCH_UP_LIMIT]:
        with transaction.atomic():
            locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
            if enqueue(locked) is not None:
                count += 1
            rewards.settle(locked)
    return count
