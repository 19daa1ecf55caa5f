"""Gathering: the backlog of one judge is leased, and its prompts are written to a file one by one."""

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import IO, Any

from django.conf import settings

from grading import clock
from grading.evidence.material import judgeable
from grading.judging import client, inputs, ordering, results, worker
from grading.judging.allowance import budget, limiter
from grading.judging.core.batch import pack
from grading.judging.core.verdict import Deferred
from grading.judging.judges import Judge
from grading.judging.worker import Turn
from grading.models import JudgeJob, JudgePolicy

# Well below what the provider takes (100,000 and 256 MB).
MOST_REQUESTS, MOST_BYTES = 10_000, 200_000_000
CHUNK_SIZE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """One request of a batch, without its text: the job, its lease, and what the attempt's row will say."""

    job_id: int
    token: uuid.UUID
    prompt_sha256: str
    inputs_sha256: str
    citable: list[list[int]]
    read: dict[str, Any]
    usd: float
    payer_id: int | None


@dataclass(slots=True, kw_only=True)
class BatchDraft:
    """What is gathered for a batch: `requests`, and their text in `body`. `unpaid`: the budget ended it.

    `paid` is what they should cost by the token on whose quota that counts.
    """

    body: IO[bytes]
    requests: list[BatchRequest] = field(default_factory=list)
    usd: float = 0.0
    unpaid: float | None = None
    paid: dict[int | None, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, request: BatchRequest, text: bytes) -> None:
        self.body.write((b"," if self.requests else b"") + text)
        self.requests.append(request)
        self.usd += request.usd
        self.paid[request.payer_id] += request.usd

    def tokens(self) -> Iterator[list[uuid.UUID]]:
        """The leases, some at a time."""
        for start in range(0, len(self.requests), CHUNK_SIZE):
            yield [request.token for request in self.requests[start : start + CHUNK_SIZE]]

    def give_back(self) -> None:
        """Nothing was sent: the leases end."""
        for tokens in self.tokens():
            JudgeJob.objects.held_by(*tokens).queue_again()


def gather(judge: Judge, body: IO[bytes], rng: Random) -> BatchDraft:
    """Lease jobs and write their requests to `body`, for as long as the batch, the budget and half a lease hold."""
    draft, started = BatchDraft(body=body), time.monotonic()
    limit = JudgePolicy.objects.current().daily_budget_usd
    left = None if limit is None else limit - budget.spent_today(clock.now())
    body.write(b'{"requests":[')
    wanted = ordering.backlog(clock.now(), judge.role).values_list("pk", flat=True)[:MOST_REQUESTS]
    for job_id in list(wanted):
        turn = worker.claim(job_id)
        if turn is None:
            continue
        made = _prepare(turn, rng, draft)
        if made is not None:
            request, text = made
            if left is not None and draft.usd + request.usd > left:
                draft.unpaid = request.usd
            if draft.unpaid is not None or body.tell() + len(text) > MOST_BYTES:
                worker.give_back(turn)
                break
            draft.add(request, text)
        if time.monotonic() - started > settings.JUDGE_LEASE_SECONDS / 2:
            break
    body.write(b"]}")
    return draft


def _prepare(turn: Turn, rng: Random, draft: BatchDraft) -> tuple[BatchRequest, bytes] | None:
    """A job's request and its text; None where it needs no call, its token's quota is spent, or it cannot be read."""
    session = worker.session_of(turn)
    worker.ask_by_its_kind(turn.job, session)
    held = judgeable(session)
    inputs_sha256 = inputs.inputs_sha256(held)
    if needless := worker.why_needless(turn, session, held, inputs_sha256):
        results.close(turn.job, turn.token, needless)
        return None
    payer = budget.payer(turn.job, session)
    if payer is not None and budget.left_of(payer, clock.now()) <= draft.paid[payer.pk]:
        worker.postpone(turn, payer)
        return None
    read = inputs.shown(session)
    # One over which a worker was lost before leaves a trace before it is read.
    if turn.job.losses:
        attempt, prompt = worker.read_evidence(turn, session, payer, inputs_sha256=inputs_sha256)
    else:
        attempt, prompt = None, worker.prompt_for(turn, session)
    if prompt is None:
        return None
    if isinstance(prompt, Deferred):
        attempt = attempt or worker.begin(turn, payer, inputs_sha256=inputs_sha256)
        if attempt is not None:
            results.apply(attempt, worker.unsent(prompt), turn.judge, inputs_sha256=inputs_sha256, rng=rng)
        return None
    if attempt is not None:
        attempt.delete()
    cost = limiter.shared().estimate(turn.judge.name, prompt.characters)
    request = BatchRequest(
        job_id=turn.job.pk,
        token=turn.token,
        prompt_sha256=prompt.sha256,
        inputs_sha256=inputs_sha256,
        citable=pack(prompt.citable),
        read=read,
        usd=budget.estimate(turn.judge, cost, batch=True),
        payer_id=None if payer is None else payer.pk,
    )
    params = client.request(turn.judge, prompt, turn.job.rubric)
    return request, json.dumps({"custom_id": turn.token.hex, "params": params}).encode()
