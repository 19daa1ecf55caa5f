"""The backlog at half price: many calls sent as one batch, answered within a day (the setting `use_batches`).

backlog ─► lease ─► prompts to a file ─► batch and attempt rows, jobs SENT ─► create ─► poll ─► results.apply
                                                                                │
                          no answer: looked up in the provider's list, or else lost and queued again
"""

import datetime as dt
import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import F

from grading import clock
from grading.evidence.material import judgeable
from grading.judging import batch_api, client, inputs, judges, ordering, results, worker
from grading.judging.allowance import budget, limiter, quota
from grading.judging.batch_api import BatchApiError
from grading.judging.client import CallOutcome
from grading.judging.core import api_errors
from grading.judging.core.batch import pack, poll_gap, unpack
from grading.judging.core.verdict import DeferralScope, Deferred
from grading.judging.judges import Judge
from grading.judging.worker import Turn
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob, JudgePolicy, Session
from grading.models.judging import AttemptOutcome, BatchState, JobState, JudgeRole
from grading.plain import plain_text
from grading.vocabulary import Reason

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatchIndividualResponse

logger = logging.getLogger(__name__)

# Well below the provider's limits (100,000 and 256 MB).
MAX_REQUESTS, MAX_BYTES = 10_000, 200_000_000
CHUNK_SIZE = 500
# The provider ends a batch within MAX_AGE; GRACE later it is given up.
MAX_AGE, GRACE = dt.timedelta(hours=24), dt.timedelta(hours=2)
# While results are applied, `polled_at` is renewed after this many, so that no other worker polls the batch.
RENEW_EVERY = 50
# The most by which the provider's clock and ours may differ.
CLOCK_SKEW = dt.timedelta(minutes=2)
MAY_BE_PAID = "It may have been paid for."


def poll_and_send() -> None:
    """Apply the results of sent batches, then send the backlog. Runs on the schedule."""
    poll()
    send()


# --- sending ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class BatchDraft:
    """A batch before it is sent: its unsaved `attempts`, and their requests as JSON in `body`.

    `usd` is their expected cost in dollars, and `usd_by_payer` is that cost by the primary key of the token that pays.
    `refused_usd` is the cost of the request that today's budget did not allow, None if it allowed all.
    """

    body: IO[bytes]
    attempts: list[JudgeAttempt] = field(default_factory=list)
    usd: float = 0.0
    usd_by_payer: dict[int | None, float] = field(default_factory=lambda: defaultdict(float))
    refused_usd: float | None = None

    def add(self, attempt: JudgeAttempt, request: bytes) -> None:
        separator = b"," if self.attempts else b""
        self.body.write(separator + request)
        self.attempts.append(attempt)
        self.usd += attempt.estimated_usd or 0.0
        self.usd_by_payer[attempt.payer_id] += attempt.estimated_usd or 0.0

    def lease_tokens(self) -> Iterator[list[uuid.UUID]]:
        """The lease tokens of the attempts, in chunks for SQL."""
        for start in range(0, len(self.attempts), CHUNK_SIZE):
            yield [attempt.lease_token for attempt in self.attempts[start : start + CHUNK_SIZE]]


def send() -> int:
    """Send the backlog of every judge that takes batches now. Returns how many requests were accepted."""
    ready = worker.ready_judges(clock.now())
    sent = 0
    for role in ordering.batched_roles(clock.now(), list(ready)):
        judge = ready[role]
        with TemporaryFile(dir=settings.STATE_DIR) as body:
            draft = draft_batch(judge, body)
            is_enough = draft.refused_usd is not None or len(draft.attempts) >= settings.JUDGE_BATCH_LEAST
            batch = record_batch(judge, draft) if is_enough else None
            if batch is None:
                for tokens in draft.lease_tokens():
                    JudgeJob.objects.held_by(*tokens).queue_again()
                continue
            if draft.refused_usd is not None:
                # The budget does not allow this call, so `affords` closes the quota until midnight.
                with transaction.atomic():
                    budget.affords(judge, draft.refused_usd, clock.now())
            if send_batch(judge, batch, body):
                sent += len(draft.attempts)
    return sent


