"""A worker's turn: claim the most urgent job, build its prompt, wait for room, call the judge, apply the answer. No
transaction is open during the call, and nobody sleeps while the quota is closed.
"""

import datetime as dt
import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from grading import clock
from grading.busy import patiently
from grading.days import tomorrow
from grading.evidence import material
from grading.evidence.material import judgeable
from grading.judging import client, enqueuing, inputs, judges, results
from grading.judging.allowance import budget, limiter, quota
from grading.judging.allowance.limiter import Slot
from grading.judging.allowance.quota import Permit
from grading.judging.client import CallOutcome
from grading.judging.core.prompt import Prompt
from grading.judging.core.ratelimits import CallCost
from grading.judging.core.verdict import DeferralScope, Deferred
from grading.judging.core.verdict_score import VERSION
from grading.judging.judges import Judge
from grading.judging.ordering import due_jobs, single_call_jobs
from grading.judging.reader import ReaderLost
from grading.models import ApiToken, JudgeAttempt, JudgeJob, JudgePolicy, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.reward import rereading
from grading.reward.grade import unscored
from grading.vocabulary import Reason, Source, Status
from gradingsite import telemetry

logger = logging.getLogger(__name__)

# The share of the input budget for a prompt that was too large before.
SMALLER = 0.5
# How many of the most urgent jobs a worker tries to claim before it queries again: others want the same ones.
CLAIM_TRIES = 16
PUMP_SECONDS = 10.0
# How long to retry writing the outcome of a call (longer than any lease), in seconds.
PATIENCE = 3600.0
_stopping = threading.Event()
_reading = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A job that the caller has leased, and its judge. `is_probe`: the call is the probe of a closed quota."""

    job: JudgeJob
    judge: Judge
    token: uuid.UUID
    is_probe: bool


class HoldReason(Enum):
    """Why a job's turn ended without a call.

    `NOT_NEEDED`: it needs no call. `NOT_TODAY`: it waits until tomorrow. `NO_ROOM`: all of this judge's jobs wait.
    """

    NOT_NEEDED = "not needed"
    NOT_TODAY = "not today"
    NO_ROOM = "no room"


def pump(*, seconds: float = PUMP_SECONDS) -> int:
    """Judge all jobs that are due, the most urgent first. Returns the number of calls.

    After `seconds` it stops and wakes another worker, so that other messages (such as the sweep) get their turn.
    """
    calls = 0
    without_room: set[JudgeRole] = set()
    deadline = time.monotonic() + seconds
    while not _stopping.is_set():
        turn = claim_next(without=without_room)
        if turn is None:
            break
        with telemetry.about("judge", job=turn.job.pk, session=turn.job.session_id):
            outcome = take_turn(turn)
        if outcome is HoldReason.NO_ROOM:
            without_room.add(turn.judge.role)
        if isinstance(outcome, AttemptOutcome):
            calls += 1
        if time.monotonic() > deadline:
            enqueuing.wake_workers()
            break
    return calls


def stop_pumping() -> None:
    """Stop all pumps of this process after their current call."""
    _stopping.set()


def run(job_id: int) -> AttemptOutcome | None:
    """Judge one job now. None if it could not be claimed or no call was made."""
    turn = claim(job_id)
    outcome = None if turn is None else take_turn(turn)
    return outcome if isinstance(outcome, AttemptOutcome) else None


# --- claiming --------------------------------------------------------------------------------------------------------


def ready_judges(now: dt.datetime) -> dict[JudgeRole, Judge]:
    """The judges that may be called now, by role."""
    return {role: judge for role, judge in judges.configured().items() if quota.is_due(quota.current(judge), now)}


def claim_next(*, without: Collection[JudgeRole] = ()) -> Turn | None:
    """Claim the most urgent job, except those for the judges `without`. None if no job can be claimed."""
    while True:
        now = clock.now()
        roles = [role for role in ready_judges(now) if role not in without]
        job_ids = list(single_call_jobs(now, roles).values_list("pk", flat=True)[:CLAIM_TRIES]) if roles else []
        for job_id in job_ids:
            if (turn := claim(job_id)) is not None:
                return turn
        if len(job_ids) < CLAIM_TRIES:
            return None


def claim(job_id: int) -> Turn | None:
    """Claim a due job by one conditional UPDATE.

    None if it is not due, another worker has it, or its judge's quota does not permit a call.
    """
    now = clock.now()
    job = JudgeJob.objects.select_related("rubric").filter(pk=job_id, state=JobState.QUEUED).first()
    judge = None if job is None else judges.configured().get(JudgeRole(job.judge))
    if job is None or judge is None:
        return None
    token = uuid.uuid4()
    with transaction.atomic():
        mine = due_jobs(now, [judge.role]).filter(pk=job_id)
        until = now + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
        if not mine.update(state=JobState.LEASED, lease_token=token, leased_until=until):
            return None
        permit = quota.take_permit(judge, now)
        if permit is None:
            transaction.set_rollback(True)
            return None
    return Turn(job=job, judge=judge, token=token, is_probe=permit is Permit.PROBE)


# --- a turn ----------------------------------------------------------------------------------------------------------


def take_turn(turn: Turn) -> AttemptOutcome | HoldReason:
    """Judge a claimed job and record the outcome. Returns the outcome, or why no call was made."""
    session = load_session(turn)
    update_rubric(turn.job, session)
    hashes = judgeable(session)
    inputs_sha256 = inputs.inputs_sha256(hashes)
    needless = why_needless(turn, session, hashes, inputs_sha256)
    if needless:
        results.close(turn.job, turn.token, needless)
        _return_probe(turn)
        return HoldReason.NOT_NEEDED
    payer = budget.payer(turn.job, session)
    if payer is not None and budget.remaining_usd(payer, clock.now()) <= 0:
        postpone(turn, payer)
        return HoldReason.NOT_TODAY
    answered = _call_judge(turn, session, payer, inputs_sha256)
    if answered is None:
        return HoldReason.NO_ROOM
    attempt, answer = answered
    telemetry.also(attempt=attempt.pk)
    apply = partial(results.apply, attempt, answer, turn.judge, inputs_sha256=inputs_sha256)
    return patiently(apply, seconds=PATIENCE)


def load_session(turn: Turn) -> Session:
    """The job's session with the rows that its prompt needs, without a lock."""
    sessions = Session.objects.select_related("agent", "category", "harness", "log__part_of", "extracted")
    return sessions.prefetch_related("evidence", "grades").get(pk=turn.job.session_id)


