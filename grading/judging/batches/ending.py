"""Ending: a batch that nobody heard of is looked for, and what will have no result goes back to the queue."""

import datetime as dt
import logging

from django.db import transaction
from django.db.models import F

from grading import clock
from grading.judging.batches import provider
from grading.judging.batches.reading import token
from grading.judging.judges import Judge
from grading.models import JudgeBatch, JudgeJob
from grading.models.judging import AttemptOutcome, BatchState

logger = logging.getLogger(__name__)

# The most by which the provider's clock and ours may differ.
SKEW = dt.timedelta(minutes=2)
MAY_BE_PAID = "It may have been paid for."


def look_for(batch: JudgeBatch, judge: Judge, now: dt.datetime) -> None:
    """Find the batch of which nobody knows whether it was taken in: its sender died, or got no answer.

    The provider's list tells when a batch was created and how many requests it has; its results, once it has ended,
    whose they are. While one that may be ours has not ended, wait.
    """
    if now < batch.created_at + dt.timedelta(seconds=provider.TRANSFER_SECONDS) + SKEW:
        return  # its sender may still be at it
    running, size = False, batch.attempt_rows.count()
    known = set(JudgeBatch.objects.exclude(provider_id="").values_list("provider_id", flat=True))
    for candidate in provider.since(judge, batch.created_at - SKEW):
        counts = candidate.request_counts
        total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
        if candidate.id in known or total != size:
            continue
        if candidate.processing_status != "ended":
            running = True
            continue
        first = next(provider.results(judge, candidate.id), None)
        if first is not None and batch.attempt_rows.filter(lease_token=token(first.custom_id)).exists():
            found = {"provider_id": candidate.id, "expires_at": candidate.expires_at}
            JudgeBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING).update(state=BatchState.RUNNING, **found)
            return
    if not running:
        end(batch, BatchState.LOST, f"Whoever sent the batch got no answer, and the provider has none. {MAY_BE_PAID}")


def end(batch: JudgeBatch, state: BatchState, why: str) -> None:
    """Nothing more comes of the batch: what has no result is queued again, and its attempt says so."""
    now = clock.now()
    with transaction.atomic():
        if not JudgeBatch.objects.open().filter(pk=batch.pk).update(state=state, ended_at=now):
            return
        left = batch.attempt_rows.filter(outcome=AttemptOutcome.RUNNING)
        missing = len(left.select_for_update().values_list("pk"))
        JudgeJob.objects.sent_with(left).queue_again(losses=F("losses") + 1)
        left.update(outcome=AttemptOutcome.LOST, finished_at=now, detail=why)
        if missing:
            logger.warning("%s: %d jobs are queued again. %s", batch, missing, why)
            JudgeBatch.objects.filter(pk=batch.pk).update(detail=f"{missing} requests without a result. {why}")