def draft_batch(judge: Judge, body: IO[bytes]) -> BatchDraft:
    """Lease backlog jobs and write their requests to `body`, until the batch is full, the budget is spent or half of
    the lease is over.
    """
    draft = BatchDraft(body=body)
    started_at = time.monotonic()
    limit = JudgePolicy.objects.current().daily_budget_usd
    remaining_usd = None if limit is None else limit - budget.spent_today(clock.now())
    body.write(b'{"requests":[')
    backlog = ordering.batch_jobs(clock.now(), judge.role).values_list("pk", flat=True)[:MAX_REQUESTS]
    for job_id in list(backlog):
        turn = worker.claim(job_id)
        if turn is None:
            continue
        prepared = prepare_request(turn, draft)
        if prepared is not None:
            attempt, request = prepared
            usd = attempt.estimated_usd or 0.0
            exceeds_budget = remaining_usd is not None and draft.usd + usd > remaining_usd
            exceeds_size = body.tell() + len(request) > MAX_BYTES
            if exceeds_budget:
                draft.refused_usd = usd
            if exceeds_budget or exceeds_size:
                worker.give_back(turn)
                break
            draft.add(attempt, request)
        if time.monotonic() - started_at > settings.JUDGE_LEASE_SECONDS / 2:
            break
    body.write(b"]}")
    return draft


def prepare_request(turn: Turn, draft: BatchDraft) -> tuple[JudgeAttempt, bytes] | None:
    """A job's unsaved attempt and its request.

    None if the job needs no call, its token's quota is spent, or its evidence cannot be read; the job has then been
    ended or queued again. None too if its lease was lost.
    """
    session = worker.load_session(turn)
    worker.update_rubric(turn.job, session)
    hashes = judgeable(session)
    inputs_sha256 = inputs.inputs_sha256(hashes)
    needless = worker.why_needless(turn, session, hashes, inputs_sha256)
    if needless:
        results.close(turn.job, turn.token, needless)
        return None
    payer = budget.payer(turn.job, session)
    if payer is not None and budget.remaining_usd(payer, clock.now()) <= draft.usd_by_payer[payer.pk]:
        worker.postpone(turn, payer)
        return None
    evidence_read = inputs.evidence_read(session)
    # If a worker was lost over this job before, its attempt is on record before the evidence is read.
    if turn.job.losses:
        attempt, prompt = worker.read_evidence(turn, session, payer, inputs_sha256=inputs_sha256)
    else:
        attempt, prompt = None, worker.prompt_for(turn, session)
    if prompt is None:
        return None
    if isinstance(prompt, Deferred):
        attempt = attempt or worker.begin_attempt(turn, payer, inputs_sha256=inputs_sha256)
        if attempt is not None:
            results.apply(attempt, worker.unsent_outcome(prompt), turn.judge, inputs_sha256=inputs_sha256)
        return None
    if attempt is not None:
        attempt.delete()  # it only marked the reading; `record_batch` writes the attempt that is sent
    cost = limiter.shared().estimate(turn.judge.name, prompt.characters)
    attempt = JudgeAttempt(
        job_id=turn.job.pk,
        payer_id=None if payer is None else payer.pk,
        lease_token=turn.token,
        judge=turn.judge.role,
        model=turn.judge.model,
        prompt_sha256=prompt.sha256,
        inputs_sha256=inputs_sha256,
        citable=pack(prompt.citable),
        read=evidence_read,
        estimated_usd=budget.estimate(turn.judge, cost, batch=True),
    )
    params = client.request(turn.judge, prompt, turn.job.rubric)
    return attempt, json.dumps({"custom_id": turn.token.hex, "params": params}).encode()


def record_batch(judge: Judge, draft: BatchDraft) -> JudgeBatch | None:
    """Write the batch, its attempts and jobs, before the call. None if there are no requests, or quota or budget do not
    allow them.
    """
    now = clock.now()
    with transaction.atomic():
        is_out = quota.current(judge).is_out
        if not draft.attempts or is_out or not budget.affords(judge, draft.usd, now):
            return None
        batch = JudgeBatch.objects.create(judge=judge.role, model=judge.model, created_at=now)
        for tokens in draft.lease_tokens():
            JudgeJob.objects.held_by(*tokens).update(state=JobState.SENT, leased_until=None)
        # A job whose lease was lost meanwhile has an attempt too, because its request is in the file.
        for attempt in draft.attempts:
            attempt.batch = batch
            attempt.started_at = now
        JudgeAttempt.objects.bulk_create(draft.attempts, batch_size=CHUNK_SIZE)
    return batch