def _call_judge(
    turn: Turn, session: Session, payer: ApiToken | None, inputs_sha256: str
) -> tuple[JudgeAttempt, CallOutcome] | None:
    """The attempt and the outcome of its call. None if nothing could be sent; the job is given back then."""
    shared = limiter.shared()
    # If the prompt's size is known from an earlier turn, reserve before it is built again.
    slot = None
    if turn.job.input_tokens is not None:
        usual = shared.estimate(turn.judge.name, 0)
        slot = _wait_for_slot(turn, CallCost(input_tokens=turn.job.input_tokens, output_tokens=usual.output_tokens))
        if slot is None:
            return None
    columns = {"inputs_sha256": inputs_sha256, "read": inputs.evidence_read(session)}
    attempt, prompt = read_evidence(turn, session, payer, **columns)
    if attempt is None or not isinstance(prompt, Prompt):
        if slot is not None:
            shared.settle(slot, None)
        if attempt is None or not isinstance(prompt, Deferred):
            return None  # `begin_attempt` has given the job back
        _return_probe(turn)
        return attempt, unsent_outcome(prompt)
    if slot is None:
        # The evidence was read: if the worker dies while it waits, the evidence is not the cause.
        mark_as_read = partial(JudgeAttempt.objects.filter(pk=attempt.pk).update, error_type="")
        slot = _wait_for_slot(turn, shared.estimate(turn.judge.name, prompt.characters), before_waiting=mark_as_read)
        if slot is None:
            return None
    if not mark_as_sent(turn, attempt, budget.estimate(turn.judge, slot.cost), prompt_sha256=prompt.sha256):
        shared.settle(slot, None)
        return None  # `mark_as_sent` has given the job back
    outcome = client.send(turn.judge, prompt, turn.job.rubric)
    # The answer may have been paid for, so it is stored before anything else can fail.
    outcome = patiently(partial(results.store_answer, attempt, outcome, turn.judge), seconds=PATIENCE)
    shared.settle(slot, outcome.used(slot.cost, characters=prompt.characters), outcome.limits)
    result = outcome.result
    is_answer = not isinstance(result, Deferred)
    remember_limits = partial(quota.remember_limits, turn.judge, outcome.limits, clock.now(), is_answer=is_answer)
    patiently(remember_limits, seconds=PATIENCE)
    if isinstance(result, Deferred) and result.scope is DeferralScope.PACE and result.retry_at:
        shared.block(turn.judge.name, result.retry_at)
    return attempt, outcome


