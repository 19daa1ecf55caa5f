"""Sending: what was gathered is one batch. It is on record first: jobs SENT, an attempt each, the batch.

Where the provider takes nothing in, all of it goes back to the queue.
"""

import datetime as dt
import logging
from random import Random, SystemRandom
from tempfile import TemporaryFile
from typing import IO

from django.conf import settings
from django.db import transaction

from grading import clock
from grading.judging import ordering, worker
from grading.judging.allowance import budget, quota
from grading.judging.batches import provider
from grading.judging.batches.gathering import CHUNK_SIZE, BatchDraft, gather
from grading.judging.judges import Judge
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob
from grading.models.judging import AttemptOutcome, BatchState, JobState

logger = logging.getLogger(__name__)


def send(*, rng: Random | None = None) -> int:
    """Send the backlog of every judge that takes batches now; how many requests the provider took in."""
    ready, sent = worker.ready(clock.now()), 0
    for role in ordering.batched_roles(clock.now(), list(ready)):
        judge = ready[role]
        with TemporaryFile(dir=settings.STATE_DIR) as body:
            draft = gather(judge, body, rng or SystemRandom())
            enough = draft.unpaid is not None or len(draft.requests) >= settings.JUDGE_BATCH_LEAST
            batch = _write_down(judge, draft) if enough else None
            if batch is None:
                draft.give_back()
                continue
            if draft.unpaid is not None:
                budget.affords(judge, draft.unpaid, clock.now())
            sent += len(draft.requests) if _create(judge, batch, body) else 0
    return sent


def _write_down(judge: Judge, draft: BatchDraft) -> JudgeBatch | None:
    """Batch, attempts and jobs, in one transaction before the call; None where nothing may be sent any more."""
    now = clock.now()
    with transaction.atomic():
        is_out = quota.current(judge).is_out
        if not draft.requests or is_out or not budget.affords(judge, draft.usd, now):
            return None
        batch = JudgeBatch.objects.create(judge=judge.role, model=judge.model, created_at=now)
        # A job whose lease was lost meanwhile has an attempt too, because its request is in the file.
        for tokens in draft.tokens():
            mine = JudgeJob.objects.held_by(*tokens)
            mine.update(state=JobState.SENT, leased_until=None)
        attempts = (
            JudgeAttempt(
                job_id=request.job_id,
                payer_id=request.payer_id,
                lease_token=request.token,
                started_at=now,
                judge=judge.role,
                model=judge.model,
                batch=batch,
                estimated_usd=request.usd,
                prompt_sha256=request.prompt_sha256,
                inputs_sha256=request.inputs_sha256,
                citable=request.citable,
                read=request.read,
            )
            for request in draft.requests
        )
        JudgeAttempt.objects.bulk_create(attempts, batch_size=CHUNK_SIZE)
    return batch


def _create(judge: Judge, batch: JudgeBatch, body: IO[bytes]) -> bool:
    """The call. Where nobody knows whether it was taken in, the batch stays SENDING, and `polling` looks for it."""
    try:
        said = provider.create(judge, body)
    except provider.Failed as failure:
        answer = failure.heard(judge, batch.created_at)
        logger.warning("%s was not taken in: %s", batch, failure)
        if failure.is_definite:
            # The provider took nothing in and charged nothing: every job is queued again, and its attempt says why.
            now, result = clock.now(), answer.result
            reason, detail = getattr(result, "reason", ""), getattr(result, "detail", "")
            with transaction.atomic():
                attempts = batch.attempt_rows.filter(outcome=AttemptOutcome.RUNNING)
                JudgeJob.objects.sent_with(attempts).queue_again()
                attempts.update(
                    **answer.row,
                    outcome=AttemptOutcome.DEFERRED,
                    finished_at=now,
                    reason=reason,
                    detail=detail,
                    estimated_usd=None,
                )
                open_batch = JudgeBatch.objects.open().filter(pk=batch.pk)
                open_batch.update(state=BatchState.ENDED, ended_at=now, detail=detail)
        return False
    expires = said.expires_at if isinstance(said.expires_at, dt.datetime) else None
    sending = JudgeBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING)
    if not sending.update(state=BatchState.RUNNING, provider_id=said.id, expires_at=expires):
        # The answer came after the batch had been given up for lost, and its jobs queued again.
        try:
            provider.cancel(judge, said.id)
        except provider.Failed as failure:
            logger.warning("batch %s came too late and could not be canceled: %s", said.id, failure)
    return True
