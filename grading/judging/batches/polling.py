"""Polling: ask after what is out, and apply each result as an ordinary answer."""

import datetime as dt
import logging
from dataclasses import replace
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from grading import clock
from grading.judging import judges, results
from grading.judging.batches import provider
from grading.judging.batches.ending import MAY_BE_PAID, end, look_for
from grading.judging.batches.reading import answer_in, token
from grading.judging.core.batch import poll_gap
from grading.judging.judges import Judge
from grading.models import JudgeBatch, Session
from grading.models.judging import AttemptOutcome, BatchState, JudgeRole

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatchIndividualResponse

logger = logging.getLogger(__name__)

# The provider ends a batch within a day; some hours later nothing is hoped for any more.
LONGEST, GRACE = dt.timedelta(hours=24), dt.timedelta(hours=2)
# Whoever applies many results says so often enough that nobody else begins.
SAID_EVERY = 50


def poll(*, rng: Random | None = None) -> int:
    """Ask after every open batch whose time has come; how many results were applied. Polling costs nothing, so it goes
    on while the judge is paused or out of quota.
    """
    now, applied = clock.now(), 0
    shortest = dt.timedelta(seconds=settings.JUDGE_BATCH_POLL_SECONDS)
    for batch in JudgeBatch.objects.open():
        is_ahead = batch.polled_at is not None and batch.polled_at > now  # by a clock that was wrong
        if is_ahead or now >= (batch.polled_at or batch.created_at) + poll_gap(now - batch.created_at, shortest):
            applied += _attend(batch, now, rng or SystemRandom())
    return applied


def _attend(batch: JudgeBatch, now: dt.datetime, rng: Random) -> int:
    """Ask after a batch, if nobody else has done so since it was read; how many results were applied."""
    mine = JudgeBatch.objects.open().filter(pk=batch.pk, polled_at=batch.polled_at)
    if not mine.update(polled_at=now):
        return 0
    applied = 0
    judge = judges.configured().get(JudgeRole(batch.judge))
    if judge is not None:
        judge = replace(judge, model=batch.model)  # that it was sent to; the configured one may be another by now
        try:
            if batch.state == BatchState.RUNNING:
                applied = _take_in(batch, judge, rng)
            else:
                look_for(batch, judge, now)
        except provider.Failed as failure:
            failure.heard(judge, now)
            logger.warning("%s could not be asked after: %s", batch, failure)
            JudgeBatch.objects.filter(pk=batch.pk).update(detail=str(failure)[:2000])
            if failure.is_missing:
                end(batch, BatchState.LOST, f"The provider does not know the batch (any more). {MAY_BE_PAID}")
    if now > (batch.expires_at or batch.created_at + LONGEST) + GRACE:
        end(batch, BatchState.LOST, f"The batch did not end in time. {MAY_BE_PAID}")
    return applied


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
            JudgeBatch.objects.filter(pk=batch.pk).update(polled_at=clock.now())
    if not broken:
        end(batch, BatchState.ENDED, f"The batch ended without a result for this request. {MAY_BE_PAID}")
    return applied


def _apply(batch: JudgeBatch, judge: Judge, line: "MessageBatchIndividualResponse", rng: Random) -> bool:
    """Apply one result, once: repeated and unknown ones change nothing."""
    rows = batch.attempt_rows.filter(lease_token=token(line.custom_id), outcome=AttemptOutcome.RUNNING)
    attempt = rows.select_related("job__rubric").first()
    if attempt is None:
        return False
    answer = replace(answer_in(line, attempt), route=judge.batch_route)
    if line.result.type in {"canceled", "expired"}:
        attempt.estimated_usd = None  # nothing was charged
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=attempt.job.session_id)
        if not len(rows.select_for_update()):  # somebody else applied it meanwhile
            return False
        results.apply(attempt, answer, judge, inputs_sha256=attempt.inputs_sha256, rng=rng)
    return True
