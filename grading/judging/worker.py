"""A worker's turn: claim the most urgent job, build its prompt, wait for room, ask, apply. No transaction is open
while the judge is asked, and nobody sleeps on quota.
"""

import datetime as dt
import logging
import threading
import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random, SystemRandom
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

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
from grading.judging.lanes import due, one_by_one
from grading.models import JudgeAttempt, JudgeJob, JudgePolicy, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.reward import rereading, rewards
from grading.vocabulary import Reason

logger = logging.getLogger(__name__)

SMALLER = 0.5
# How many of the most urgent jobs a worker tries for before it looks again: others want the same ones.
CONTENDED = 16
PUMP_SECONDS = 10.0
_stopping = threading.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A job whose lease is the caller's, and the judge to ask. `probes` where the quota lets one call through."""

    job: JudgeJob
    judge: Judge
    token: uuid.UUID
    probes: bool


class HoldReason(Enum):
    """Why a turn ended without a call: the job needs none, or this judge's jobs have to wait."""

    NOT_NEEDED = "not needed"
    NO_ROOM = "no room"


def pump(*, rng: Random | None = None, seconds: float = PUMP_SECONDS) -> int:
    """Judge whatever may be judged now, the most urgent first, until nothing is left or must wait. How many calls.

    After so many seconds it wakes another worker; the other messages, the sweep's among them, come first.
    """
    calls, waiting, enough = 0, set[JudgeRole](), time.monotonic() + seconds
    while not _stopping.is_set() and (turn := claim_next(without=waiting)) is not None:
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
        now = timezone.now()
        roles = [role for role in ready(now) if role not in without]
        wanted = list(one_by_one(now, roles).values_list("pk", flat=True)[:CONTENDED]) if roles else []
        for job_id in wanted:
            if (turn := claim(job_id)) is not None:
                return turn
        if len(wanted) < CONTENDED:
            return None


def claim(job_id: int) -> Turn | None:
    """Take a due job by one conditional UPDATE, if its judge's quota permits. None for everybody else."""
    now = timezone.now()
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
    session = Session.objects.with_people().get(pk=turn.job.session_id)
    ask_by_its_kind(turn.job, session)
    inputs_sha256 = inputs.inputs_sha256(judgeable(session))
    if not is_needed(turn, session, inputs_sha256):
        results.close(turn.job, turn.token, "its question was answered already")
        _return_probe(turn)
        return HoldReason.NOT_NEEDED
    asked = _ask(turn, session)
    if asked is None:
        return HoldReason.NO_ROOM
    attempt, answer = asked
    outcome = results.apply(attempt, answer, turn.judge, inputs_sha256=inputs_sha256, rng=rng)
    if outcome is AttemptOutcome.GRADED:
        afterwards(turn.job)
    return outcome


def _ask(turn: Turn, session: Session) -> tuple[JudgeAttempt, CallOutcome] | None:
    """The call and its attempt; None where nothing may be sent now, and the job was given back."""
    shared = limiter.shared()
    # A prompt that was built before is not built again only to hear that there is no room yet.
    slot = None
    if turn.job.input_tokens is not None:
        usual = shared.estimate(turn.judge.name, 0)
        slot = _room(turn, CallCost(input_tokens=turn.job.input_tokens, output_tokens=usual.output_tokens))
        if slot is None:
            return None
    read = inputs.shown(session)
    prompt = prompt_for(turn, session)
    if isinstance(prompt, Deferred):
        attempt = begin(turn)
        if slot is not None:
            shared.settle(slot, None)
        return None if attempt is None else (attempt, CallOutcome(result=prompt))
    slot = slot or _room(turn, shared.estimate(turn.judge.name, prompt.characters))
    if slot is None:
        return None
    attempt = begin(turn, usd=budget.estimate(turn.judge, slot.cost), prompt=prompt, read=read)
    if attempt is None:
        shared.settle(slot, None)
        return None
    answer = client.ask(turn.judge, prompt, turn.job.rubric)
    # The limiter hears what the call really took, and what the provider says is left.
    shared.settle(slot, answer.used(slot.cost, characters=prompt.characters), answer.limits)
    quota.remember_limits(turn.judge, answer.limits, timezone.now())
    if isinstance(answer.result, Deferred) and answer.result.scope is DeferralScope.PACE and answer.result.retry_at:
        shared.hold(turn.judge.name, answer.result.retry_at)
    return attempt, answer


