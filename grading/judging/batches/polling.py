"""Polling: ask after what is out, apply each result as an ordinary answer, and give up what will not come back."""

import datetime as dt
import logging
import uuid
from collections.abc import Iterator
from dataclasses import replace
from random import Random, SystemRandom

from anthropic.types import ErrorResponse
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from grading.core import api_errors
from grading.core.batch import poll_gap, unpack
from grading.core.verdict import Deferred, Scope
from grading.core.vocabulary import Reason
from grading.judging import client, inputs, judges, results, working
from grading.judging.batches import provider
from grading.judging.client import Answer
from grading.judging.judges import Judge
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob, Session
from grading.models.judging import AttemptOutcome, BatchState, JobState, JudgeRole

logger = logging.getLogger(__name__)

# The provider ends a batch within a day; some hours later nothing is hoped for any more.
LONGEST, GRACE = dt.timedelta(hours=24), dt.timedelta(hours=2)
# The provider's clock and ours may differ so much.
SKEW = dt.timedelta(minutes=2)
# Whoever applies many results says so often enough that nobody else begins.
SAID_EVERY = 50
MAY_BE_PAID = "It may have been paid for"


def poll(*, rng: Random | None = None) -> int:
    """Ask after every open batch whose time has come; how many results were applied. Polling costs nothing, so it goes
    on while the judge is paused or out of quota.
    """
    now = timezone.now()
    return sum(_attend(batch, now, rng or SystemRandom()) for batch in JudgeBatch.objects.open() if _is_due(batch, now))


def _is_due(batch: JudgeBatch, now: dt.datetime) -> bool:
    shortest = dt.timedelta(seconds=settings.JUDGE_BATCH_POLL_SECONDS)
    gap = poll_gap(now - batch.created_at, shortest)
    return now >= (batch.polled_at or batch.created_at) + gap


def _attend(batch: JudgeBatch, now: dt.datetime, rng: Random) -> int:
    mine = JudgeBatch.objects.open().filter(pk=batch.pk, polled_at=batch.polled_at)
    if not mine.update(polled_at=now):
        return 0
    judge = _asked(batch)
    applied = 0 if judge is None else _ask_after(batch, judge, now, rng)
    if now > (batch.expires_at or batch.created_at + LONGEST) + GRACE:
        _end(batch, BatchState.LOST, f"The batch did not end in time. {MAY_BE_PAID}")
    return applied


def _asked(batch: JudgeBatch) -> Judge | None:
    """The judge that the batch was sent to; its model may be another by now."""
    judge = judges.configured().get(JudgeRole(batch.judge))
    return None if judge is None else replace(judge, model=batch.model)


def _ask_after(batch: JudgeBatch, judge: Judge, now: dt.datetime, rng: Random) -> int:
    try:
        if batch.state == BatchState.RUNNING:
            return _take_in(batch, judge, rng)
        _look_for(batch, judge, now)
    except provider.Failed as failure:
        failure.heard(judge, now)
        logger.warning("%s could not be asked after: %s", batch, failure)
        JudgeBatch.objects.filter(pk=batch.pk).update(detail=str(failure)[:2000])
        if failure.is_missing:
            _end(batch, BatchState.LOST, f"The provider does not know the batch (any more). {MAY_BE_PAID}")
    return 0


# --- results ---------------------------------------------------------------------------------------------------------


def _take_in(batch: JudgeBatch, judge: Judge, rng: Random) -> int:
    """The results of a batch, if it has ended. A result that cannot be applied leaves it open for the next time."""
    if provider.retrieve(judge, batch.provider_id).processing_status != "ended":
        return 0
    applied, broken = 0, 0
    for number, line in enumerate(provider.results(judge, batch.provider_id), start=1):
        try:
            applied += _apply(batch, judge, line, rng)
        except Exception:
            broken += 1
            logger.exception("a result of %s could not be applied", batch)
        if number % SAID_EVERY == 0:
            JudgeBatch.objects.filter(pk=batch.pk).update(polled_at=timezone.now())
    if not broken:
        _end(batch, BatchState.ENDED, f"The batch ended without a result for this request. {MAY_BE_PAID}")
    return applied


def _apply(batch: JudgeBatch, judge: Judge, line: MessageBatchIndividualResponse, rng: Random) -> bool:
    """Apply one result, once: repeated and unknown ones change nothing."""
    rows = batch.attempt_rows.filter(lease_token=_token(line.custom_id), outcome=AttemptOutcome.RUNNING)
    attempt = rows.select_related("job__rubric").first()
    if attempt is None:
        return False
    answer = replace(_answer(line, attempt), route=judge.batch_route)
    if line.result.type in {"canceled", "expired"}:
        attempt.estimated_usd = None  # nothing was charged
    with transaction.atomic():
        if not len(rows.select_for_update()):  # somebody else applied it meanwhile
            return False
        outcome = results.apply(attempt, answer, judge, inputs_sha256=attempt.inputs_sha256, rng=rng)
        if outcome is AttemptOutcome.GRADED:
            working.afterwards(attempt.job)
    return True


