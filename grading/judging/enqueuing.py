"""Asking for a verdict: a job row, unless one is open or nothing new could come of it (L7)."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery

from grading import clock, review
from grading.evidence import ownership
from grading.evidence.material import judgeable
from grading.judging import inputs, judges
from grading.judging.allowance import quota
from grading.judging.core.verdict_score import VERSION
from grading.models import Grade, JudgeJob, Rubric, Session
from grading.models.judging import OPEN_STATES, JobState, JudgeRole, Purpose
from grading.review import shares
from grading.reward import rereading, reserving, rewards
from grading.reward.grade import SourceGrade, unscored
from grading.vocabulary import NO_REWARD, JudgeChoice, Reason, Source, Status

CAUGHT_UP_AT_ONCE = 200
# Why nobody asks for a verdict by himself.
HISTORY = "Handed in as history, without a verdict; a person can ask for one"
SAMPLE = "A sample is judged only where a person asks for it: calls cost money"
NO_JUDGE = "There was no judge when it came in. With a key, Settings → Judge asks which of these sessions to judge"
# A session that goes on after its verdict is judged again once it has been quiet for this long, at most this often: an
# agent that could ask without limit would stop at the best answer.
QUIET, ASKED_ANEW = dt.timedelta(minutes=30), 3


def enqueue(session: Session, *, is_new: bool = False) -> JudgeJob | None:
    """See to it that the session is judged: a job, unless one is open or its verdict has read what there is to read.

    A session that came in while there was no judge gets no job unless it `is_new`, that is, has new evidence: a person
    chooses which of the others are judged (`judging.earlier`).

    A stale verdict's job goes first, and there is one for each thing that it has not read, whatever comes of it. Runs
    in the caller's transaction, which settles afterwards. Where no job can be made, or it must wait for quota, a judge
    grade says why. Wakes a worker on commit.
    """
    jobs = [job for job in session.judge_jobs.all() if job.state in OPEN_STATES and job.purpose == Purpose.VERDICT]
    open_job = jobs[0] if jobs else None
    held, grades = judgeable(session), list(session.grades.all())
    verdict, unread = rewards.verdict_and_unread([grade for grade in grades if not grade.parallel])
    if open_job is not None and unread:
        queued = session.judge_jobs.filter(pk=open_job.pk, state=JobState.QUEUED).exclude(unread=unread)
        queued.update(stale=True, unread=unread, backlog=False, next_attempt_at=_due(verdict))
    if open_job is not None and open_job.state == JobState.PARKED:
        # What was parked is read again where there is something else to read.
        tried = open_job.attempt_rows.filter(inputs_sha256=inputs.inputs_sha256(held))
        if not tried.exists():
            JudgeJob.objects.parked().filter(pk=open_job.pk).queue_again(next_attempt_at=_due(verdict), parked_at=None)
    if open_job is not None or not _is_wanted(session, verdict, inputs.inputs_sha256(held), unread):
        return open_job
    rubric = Rubric.objects.active(session.work)
    said = status_grade(session, has_evidence=bool(held), has_rubric=rubric is not None)
    unasked = SAMPLE if session.is_sample else HISTORY if session.history == JudgeChoice.NONE else ""
    skipped = said is not None and said.status is Status.SKIPPED
    if unasked and said is not None and said.reason is Reason.NOT_CONFIGURED:
        skipped = False  # a key would not change it
    if unasked and verdict is None and not skipped:
        said = _skipped(Reason.DECLINED, unasked)
    elif not is_new and verdict is None and not skipped and came_without_judge(session):
        said = _skipped(Reason.NOT_CONFIGURED, NO_JUDGE)
    if said is not None:
        _record(session, grades, said)
    if rubric is None or (said is not None and said.status is Status.SKIPPED):
        return None
    reason = Reason.AWAITING_JUDGE if said is None else said.reason
    return add(session, rubric, reason=reason, unread=unread, due=_due(verdict))


def came_without_judge(session: Session) -> bool:
    """Whether the session came in while there was no judge, and none has been asked about it since.

    A job that was called off asks nobody. FAILED is what the sweep writes on sessions that have a job.
    """
    jobs = [job for job in session.judge_jobs.all() if job.purpose == Purpose.VERDICT]
    return all(job.state == JobState.CANCELLED for job in jobs) and any(
        grade.source == Source.JUDGE and grade.reason == Reason.NOT_CONFIGURED and grade.status != Status.FAILED
        for grade in session.grades.all()
    )


def _is_wanted(session: Session, verdict: Grade | None, inputs_sha256: str, unread: str) -> bool:
    """Whether to ask for a verdict: there is none; or it has not read something for which nobody has been asked yet.

    A verdict of which it is not known what it read counts for exactly the files that it was given on.
    """
    if verdict is None:
        return True
    if verdict.evidence.get("read"):
        asked = {job.unread for job in session.judge_jobs.all() if job.unread}
        return bool(unread) and unread not in asked and len(asked) < ASKED_ANEW
    return not is_judged(session, inputs_sha256)


def _due(verdict: Grade | None) -> dt.datetime:
    """When a verdict may be asked for. One that has read a log waits until its session has been quiet: it may go on."""
    read = {} if verdict is None else verdict.evidence.get("read") or {}
    return clock.now() + (QUIET if read.get("transcript") else dt.timedelta(0))


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
    """A queued job, and a wakeup once the caller's transaction is committed.

    `backlog` None: by how long ago the session ended. `unread`: the fingerprint of what a stale verdict has not read;
    such a job goes first, and after those the ones of sessions that were drawn to speak for their arm's abstentions.
    `sample` and `sample_of` are a further reading's number and first verdict.
    """
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
        backlog=not unread and (is_backlog(session, clock.now()) if backlog is None else backlog),
    )
    wake_workers()
    return job


def is_backlog(session: Session, now: dt.datetime) -> bool:
    """Whether new sessions go before it: it ended longer ago than JUDGE_NEW_MINUTES."""
    return session.ended_at < now - dt.timedelta(minutes=settings.JUDGE_NEW_MINUTES)


def status_grade(session: Session, *, has_evidence: bool = True, has_rubric: bool = True) -> SourceGrade | None:
    """What to say of a session before anything is asked; None where a job simply waits for its turn.

    `skipped` means that there is no job to make now.
    """
    if (needless := _why_not(session, has_evidence=has_evidence, has_rubric=has_rubric)) is not None:
        return needless
    obstacle = quota.obstacle()
    if obstacle is None:
        return None
    if obstacle.reason is Reason.NOT_CONFIGURED:
        return _skipped(obstacle.reason, NO_JUDGE)
    return held_up(obstacle)


def _why_not(session: Session, *, has_evidence: bool, has_rubric: bool) -> SourceGrade | None:
    """Why there is nothing to ask of this session; None where there is."""
    if session.outcome in NO_REWARD:
        return _skipped(Reason.INFRASTRUCTURE, "A session without a reward is not judged")
    if ownership.part_of(session) is not None:
        return _skipped(Reason.CARRIED, "A subagent's session is judged with the one that started it")
    if not has_evidence:
        return _skipped(Reason.NO_EVIDENCE, "Nothing to read: no usable transcript, journal, patch or facts")
    if not has_rubric:
        return _skipped(Reason.NOT_CONFIGURED, "No rubric is active; activate one")
    return None


def held_up(obstacle: quota.Obstacle) -> SourceGrade:
    """What a session says while something keeps everybody from being judged."""
    return unscored(Source.JUDGE, obstacle.reason, version=VERSION, detail=obstacle.detail, status=Status.FAILED)


def _skipped(reason: Reason, detail: str) -> SourceGrade:
    return unscored(Source.JUDGE, reason, version=VERSION, detail=detail, status=Status.SKIPPED)


def record(session: Session, said: SourceGrade, *, parallel: bool = False, **identity: Any) -> Grade | None:
    """Append what a judge says without a score, where it does not say so already."""
    return _record(session, list(session.grades.all()), said, parallel=parallel, **identity)


def _record(
    session: Session, grades: Iterable[Grade], said: SourceGrade, *, parallel: bool = False, **identity: Any
) -> Grade | None:
    """As `record`, for a session with these grades."""
    rows = [row for row in grades if row.source == Source.JUDGE and row.parallel == parallel]
    if rows and (rows[-1].status, rows[-1].reason) == (said.status, said.reason):
        return None
    made = Grade(
        session=session,
        source=Source.JUDGE,
        status=said.status,
        reason=said.reason,
        detail=said.detail,
        evidence=dict(said.evidence),
        version=said.version,
        parallel=parallel,
        **identity,
    )
    made.save(force_insert=True)
    return made


def is_judged(session: Session, inputs_sha256: str) -> bool:
    """Whether a verdict on exactly these inputs is there, under whatever rubric: a new rubric makes it stale, and a
    person decides whether that is worth asking again.
    """
    return session.grades.chain().verdicts().filter(inputs_sha256=inputs_sha256).exists()


def wake_workers() -> None:
    """Tell a worker once this transaction is committed. A dead broker costs a log line and one sweep, nothing else."""
    from grading.wakeup import publish

    transaction.on_commit(publish)


def read_again(session: Session) -> JudgeJob | None:
    """See to it that the judge reads the session once more, where its verdict matters more than usual.

    One reading after the other, behind everything else that waits. Runs in the caller's transaction, which settles
    afterwards where there is a job.
    """
    coming = rereading.next_reading(session)
    if coming is None:
        return None
    return add(
        session, coming.rubric, purpose=Purpose.SAMPLE, backlog=True, sample=coming.number, sample_of=coming.first
    )


def after_verdict(session: Session, job: JudgeJob) -> None:
    """Evidence that came in while the judge was reading is judged too; where it matters the judge reads again what it
    has read; and some sessions get further opinions. In the transaction that gave the verdict of this job, and settled.
    """
    if enqueue(session) is not None:
        rewards.settle(session)
        return
    further_opinions(session, job)
    if read_again(session) is not None:
        rewards.settle(session)


# --- beside the chain ------------------------------------------------------------------------------------------------


def further_opinions(session: Session, job: JudgeJob) -> list[JudgeJob]:
    """After a verdict: the same judge once more, and another family's opinion, for fixed shares of all sessions.

    Drawn when the session arrived (`grading.review.shares`), so that neither order, retry nor restart changes who is
    chosen, and nobody chooses it.
    """
    if not job.is_first:
        return []
    drawn = shares.for_session(session)
    coming = {each.purpose for each in session.judge_jobs.all() if each.state in OPEN_STATES}
    wanted = [(Purpose.REPEAT, JudgeRole.FIRST, drawn.repeat)]
    if judges.second() is not None:
        wanted.append((Purpose.SECOND, JudgeRole.SECOND, drawn.second))
    return [
        add(session, job.rubric, purpose=purpose, judge=role, backlog=True)
        for purpose, role, chance in wanted
        if chance is not None and purpose not in coming
    ]


# --- what was missed -------------------------------------------------------------------------------------------------


def catch_up(limit: int = CAUGHT_UP_AT_ONCE) -> int:
    """Ask for the readings that nobody has asked for; where none can be asked for, people are told. How many jobs."""
    if not quota.is_configured():
        return 0
    count = 0
    for session in rereading.contested_without_reading(clock.now())[:limit]:
        with transaction.atomic():
            locked = Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)
            if read_again(locked) is not None:
                rewards.settle(locked)
                count += 1
            else:
                review.recheck(locked)
    return count


def take_up_abandoned(limit: int = CAUGHT_UP_AT_ONCE) -> int:
    """Enqueue sessions whose job an earlier version gave up; how many."""
    latest = Grade.objects.chain().filter(source=Source.JUDGE, session=OuterRef("pk")).order_by("-pk")
    jobs = JudgeJob.objects.filter(session=OuterRef("pk"), purpose=Purpose.VERDICT)
    sessions = Session.objects.filter(~Exists(jobs.open()), Exists(jobs.filter(state=JobState.ABANDONED)))
    sessions = sessions.annotate(judge_status=Subquery(latest.values("status")[:1])).exclude(judge_status=Status.SCORED)
    count = 0
    for session in sessions[:limit]:
        with transaction.atomic():
            locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
            count += enqueue(locked) is not None
            rewards.settle(locked)
    return count
