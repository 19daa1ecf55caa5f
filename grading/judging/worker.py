"""A worker's turn: claim the most urgent job, build its prompt, wait for room, ask, apply. No transaction is open
while the judge is asked, and nobody sleeps on quota.
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
from random import Random, SystemRandom
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
from grading.judging.ordering import due, one_by_one
from grading.judging.reader import ReaderLost
from grading.models import ApiToken, JudgeAttempt, JudgeJob, JudgePolicy, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.reward import rereading
from grading.reward.grade import unscored
from grading.vocabulary import Reason, Source, Status
from gradingsite import telemetry

logger = logging.getLogger(__name__)

SMALLER = 0.5
# How many of the most urgent jobs a worker tries for before it looks again: others want the same ones.
CONTENDED = 16
PUMP_SECONDS = 10.0
# How long to try to write down what came of a call, longer than any lease; and to give back what was not used.
PATIENCE = 3600.0
_stopping = threading.Event()
_reading = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A job whose lease is the caller's, and the judge to ask. `probes` where the quota lets one call through."""

    job: JudgeJob
    judge: Judge
    token: uuid.UUID
    probes: bool


class HoldReason(Enum):
    """Why a turn ended without a call: the job needs none, it or all of this judge's jobs have to wait."""

    NOT_NEEDED = "not needed"
    NOT_TODAY = "not today"
    NO_ROOM = "no room"


def pump(*, rng: Random | None = None, seconds: float = PUMP_SECONDS) -> int:
    """Judge whatever may be judged now, the most urgent first, until nothing is left or must wait. How many calls.

    After these seconds it wakes another worker; the other messages, the sweep's among them, come first.
    """
    calls, waiting, enough = 0, set[JudgeRole](), time.monotonic() + seconds
    while not _stopping.is_set() and (turn := claim_next(without=waiting)) is not None:
        with telemetry.about("judge", job=turn.job.pk, session=turn.job.session_id):
            outcome = take_turn(turn, rng or SystemRandom())
        if outcome is HoldReason.NO_ROOM:
            waiting.add(turn.judge.role)
        calls += isinstance(outcome, AttemptOutcome)
        if time.monotonic() > enough:
            enqueuing.wake_workers()
            break
    return calls


def stop_pumping() -> None:
    """The process is to end: its pumps finish the call that is under way and claim nothing more."""
    _stopping.set()


def run(job_id: int, *, rng: Random | None = None) -> AttemptOutcome | None:
    """Judge one job now. None where it was not to be had, or the judge was not asked."""
    turn = claim(job_id)
    outcome = None if turn is None else take_turn(turn, rng or SystemRandom())
    return outcome if isinstance(outcome, AttemptOutcome) else None


# --- claiming --------------------------------------------------------------------------------------------------------


def ready(now: dt.datetime) -> dict[JudgeRole, Judge]:
    """The judges that may be asked now."""
    return {role: judge for role, judge in judges.configured().items() if quota.is_due(quota.current(judge), now)}


def claim_next(*, without: Collection[JudgeRole] = ()) -> Turn | None:
    """The most urgent job that nobody else has; None where there is none."""
    while True:
        now = clock.now()
        roles = [role for role in ready(now) if role not in without]
        wanted = list(one_by_one(now, roles).values_list("pk", flat=True)[:CONTENDED]) if roles else []
        for job_id in wanted:
            if (turn := claim(job_id)) is not None:
                return turn
        if len(wanted) < CONTENDED:
            return None


def claim(job_id: int) -> Turn | None:
    """Take a due job by one conditional UPDATE, if its judge's quota permits. None for everybody else."""
    now = clock.now()
    job = JudgeJob.objects.select_related("rubric").filter(pk=job_id, state=JobState.QUEUED).first()
    judge = None if job is None else judges.configured().get(JudgeRole(job.judge))
    if job is None or judge is None:
        return None
    token = uuid.uuid4()
    with transaction.atomic():
        mine = due(now, [judge.role]).filter(pk=job_id)
        until = now + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
        if not mine.update(state=JobState.LEASED, lease_token=token, leased_until=until):
            return None
        permit = quota.take(judge, now)
        if permit is None:
            transaction.set_rollback(True)
            return None
    return Turn(job=job, judge=judge, token=token, probes=permit is Permit.PROBE)


# --- a turn ----------------------------------------------------------------------------------------------------------


