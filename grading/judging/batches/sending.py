"""Sending: the backlog of one judge is leased, its prompts are written to a file one by one, and the file is a batch.

What will be sent is on record first: jobs SENT, an attempt each, the batch. Where the provider takes nothing in, all of
it goes back to the queue.
"""

import datetime as dt
import json
import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random, SystemRandom
from tempfile import TemporaryFile
from typing import IO

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from grading.core.batch import pack
from grading.core.prompt import Prompt
from grading.core.verdict import Deferred
from grading.judging import budget, client, inputs, lanes, limiter, prices, quota, results, working
from grading.judging.batches import provider
from grading.judging.client import Answer
from grading.judging.judges import Judge
from grading.judging.working import Turn
from grading.models import JudgeAttempt, JudgeBatch, JudgeJob, JudgePolicy, Session
from grading.models.judging import AttemptOutcome, BatchState, JobState

logger = logging.getLogger(__name__)

# Well below what the provider takes (100,000 and 256 MB).
MOST_REQUESTS, MOST_BYTES = 10_000, 200_000_000
AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One request of a batch, without its text: the job, its lease, and what the attempt's row will say."""

    job_id: int
    token: uuid.UUID
    prompt_sha256: str
    inputs_sha256: str
    citable: list[list[int]]
    usd: float


@dataclass(slots=True, kw_only=True)
class Parcel:
    """What is gathered for a batch: `body` holds the requests, `letters` the rest. `unpaid`: the budget ended it."""

    body: IO[bytes]
    letters: list[Letter] = field(default_factory=list)
    usd: float = 0.0
    unpaid: float | None = None

    def add(self, letter: Letter, request: bytes) -> None:
        self.body.write((b"," if self.letters else b"") + request)
        self.letters.append(letter)
        self.usd += letter.usd


def send(*, rng: Random | None = None) -> int:
    """Send the backlog of every judge that takes batches now; how many requests the provider took in."""
    ready = working.ready(timezone.now())
    roles = lanes.together(timezone.now(), list(ready))
    return sum(_send(ready[role], rng or SystemRandom()) for role in roles)


def _send(judge: Judge, rng: Random) -> int:
    with TemporaryFile(dir=settings.STATE_DIR) as body:
        parcel = _gather(judge, Parcel(body=body), rng)
        if parcel.unpaid is None and len(parcel.letters) < settings.JUDGE_BATCH_LEAST:
            return _give_back(parcel)
        batch = _write_down(judge, parcel)
        if batch is None:
            return _give_back(parcel)
        if parcel.unpaid is not None:
            budget.affords(judge, parcel.unpaid, timezone.now())
        return len(parcel.letters) if _create(judge, batch, body) else 0


# --- gathering -------------------------------------------------------------------------------------------------------


def _gather(judge: Judge, parcel: Parcel, rng: Random) -> Parcel:
    """Lease jobs and write their requests, for as long as the batch, the budget and half a lease hold."""
    left, started = _affordable(), time.monotonic()
    parcel.body.write(b'{"requests":[')
    for turn in _turns(judge):
        made = _prepare(turn, rng)
        if made is not None:
            letter, request = made
            if left is not None and parcel.usd + letter.usd > left:
                parcel.unpaid = letter.usd
            if parcel.unpaid is not None or parcel.body.tell() + len(request) > MOST_BYTES:
                working.give_back(turn)
                break
            parcel.add(letter, request)
        if time.monotonic() - started > settings.JUDGE_LEASE_SECONDS / 2:
            break
    parcel.body.write(b"]}")
    return parcel


def _turns(judge: Judge) -> Iterator[Turn]:
    """The backlog, leased one by one in the promised order."""
    wanted = lanes.backlog(timezone.now(), judge.role).values_list("pk", flat=True)[:MOST_REQUESTS]
    for job_id in list(wanted):
        turn = working.claim(job_id)
        if turn is not None:
            yield turn


def _prepare(turn: Turn, rng: Random) -> tuple[Letter, bytes] | None:
    """A job's letter and request; None where it needs no call, or its evidence cannot be read."""
    session = Session.objects.with_people().get(pk=turn.job.session_id)
    inputs_sha256 = inputs.inputs_sha256(inputs.inputs(session))
    if not working.is_needed(turn, session, inputs_sha256):
        results.close(turn.job, turn.token, "these very inputs were judged already")
        return None
    prompt = working.prompt_for(turn, session)
    if isinstance(prompt, Deferred):
        attempt = working.begin(turn)
        if attempt is not None:
            results.apply(attempt, Answer(result=prompt), turn.judge, inputs_sha256=inputs_sha256, rng=rng)
        return None
    return _letter(turn, prompt, inputs_sha256), _request(turn, prompt)