def ask_by_its_kind(job: JudgeJob, session: Session) -> None:
    """A session whose category was named or changed while it waited is judged by the rubric for what it is now."""
    if job.is_first and job.rubric.kind != session.work:
        rubric = Rubric.objects.active(session.work)
        if rubric is not None:
            job.rubric = rubric
            JudgeJob.objects.filter(pk=job.pk).update(rubric=rubric)


def is_needed(turn: Turn, session: Session, inputs_sha256: str) -> bool:
    """Unchanged inputs under the same identity are not paid for twice, unless that is what the job is for."""
    if turn.job.purpose == Purpose.REPEAT:
        return True
    if turn.job.purpose == Purpose.SAMPLE:
        return rereading.is_wanted(turn.job)
    answers = session.grades.answering(
        inputs_sha256=inputs_sha256, rubric=turn.job.rubric.sha256, version=VERSION, model=turn.judge.model
    )
    routes = [turn.judge.route, turn.judge.batch_route]
    return not answers.filter(parallel=turn.job.is_parallel, route__in=routes).exists()


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
    except Exception as error:
        logger.exception("the prompt of session %s could not be made", session.pk)
        detail = f"The evidence could not be read: {type(error).__name__}: {error}"
        return Deferred(reason=Reason.UNREADABLE, scope=DeferralScope.JOB, detail=detail[:2000])
    too_large = job.attempt_rows.filter(reason=Reason.INPUT_TOO_LARGE)
    if smaller < 1 and too_large.filter(prompt_sha256=prompt.sha256).exists():
        detail = "The request was too large, and this session's evidence cannot be made smaller"
        return Deferred(reason=Reason.INPUT_TOO_LARGE, scope=DeferralScope.INPUT, detail=detail)
    return prompt


def _room(turn: Turn, cost: CallCost) -> Slot | None:
    """Wait for the limiter, if it isn't long; else give the job back untouched, so that it stays the first in line."""
    may_take_all = turn.job.reserved or not turn.job.backlog
    spare = 0.0 if may_take_all else JudgePolicy.objects.current().reserved_share
    slot = limiter.shared().reserve(turn.judge.name, cost, spare=spare, who=str(turn.job.pk))
    if not slot.granted:
        give_back(turn, input_tokens=round(cost.input_tokens))
        return None
    time.sleep(slot.wait)
    return slot


def give_back(turn: Turn, **columns: object) -> None:
    """Undo a claim: nothing was sent."""
    JudgeJob.objects.filter(pk=turn.job.pk).held_by(turn.token).queue_again(**columns)
    _return_probe(turn)


def _return_probe(turn: Turn) -> None:
    if turn.probes:
        quota.return_probe(turn.judge, timezone.now())


def begin(
    turn: Turn, *, usd: float | None = None, prompt: Prompt | None = None, read: Mapping[str, Any] | None = None
) -> JudgeAttempt | None:
    """The attempt's row, written before the call; `read` is what the evidence in the prompt shows.

    None, and the job given back, where the quota closed meanwhile, the budget does not bear the call, or the lease was
    lost.
    """
    now = timezone.now()
    with transaction.atomic():
        leased = JudgeJob.objects.filter(pk=turn.job.pk).held_by(turn.token)
        may_ask = turn.probes or quota.is_due(quota.current(turn.judge), now)
        if leased.exists() and may_ask and (usd is None or budget.affords(turn.judge, usd, now)):
            return JudgeAttempt.objects.create(
                job=turn.job,
                lease_token=turn.token,
                started_at=now,
                judge=turn.judge.role,
                model=turn.judge.model,
                prompt_sha256="" if prompt is None else prompt.sha256,
                estimated_usd=usd,
                read=read or {},
            )
    give_back(turn)
    return None


def afterwards(job: JudgeJob) -> None:
    """Evidence that came in while the judge was reading is judged too; where it matters the judge reads again what it
    has read; and some sessions get further opinions.
    """
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=job.session_id)
        if enqueuing.enqueue(session) is not None:
            rewards.settle(session)
            return
        enqueuing.further_opinions(job)
        if enqueuing.read_again(session) is not None:
            rewards.settle(session)