def take_turn(turn: Turn, rng: Random) -> AttemptOutcome | HoldReason:
    """From a claimed job to what came of asking, all on record."""
    session = session_of(turn)
    ask_by_its_kind(turn.job, session)
    held = judgeable(session)
    inputs_sha256 = inputs.inputs_sha256(held)
    if needless := why_needless(turn, session, held, inputs_sha256):
        results.close(turn.job, turn.token, needless)
        _return_probe(turn)
        return HoldReason.NOT_NEEDED
    payer = budget.payer(turn.job, session)
    if payer is not None and budget.left_of(payer, clock.now()) <= 0:
        postpone(turn, payer)
        return HoldReason.NOT_TODAY
    asked = _ask(turn, session, payer, inputs_sha256)
    if asked is None:
        return HoldReason.NO_ROOM
    attempt, answer = asked
    telemetry.also(attempt=attempt.pk)
    said = partial(results.apply, attempt, answer, turn.judge, inputs_sha256=inputs_sha256, rng=rng)
    return patiently(said, seconds=PATIENCE)


def session_of(turn: Turn) -> Session:
    """The job's session with what building its prompt asks for, as all of it is now: nobody locks it for that."""
    sessions = Session.objects.select_related("agent", "category", "harness", "log__part_of", "extracted")
    return sessions.prefetch_related("evidence", "grades").get(pk=turn.job.session_id)


def _ask(
    turn: Turn, session: Session, payer: ApiToken | None, inputs_sha256: str
) -> tuple[JudgeAttempt, CallOutcome] | None:
    """The call and its attempt; None where nothing may be sent now, and the job was given back."""
    shared = limiter.shared()
    # A prompt that was built before is not built again only to hear that there is no room yet.
    slot = None
    if turn.job.input_tokens is not None:
        usual = shared.estimate(turn.judge.name, 0)
        slot = _room(turn, CallCost(input_tokens=turn.job.input_tokens, output_tokens=usual.output_tokens))
        if slot is None:
            return None
    attempt, prompt = read_evidence(turn, session, payer, inputs_sha256=inputs_sha256, read=inputs.shown(session))
    if attempt is not None and isinstance(prompt, Prompt):
        if slot is None:
            # It was read: whatever becomes of the worker while it waits is not the evidence's fault.
            was_read = partial(JudgeAttempt.objects.filter(pk=attempt.pk).update, error_type="")
            slot = _room(turn, shared.estimate(turn.judge.name, prompt.characters), before_waiting=was_read)
        if slot is None:
            return None
        if may_send(turn, attempt, budget.estimate(turn.judge, slot.cost), prompt_sha256=prompt.sha256):
            return attempt, _call(turn, attempt, prompt, slot)
    if slot is not None:
        shared.settle(slot, None)
    if attempt is None or not isinstance(prompt, Deferred):
        return None
    _return_probe(turn)
    return attempt, unsent(prompt)


def _call(turn: Turn, attempt: JudgeAttempt, prompt: Prompt, slot: Slot) -> CallOutcome:
    """The call, its answer on record; and what it teaches of the provider's allowance."""
    shared = limiter.shared()
    answer = client.ask(turn.judge, prompt, turn.job.rubric)
    # It may have been paid for: it is on record before anything else can go wrong.
    answer = patiently(partial(results.keep, attempt, answer, turn.judge), seconds=PATIENCE)
    # The limiter hears what the call really took, and what the provider says is left.
    shared.settle(slot, answer.used(slot.cost, characters=prompt.characters), answer.limits)
    is_answer = not isinstance(answer.result, Deferred)
    remember = partial(quota.remember_limits, turn.judge, answer.limits, clock.now(), is_answer=is_answer)
    patiently(remember, seconds=PATIENCE)
    if isinstance(answer.result, Deferred) and answer.result.scope is DeferralScope.PACE and answer.result.retry_at:
        shared.hold(turn.judge.name, answer.result.retry_at)
    return answer


def unsent(why: Deferred) -> CallOutcome:
    """The outcome of an attempt for which there was nothing to send."""
    return CallOutcome(result=why, row={"error_type": results.READER_LOST if why.scope is DeferralScope.READER else ""})


def ask_by_its_kind(job: JudgeJob, session: Session) -> None:
    """A session whose category was named or changed while it waited is judged by the rubric for what it is now."""
    if job.is_first and job.rubric.kind != session.work:
        rubric = Rubric.objects.active(session.work)
        if rubric is not None:
            job.rubric = rubric
            JudgeJob.objects.filter(pk=job.pk).update(rubric=rubric)