def _letter(turn: Turn, prompt: Prompt, inputs_sha256: str) -> Letter:
    cost = limiter.shared().estimate(turn.judge.name, prompt.characters)
    tokens = {"input_tokens": round(cost.input_tokens), "output_tokens": round(cost.output_tokens)}
    return Letter(
        job_id=turn.job.pk,
        token=turn.token,
        prompt_sha256=prompt.sha256,
        inputs_sha256=inputs_sha256,
        citable=pack(prompt.citable),
        usd=prices.cost(turn.judge.model, **tokens, batch=True),
    )


def _request(turn: Turn, prompt: Prompt) -> bytes:
    params = client.request(turn.judge, prompt, turn.job.rubric)
    return json.dumps({"custom_id": turn.token.hex, "params": params}).encode()


def _affordable() -> float | None:
    """What is left of today's budget, in dollars; None where there is none."""
    limit = JudgePolicy.objects.current().daily_budget_usd
    return None if limit is None else limit - budget.spent_today(timezone.now())


def _give_back(parcel: Parcel) -> int:
    """Nothing was sent: the leases end."""
    for tokens in _chunks(parcel.letters):
        mine = JudgeJob.objects.filter(state=JobState.LEASED, lease_token__in=tokens)
        mine.update(state=JobState.QUEUED, lease_token=None, leased_until=None)
    return 0


def _chunks(letters: list[Letter]) -> Iterator[list[uuid.UUID]]:
    for start in range(0, len(letters), AT_ONCE):
        yield [letter.token for letter in letters[start : start + AT_ONCE]]


# --- sending ---------------------------------------------------------------------------------------------------------


def _write_down(judge: Judge, parcel: Parcel) -> JudgeBatch | None:
    """Batch, attempts and jobs, in one transaction before the call; None where nothing may be sent any more."""
    now = timezone.now()
    with transaction.atomic():
        is_out = quota.current(judge).is_out
        if not parcel.letters or is_out or not budget.affords(judge, parcel.usd, now):
            return None
        batch = JudgeBatch.objects.create(judge=judge.role, model=judge.model, created_at=now)
        # A job whose lease was lost meanwhile has an attempt too, because its request is in the file.
        for tokens in _chunks(parcel.letters):
            mine = JudgeJob.objects.filter(state=JobState.LEASED, lease_token__in=tokens)
            mine.update(state=JobState.SENT, leased_until=None)
        attempts = (_attempt(judge, batch, letter, now) for letter in parcel.letters)
        JudgeAttempt.objects.bulk_create(attempts, batch_size=AT_ONCE)
    return batch


def _attempt(judge: Judge, batch: JudgeBatch, letter: Letter, now: dt.datetime) -> JudgeAttempt:
    return JudgeAttempt(
        job_id=letter.job_id,
        lease_token=letter.token,
        started_at=now,
        judge=judge.role,
        model=judge.model,
        batch=batch,
        estimated_usd=letter.usd,
        prompt_sha256=letter.prompt_sha256,
        inputs_sha256=letter.inputs_sha256,
        citable=letter.citable,
    )


def _create(judge: Judge, batch: JudgeBatch, body: IO[bytes]) -> bool:
    """The call. Where nobody knows whether it was taken in, the batch stays SENDING, and `polling` looks for it."""
    try:
        said = provider.create(judge, body)
    except provider.Failed as failure:
        answer = failure.heard(judge, batch.created_at)
        logger.warning("%s was not taken in: %s", batch, failure)
        if failure.is_definite:
            _take_back(batch, answer)
        return False
    expires = said.expires_at if isinstance(said.expires_at, dt.datetime) else None
    sending = JudgeBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING)
    if not sending.update(state=BatchState.RUNNING, provider_id=said.id, expires_at=expires):
        _cancel(judge, said.id)
    return True


def _take_back(batch: JudgeBatch, answer: Answer) -> None:
    """The provider took nothing in and charged nothing: every job is queued again, and its attempt says why."""
    now, result = timezone.now(), answer.result
    reason, detail = getattr(result, "reason", ""), getattr(result, "detail", "")
    with transaction.atomic():
        attempts = batch.attempt_rows.filter(outcome=AttemptOutcome.RUNNING)
        sent = JudgeJob.objects.filter(state=JobState.SENT, lease_token__in=attempts.values("lease_token"))
        sent.update(state=JobState.QUEUED, lease_token=None)
        attempts.update(
            **answer.row,
            outcome=AttemptOutcome.DEFERRED,
            finished_at=now,
            reason=reason,
            detail=detail,
            estimated_usd=None,
        )
        JudgeBatch.objects.filter(pk=batch.pk).update(state=BatchState.ENDED, ended_at=now, detail=detail)


def _cancel(judge: Judge, provider_id: str) -> None:
    """The answer came after the batch had been given up for lost, and its jobs queued again."""
    try:
        provider.cancel(judge, provider_id)
    except provider.Failed as failure:
        logger.warning("batch %s came too late and could not be canceled: %s", provider_id, failure)