def unsent_outcome(why: Deferred) -> CallOutcome:
    """The outcome of an attempt whose prompt could not be built."""
    return CallOutcome(result=why, row={"error_type": results.READER_LOST if why.scope is DeferralScope.READER else ""})


def update_rubric(job: JudgeJob, session: Session) -> None:
    """Use the rubric of the session's current kind of work: its category may have changed while the job waited."""
    if job.is_first and job.rubric.kind != session.work:
        rubric = Rubric.objects.active(session.work)
        if rubric is not None:
            job.rubric = rubric
            JudgeJob.objects.filter(pk=job.pk).update(rubric=rubric)


def why_needless(turn: Turn, session: Session, hashes: Mapping[str, str], inputs_sha256: str) -> str:
    """Why no call is needed; empty if a call is needed. `hashes` are the hashes of the evidence, from `judgeable`.

    If evidence has expired and the session has no verdict, a grade records that there will be none.
    """
    if not is_needed(turn, session, inputs_sha256):
        return "its question was answered already"
    expired = material.describe_expired(hashes)
    if expired and not session.grades.verdicts().exists():
        grade = unscored(Source.JUDGE, Reason.NO_EVIDENCE, version=VERSION, status=Status.SKIPPED, detail=expired)
        enqueuing.record_grade(session, grade)
    return expired


def is_needed(turn: Turn, session: Session, inputs_sha256: str) -> bool:
    """Whether the judge has not answered this question yet, or the job's purpose is to ask it again."""
    if turn.job.purpose == Purpose.REPEAT:
        return True
    if turn.job.purpose == Purpose.SAMPLE:
        return rereading.is_wanted(turn.job)
    question = {
        "inputs_sha256": inputs_sha256,
        "rubric": turn.job.rubric.sha256,
        "version": VERSION,
        "model": turn.judge.model,
    }
    answers = [grade for grade in session.grades.all() if grade.answers(**question)]
    routes = (turn.judge.route, turn.judge.batch_route)
    return not any(grade.parallel == turn.job.is_parallel and grade.route in routes for grade in answers)


def read_evidence(
    turn: Turn, session: Session, payer: ApiToken | None, **columns: Any
) -> tuple[JudgeAttempt | None, Prompt | Deferred | None]:
    """Create the attempt, then build the prompt. Both are None if the lease was lost.

    The attempt comes first, because evidence may kill the process that reads it. A worker reads for one job at a time:
    if it dies, the attempt marked READING shows which of its jobs was the cause.
    """
    with _reading:
        attempt = begin_attempt(turn, payer, error_type=results.READING, **columns)
        return attempt, None if attempt is None else prompt_for(turn, session)


def prompt_for(turn: Turn, session: Session) -> Prompt | Deferred:
    """The prompt to send, or why there is none."""
    job = turn.job
    smaller = SMALLER if job.reason == Reason.INPUT_TOO_LARGE else 1.0
    try:
        prompt = inputs.build(
            session,
            job.rubric,
            budget=settings.JUDGE_INPUT_TOKENS,
            smaller=smaller,
            chars_per_token=limiter.shared().characters_per_token(turn.judge.name),
        )
    except ReaderLost as error:
        return Deferred(reason=Reason.UNREADABLE, scope=DeferralScope.READER, detail=str(error))
    except Exception as error:
        logger.exception("the prompt of session %s could not be made", session.pk)
        detail = f"The evidence could not be read: {type(error).__name__}: {error}"
        return Deferred(reason=Reason.UNREADABLE, scope=DeferralScope.JOB, detail=detail[:2000])
    too_large = job.attempt_rows.filter(reason=Reason.INPUT_TOO_LARGE)
    if smaller < 1 and too_large.filter(prompt_sha256=prompt.sha256).exists():
        detail = "The request was too large, and this session's evidence cannot be made smaller"
        return Deferred(reason=Reason.INPUT_TOO_LARGE, scope=DeferralScope.INPUT, detail=detail)
    return prompt