def send_batch(judge: Judge, batch: JudgeBatch, body: IO[bytes]) -> bool:
    """Send a recorded batch. Returns whether the provider accepted it. If that is unknown, returns False and the batch
    stays SENDING.
    """
    try:
        created = batch_api.create(judge, body)
    except BatchApiError as error:
        outcome = error.update_quota(judge, batch.created_at)
        logger.warning("%s was not accepted: %s", batch, error)
        if error.was_rejected:
            # Nothing was accepted or charged: every job is queued again, and its attempt says why.
            now = clock.now()
            reason = getattr(outcome.result, "reason", "")
            detail = getattr(outcome.result, "detail", "")
            with transaction.atomic():
                attempts = batch.attempt_rows.filter(outcome=AttemptOutcome.RUNNING)
                JudgeJob.objects.sent_with(attempts).queue_again()
                attempts.update(
                    **outcome.row,
                    outcome=AttemptOutcome.DEFERRED,
                    finished_at=now,
                    reason=reason,
                    detail=detail,
                    estimated_usd=None,
                )
                open_batch = JudgeBatch.objects.open().filter(pk=batch.pk)
                open_batch.update(state=BatchState.ENDED, ended_at=now, detail=detail)
        return False
    expires_at = created.expires_at if isinstance(created.expires_at, dt.datetime) else None
    sending = JudgeBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING)
    if not sending.update(state=BatchState.RUNNING, provider_id=created.id, expires_at=expires_at):
        # The answer came after the batch had been given up and its jobs queued again.
        try:
            batch_api.cancel(judge, created.id)
        except BatchApiError as error:
            logger.warning("batch %s came too late and could not be canceled: %s", created.id, error)
    return True


# --- polling ---------------------------------------------------------------------------------------------------------


def poll() -> int:
    """Poll every open batch that is due, even if the judge is paused or out of quota, because polling costs nothing.
    Returns how many results were applied.
    """
    now = clock.now()
    applied = 0
    shortest = dt.timedelta(seconds=settings.JUDGE_BATCH_POLL_SECONDS)
    for batch in JudgeBatch.objects.open():
        is_in_future = batch.polled_at is not None and batch.polled_at > now  # a clock was wrong
        due_at = (batch.polled_at or batch.created_at) + poll_gap(now - batch.created_at, shortest)
        if is_in_future or now >= due_at:
            applied += poll_batch(batch, now)
    return applied


def poll_batch(batch: JudgeBatch, now: dt.datetime) -> int:
    """Poll one batch, unless another worker polled it after it was loaded. Returns how many results were applied."""
    not_polled_since = JudgeBatch.objects.open().filter(pk=batch.pk, polled_at=batch.polled_at)
    if not not_polled_since.update(polled_at=now):
        return 0
    applied = 0
    judge = judges.configured().get(JudgeRole(batch.judge))
    if judge is not None:
        judge = replace(judge, model=batch.model)  # the model it was sent to; another may be configured by now
        try:
            if batch.state == BatchState.RUNNING:
                applied = apply_results(batch, judge)
            else:
                find_sent(batch, judge, now)
        except BatchApiError as error:
            error.update_quota(judge, now)
            logger.warning("%s could not be polled: %s", batch, error)
            JudgeBatch.objects.filter(pk=batch.pk).update(detail=str(error)[:2000])
            if error.is_missing:
                end_batch(batch, BatchState.LOST, f"The provider does not know the batch (any more). {MAY_BE_PAID}")
    if now > (batch.expires_at or batch.created_at + MAX_AGE) + GRACE:
        end_batch(batch, BatchState.LOST, f"The batch did not end in time. {MAY_BE_PAID}")
    return applied


def apply_results(batch: JudgeBatch, judge: Judge) -> int:
    """Apply the results of a batch if it has ended. Returns how many. If a result fails, the batch stays open."""
    if batch_api.retrieve(judge, batch.provider_id).processing_status != "ended":
        return 0
    applied = 0
    failed = 0
    for number, line in enumerate(batch_api.results(judge, batch.provider_id), start=1):
        try:
            applied += apply_result(batch, judge, line)
        except Exception:
            failed += 1
            logger.exception("a result of %s could not be applied", batch)
        if number % RENEW_EVERY == 0:
            JudgeBatch.objects.filter(pk=batch.pk).update(polled_at=clock.now())
    if not failed:
        end_batch(batch, BatchState.ENDED, f"The batch ended without a result for this request. {MAY_BE_PAID}")
    return applied


def apply_result(batch: JudgeBatch, judge: Judge, line: "MessageBatchIndividualResponse") -> bool:
    """Apply one result. Returns False if it was applied before or belongs to no attempt of the batch."""
    rows = batch.attempt_rows.filter(lease_token=lease_token(line.custom_id), outcome=AttemptOutcome.RUNNING)
    attempt = rows.select_related("job__rubric").first()
    if attempt is None:
        return False
    outcome = replace(read_result(line, attempt), route=judge.batch_route)
    if line.result.type in {"canceled", "expired"}:
        attempt.estimated_usd = None  # nothing was charged
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=attempt.job.session_id)
        if not len(rows.select_for_update()):  # another worker applied it meanwhile
            return False
        results.apply(attempt, outcome, judge, inputs_sha256=attempt.inputs_sha256)
    return True