def _answer(line: MessageBatchIndividualResponse, attempt: JudgeAttempt) -> Answer:
    """A line of the results as the answer that a call of its own would have had."""
    result = line.result
    match result.type:
        case "succeeded":
            citable, evidence = unpack(attempt.citable), _evidence(attempt.job)
            return client.read(result.message, attempt.job.rubric, citable, evidence=evidence, batch=True)
        case "errored":
            return _errored(result.error)
        case "expired":
            return _undone(Reason.OVERLOADED, "The batch expired before this request was done", result.type)
        case "canceled":
            return _undone(Reason.AWAITING_JUDGE, "The batch was canceled before this request was done", result.type)
        case _:
            return _undone(Reason.NEEDS_ATTENTION, f"A result of an unknown kind: {result.type}", str(result.type))


def _evidence(job: JudgeJob) -> str:
    """What the judge was given to read, and what has come since: no verdict may be copied from either."""
    session = Session.objects.with_people().get(pk=job.session_id)
    return inputs.build(session, job.rubric, budget=settings.JUDGE_INPUT_TOKENS).user


def _errored(error: ErrorResponse) -> Answer:
    """An error in place of a reply, by the same table as everywhere."""
    said = error.error
    details = getattr(said, "details", None)
    code = details.get("error_code", "") if isinstance(details, dict) else ""
    result = api_errors.classify_said(said.type, said.message, timezone.now(), code=str(code))
    row = {
        "http_status": api_errors.STATUS_OF_TYPE.get(said.type),
        "error_type": str(code or said.type)[:80],
        "request_id": str(error.request_id or "")[:120],
    }
    return Answer(result=result, row=row)


def _undone(reason: Reason, detail: str, kind: str) -> Answer:
    return Answer(result=Deferred(reason=reason, scope=Scope.JOB, detail=detail), row={"error_type": kind[:80]})


def _token(custom_id: str) -> uuid.UUID:
    """The lease that a request's id names; for an id that is not ours, one that nobody holds."""
    try:
        return uuid.UUID(hex=custom_id)
    except ValueError:
        return uuid.UUID(int=0)


# --- what has no answer ----------------------------------------------------------------------------------------------


def _look_for(batch: JudgeBatch, judge: Judge, now: dt.datetime) -> None:
    """Find the batch of which nobody knows whether it was taken in: its sender died, or got no answer.

    The provider's list tells when a batch was created and how many requests it has; its results, once it has ended,
    whose they are. While one that may be ours has not ended, wait.
    """
    if now < batch.created_at + dt.timedelta(seconds=provider.TRANSFER_SECONDS) + SKEW:
        return  # its sender may still be at it
    running = False
    for candidate in _candidates(batch, judge):
        if candidate.processing_status != "ended":
            running = True
        elif _is_ours(batch, judge, candidate):
            found = {"provider_id": candidate.id, "expires_at": candidate.expires_at}
            JudgeBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING).update(state=BatchState.RUNNING, **found)
            return
    if not running:
        _end(batch, BatchState.LOST, f"Whoever sent the batch got no answer, and the provider has none. {MAY_BE_PAID}")


def _candidates(batch: JudgeBatch, judge: Judge) -> Iterator[MessageBatch]:
    size = batch.attempt_rows.count()
    known = set(JudgeBatch.objects.exclude(provider_id="").values_list("provider_id", flat=True))
    for candidate in provider.since(judge, batch.created_at - SKEW):
        counts = candidate.request_counts
        total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
        if candidate.id not in known and total == size:
            yield candidate


def _is_ours(batch: JudgeBatch, judge: Judge, candidate: MessageBatch) -> bool:
    first = next(provider.results(judge, candidate.id), None)
    return first is not None and batch.attempt_rows.filter(lease_token=_token(first.custom_id)).exists()


def _end(batch: JudgeBatch, state: BatchState, why: str) -> None:
    """Nothing more comes of the batch: what has no result is queued again, and its attempt says so."""
    now = timezone.now()
    with transaction.atomic():
        if not JudgeBatch.objects.open().filter(pk=batch.pk).update(state=state, ended_at=now):
            return
        left = batch.attempt_rows.filter(outcome=AttemptOutcome.RUNNING)
        missing = len(left.select_for_update().values_list("pk"))
        sent = JudgeJob.objects.filter(state=JobState.SENT, lease_token__in=left.values("lease_token"))
        sent.update(state=JobState.QUEUED, lease_token=None, losses=F("losses") + 1)
        left.update(outcome=AttemptOutcome.LOST, finished_at=now, detail=why)
        if missing:
            logger.warning("%s: %d jobs are queued again. %s", batch, missing, why)
            JudgeBatch.objects.filter(pk=batch.pk).update(detail=f"{missing} requests without a result. {why}")