def _wait_for_slot(turn: Turn, cost: CallCost, before_waiting: Callable[[], object] | None = None) -> Slot | None:
    """Reserve a slot and wait for it. If it is not granted, give the job back and return None: it stays first in line.

    `before_waiting` is called before a wait.
    """
    may_take_all = turn.job.reserved or not turn.job.backlog
    spare = 0.0 if may_take_all else JudgePolicy.objects.current().reserved_share
    slot = limiter.shared().reserve(turn.judge.name, cost, spare=spare, who=str(turn.job.pk))
    if not slot.granted:
        give_back(turn, input_tokens=round(cost.input_tokens))
        return None
    if slot.wait:
        if before_waiting is not None:
            before_waiting()
        time.sleep(slot.wait)
    return slot


def give_back(turn: Turn, **columns: object) -> None:
    """Undo a claim before anything was sent: queue the job again with these columns, and delete its attempt."""
    JudgeAttempt.objects.filter(
        job=turn.job, lease_token=turn.token, outcome=AttemptOutcome.RUNNING, estimated_usd=None
    ).delete()
    mine = JudgeJob.objects.filter(pk=turn.job.pk).held_by(turn.token)
    patiently(partial(mine.queue_again, **columns), seconds=PATIENCE)
    _return_probe(turn)


def postpone(turn: Turn, payer: ApiToken) -> None:
    """Let the job wait until midnight, because the token's quota for today is spent, and record that as a grade."""
    until = tomorrow(clock.now())
    give_back(turn, next_attempt_at=until, reason=Reason.BUDGET_SPENT)
    if turn.job.is_first:
        local = timezone.localtime(until)
        detail = (
            f"The token …{payer.hint} has used its ${settings.TOKEN_DAILY_JUDGE_USD:,g} of judging for today. Nothing "
            f"is lost: its sessions are judged from {local:%-d %b %H:%M} {local:%Z} on."
        )
        grade = unscored(Source.JUDGE, Reason.BUDGET_SPENT, version=VERSION, detail=detail, status=Status.FAILED)
        results.record_wait(turn.job, grade)


def _return_probe(turn: Turn) -> None:
    if turn.is_probe:
        quota.return_probe(turn.judge, clock.now())


def begin_attempt(turn: Turn, payer: ApiToken | None, **columns: Any) -> JudgeAttempt | None:
    """Create the attempt with these columns, before the evidence is read.

    None if the lease was lost; the job is given back then.
    """
    with transaction.atomic():
        if JudgeJob.objects.filter(pk=turn.job.pk, state=JobState.LEASED, lease_token=turn.token).exists():
            return JudgeAttempt.objects.create(
                job=turn.job,
                payer=payer,
                lease_token=turn.token,
                started_at=clock.now(),
                judge=turn.judge.role,
                model=turn.judge.model,
                **columns,
            )
    give_back(turn)
    return None


def mark_as_sent(turn: Turn, attempt: JudgeAttempt, usd: float, **columns: Any) -> bool:
    """Right before the call, write its expected cost of `usd` dollars and `columns` in the attempt's row, and renew the
    job's lease.

    Returns False and gives the job back if the budget does not allow the call, the quota closed or the lease was lost.
    """
    with transaction.atomic():
        now = clock.now()
        is_open = turn.is_probe or quota.is_due(quota.current(turn.judge), now)
        if is_open and budget.affords(turn.judge, usd, now):
            # The evidence was read (error_type): if the worker dies from here on, the evidence is not the cause.
            leased = JudgeJob.objects.filter(pk=turn.job.pk).held_by(turn.token)
            mine = JudgeAttempt.objects.filter(pk=attempt.pk, job__in=leased)
            attempt.started_at = clock.now()
            if mine.update(**columns, error_type="", estimated_usd=usd, started_at=attempt.started_at):
                attempt.estimated_usd = usd
                # Reading the evidence, in turn with other jobs, may have taken most of the lease.
                leased.update(leased_until=attempt.started_at + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS))
                return True
    give_back(turn)
    return False