def lease_token(custom_id: str) -> uuid.UUID:
    """The lease token in a request's id. If the id is none of ours, a token that no job has."""
    try:
        return uuid.UUID(hex=custom_id)
    except ValueError:
        return uuid.UUID(int=0)


def read_result(line: "MessageBatchIndividualResponse", attempt: JudgeAttempt) -> CallOutcome:
    """The outcome that a line of a batch's results stands for, at the price of a batch."""
    result = line.result
    rubric = attempt.job.rubric
    match result.type:
        case "succeeded":
            # The evidence shows whether the rationale is copied. All of it up to now includes what the judge read.
            session = Session.objects.with_people().get(pk=attempt.job.session_id)
            evidence = inputs.build(session, rubric, budget=settings.JUDGE_INPUT_TOKENS).user
            return client.read_message(result.message, rubric, unpack(attempt.citable), evidence=evidence, batch=True)
        case "errored":
            error = result.error.error
            details = getattr(error, "details", None)
            code = details.get("error_code", "") if isinstance(details, dict) else ""
            row = {
                "http_status": api_errors.STATUS_OF_TYPE.get(error.type),
                "error_type": plain_text(str(code or error.type))[:80],
                "request_id": plain_text(str(result.error.request_id or ""))[:120],
            }
            deferral = api_errors.classify_batched(error.type, error.message, clock.now(), code=str(code))
            return CallOutcome(result=deferral, row=row)
        case "expired":
            reason, detail = Reason.OVERLOADED, "The batch expired before this request was done"
        case "canceled":
            reason, detail = Reason.AWAITING_JUDGE, "The batch was canceled before this request was done"
        case _:
            reason, detail = Reason.NEEDS_ATTENTION, f"A result of an unknown kind: {result.type}"
    deferred = Deferred(reason=reason, scope=DeferralScope.JOB, detail=detail)
    return CallOutcome(result=deferred, row={"error_type": str(result.type)[:80]})


# --- batches without results -----------------------------------------------------------------------------------------


def find_sent(batch: JudgeBatch, judge: Judge, now: dt.datetime) -> None:
    """Look for a batch at the provider. Its sender died or got no answer, so nobody knows whether it was accepted.

    Candidates are the provider's batches of the same size and time. Once a candidate has ended, its results show
    whether it is ours. If all candidates have ended and none is ours, the batch is lost.
    """
    if now < batch.created_at + dt.timedelta(seconds=batch_api.TRANSFER_SECONDS) + CLOCK_SKEW:
        return  # its sender may still be sending it
    is_running = False
    size = batch.attempt_rows.count()
    provider_ids = set(JudgeBatch.objects.exclude(provider_id="").values_list("provider_id", flat=True))
    for candidate in batch_api.list_since(judge, batch.created_at - CLOCK_SKEW):
        counts = candidate.request_counts
        total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
        if candidate.id in provider_ids or total != size:
            continue
        if candidate.processing_status != "ended":
            is_running = True
            continue
        first = next(batch_api.results(judge, candidate.id), None)
        if first is not None and batch.attempt_rows.filter(lease_token=lease_token(first.custom_id)).exists():
            JudgeBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING).update(
                state=BatchState.RUNNING, provider_id=candidate.id, expires_at=candidate.expires_at
            )
            return
    if not is_running:
        why = f"Whoever sent the batch got no answer, and the provider has none. {MAY_BE_PAID}"
        end_batch(batch, BatchState.LOST, why)


def end_batch(batch: JudgeBatch, state: BatchState, why: str) -> None:
    """Close the batch: jobs without a result are queued again, and their attempts say why."""
    now = clock.now()
    with transaction.atomic():
        if not JudgeBatch.objects.open().filter(pk=batch.pk).update(state=state, ended_at=now):
            return
        unanswered = batch.attempt_rows.filter(outcome=AttemptOutcome.RUNNING)
        count = len(unanswered.select_for_update().values_list("pk"))
        JudgeJob.objects.sent_with(unanswered).queue_again(losses=F("losses") + 1)
        unanswered.update(outcome=AttemptOutcome.LOST, finished_at=now, detail=why)
        if count:
            logger.warning("%s: %d jobs are queued again. %s", batch, count, why)
            JudgeBatch.objects.filter(pk=batch.pk).update(detail=f"{count} requests without a result. {why}")