def why_needless(turn: Turn, session: Session, held: Mapping[str, str], inputs_sha256: str) -> str:
    """Why no call is needed, in words; empty where one is. Evidence that is gone, of the `judgeable` that the session
    holds, is on record as the reason why there will be no verdict, where there is none.
    """
    if not is_needed(turn, session, inputs_sha256):
        return "its question was answered already"
    lost = material.describe_expired(held)
    if lost and not session.grades.verdicts().exists():
        said = unscored(Source.JUDGE, Reason.NO_EVIDENCE, version=VERSION, status=Status.SKIPPED, detail=lost)
        enqueuing.record(session, said)
    return lost


def is_needed(turn: Turn, session: Session, inputs_sha256: str) -> bool:
    """Unchanged inputs under the same identity are not paid for twice, unless that is what the job is for."""
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
    said = [grade for grade in session.grades.all() if grade.answers(**question)]
    routes = (turn.judge.route, turn.judge.batch_route)
    return not any(grade.parallel == turn.job.is_parallel and grade.route in routes for grade in said)


def read_evidence(
    turn: Turn, session: Session, payer: ApiToken | None, **columns: Any
) -> tuple[JudgeAttempt | None, Prompt | Deferred | None]:
    """`begin`, then `prompt_for`: the row comes first, so that evidence that kills whoever reads it leaves a trace.

    One at a time in a worker and marked as such: if the worker dies, it is known over which of its jobs.
    """
    with _reading:
        attempt = begin(turn, payer, error_type=results.READING, **columns)
        return attempt, None if attempt is None else prompt_for(turn, session)


def prompt_for(turn: Turn, session: Session) -> Prompt | Deferred:
    """What to send, or why nothing can be."""
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


def _room(turn: Turn, cost: CallCost, before_waiting: Callable[[], object] | None = None) -> Slot | None:
    """Wait for the limiter, if it isn't long; else give the job back untouched, so that it stays the first in line."""
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
    """Undo a claim: nothing was sent, so that an attempt that had begun was none."""
    JudgeAttempt.objects.filter(
        job=turn.job, lease_token=turn.token, outcome=AttemptOutcome.RUNNING, estimated_usd=None
    ).delete()
    mine = JudgeJob.objects.filter(pk=turn.job.pk).held_by(turn.token)
    patiently(partial(mine.queue_again, **columns), seconds=PATIENCE)
    _return_probe(turn)


def postpone(turn: Turn, payer: ApiToken) -> None:
    """The token's quota for today is spent: the job waits for midnight, and its session says so."""
    until = tomorrow(clock.now())
    give_back(turn, next_attempt_at=until, reason=Reason.BUDGET_SPENT)
    if turn.job.is_first:
        local = timezone.localtime(until)
        detail = (
            f"The token …{payer.hint} has used its ${settings.TOKEN_DAILY_JUDGE_USD:,g} of judging for today. Nothing "
            f"is lost: its sessions are judged from {local:%-d %b %H:%M} {local:%Z} on."
        )
        results.note(
            turn.job, unscored(Source.JUDGE, Reason.BUDGET_SPENT, version=VERSION, detail=detail, status=Status.FAILED)
        )


def _return_probe(turn: Turn) -> None:
    if turn.probes:
        quota.return_probe(turn.judge, clock.now())


def begin(turn: Turn, payer: ApiToken | None, **columns: Any) -> JudgeAttempt | None:
    """The attempt's row with these columns, written before the evidence is read.

    None, and the job given back, where the lease was lost meanwhile.
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


def may_send(turn: Turn, attempt: JudgeAttempt, usd: float, **columns: Any) -> bool:
    """Whether its prompt, at this expected cost, may be sent: then the attempt says so before it is, and these
    columns.

    Else, because the budget does not bear it, the quota closed meanwhile or the lease was lost, the job is given back,
    and the attempt was none.
    """
    with transaction.atomic():
        now = clock.now()
        is_open = turn.probes or quota.is_due(quota.current(turn.judge), now)
        if is_open and budget.affords(turn.judge, usd, now):
            # Only while the lease is the caller's. The evidence was read: what becomes of the worker is not its fault.
            leased = JudgeJob.objects.filter(pk=turn.job.pk).held_by(turn.token)
            mine = JudgeAttempt.objects.filter(pk=attempt.pk, job__in=leased)
            if mine.update(**columns, error_type="", estimated_usd=usd, started_at=clock.now()):
                attempt.estimated_usd = usd
                return True
    give_back(turn)
    return False
