"""What an answer of the judge changes: attempt, job, grade and settlement, in one fenced transaction (L4)."""

import datetime as dt
import logging
import uuid
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, Value
from django.db.models.functions import Coalesce

from grading import clock, monitoring, review
from grading.evidence import material
from grading.judging import enqueuing, judges
from grading.judging.allowance import quota
from grading.judging.client import CallOutcome
from grading.judging.core import retry
from grading.judging.core.retry import Company, RetryDecision, RetryState, RetryStep
from grading.judging.core.verdict import Deferred, Graded, Invalid, Refused, Result
from grading.judging.core.verdict_score import VERSION, VerdictScore, disagreement, score
from grading.judging.judges import Judge
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole
from grading.reward import rewards
from grading.reward.decide import MAX_READINGS
from grading.reward.grade import SourceGrade, unscored
from grading.vocabulary import Reason, Source, Status

logger = logging.getLogger(__name__)

STATES = {
    RetryStep.DONE: JobState.DONE,
    RetryStep.AGAIN: JobState.QUEUED,
    RetryStep.PARK: JobState.PARKED,
    RetryStep.GIVE_UP: JobState.ABANDONED,
}
OUTCOMES: dict[type, AttemptOutcome] = {
    Graded: AttemptOutcome.GRADED,
    Deferred: AttemptOutcome.DEFERRED,
    Refused: AttemptOutcome.REFUSED,
    Invalid: AttemptOutcome.INVALID,
}
BAD_REPLIES = (AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# What an attempt's `error_type` says where the process that read the evidence was lost.
READER_LOST = "ReaderLost"
# And while its evidence is being read: of the jobs that a worker had when it died, this one is suspected.
READING = "Reading"
# The columns of a job and of its attempts that decide what follows from an answer.
JOB_COLUMNS = ("purpose", "attempts", "own_failures", "others_graded")
ATTEMPT_COLUMNS = ("outcome", "reason", "error_type", *(f"job__{name}" for name in JOB_COLUMNS))
# How far back the latest answers about other sessions are looked at.
LATELY = dt.timedelta(hours=1)
# Reasons that lie in what was judged; the others are somebody's failure.
DATA_REASONS = frozenset({Reason.REFUSED, Reason.UNPARSABLE_VERDICT, Reason.INPUT_TOO_LARGE})


def keep(attempt: JudgeAttempt, answer: CallOutcome, judge: Judge) -> CallOutcome:
    """Write down what came of a call, before anything is made of it: it may have been paid for. Returns it as kept.

    One statement, and the only one that must go well: whatever fails afterwards, the sweep completes it.
    """
    answer = replace(answer, model=answer.model or judge.model, route=answer.route or judge.route)
    JudgeAttempt.objects.filter(pk=attempt.pk).update(**answer.row, answer=answer.as_dict())
    return answer


def apply(
    attempt: JudgeAttempt, answer: CallOutcome, judge: Judge | None, *, inputs_sha256: str, rng: Random
) -> AttemptOutcome:
    """Record an answer, once, and ask for what a verdict calls for. It changes the job and the grades only while the
    attempt's lease holds; late, only itself. `judge`: whose quota learns of it, None where that judge is not used any
    more.
    """
    now = clock.now()
    if judge is not None:
        quota.learn(judge, answer.result, started_at=attempt.started_at, now=now)
    with transaction.atomic():
        session = Session.objects.for_grading().select_related("shares").get(pk=attempt.job.session_id)
        calls = list(JudgeAttempt.objects.filter(job=attempt.job_id).select_related("job").only(*ATTEMPT_COLUMNS))
        job = calls[0].job
        if any(row.pk == attempt.pk and row.outcome in OUTCOMES.values() for row in calls):
            return AttemptOutcome.LOST  # somebody else applied it meanwhile
        before = [row for row in calls if row.pk != attempt.pk]
        bad_replies = sum(row.outcome in BAD_REPLIES for row in before)
        scored = computed(answer.result, attempt.job.rubric) if isinstance(answer.result, Graded) else None
        if isinstance(answer.result, Graded) and scored is not None and not bad_replies:
            # Once in a job, a verdict whose overall number does not follow from its dimensions is none, so that the
            # judge is asked once more. After that the site's own score stands, and says so.
            problem = disagreement(answer.result.score, scored)
            if problem:
                answer = replace(answer, result=Invalid(detail=problem, reply=answer.result.rationale))
        tried = RetryState(
            attempts=job.attempts,
            bad_replies=bad_replies,
            too_large=sum(row.reason == Reason.INPUT_TOO_LARGE for row in before),
            own_failures=job.own_failures,
            others_graded=job.others_graded,
            readers_lost=readers_lost(calls),
        )
        base, limit = dt.timedelta(seconds=settings.JUDGE_BACKOFF_SECONDS), settings.JUDGE_MAX_ATTEMPTS
        around = company(attempt, answer.result, now)
        coming = retry.after(answer.result, tried, around, limit=limit, base=base, now=now, rng=rng)
        if not _move(attempt, coming, now):
            return _finish(attempt, answer, AttemptOutcome.LOST, coming, now)
        outcome = _finish(attempt, answer, OUTCOMES[type(answer.result)], coming, now)
        identity = {
            "model": answer.model or attempt.model,
            "route": answer.route or (judge.route if judge else ""),
        }
        if isinstance(answer.result, Graded):
            _verdict(session, attempt, answer, answer.result, inputs_sha256=inputs_sha256, **identity)
        else:
            said = _unscored(coming, answer.result, purpose=str(job.purpose))
            enqueuing.record(session, said, parallel=not job.is_first, **identity)
        rewards.settle(session)
        flagged = review.recheck(session, alarms=False)
        if outcome is AttemptOutcome.GRADED:
            enqueuing.after_verdict(session, attempt.job)
    # A failure may open an alarm; a verdict after failures may end one.
    monitoring.refresh_afterwards(flagged=flagged or outcome is not AttemptOutcome.GRADED or bool(before))
    return outcome


def readers_lost(calls: Iterable[JudgeAttempt]) -> int:
    """How many processes were lost over the evidence of these calls: readers, and workers that were at it."""
    return sum(
        row.error_type == READER_LOST or (row.error_type == READING and row.outcome == AttemptOutcome.LOST)
        for row in calls
    )


def company(attempt: JudgeAttempt, result: Result, now: dt.datetime) -> Company:
    """What the same judge made of other sessions meanwhile, where that decides anything."""
    decides = retry.MAY_BE_OWN | DATA_REASONS
    if isinstance(result, Graded) or (isinstance(result, Deferred) and result.reason not in decides):
        return Company()
    outcome = OUTCOMES[type(result)]
    reason = result.reason if isinstance(result, Deferred) else Reason.NONE
    session = attempt.job.session_id
    before = attempt.job.attempt_rows.exclude(pk=attempt.pk).exclude(finished_at=None).order_by("-pk").first()
    since = attempt.started_at if before is None else min(before.finished_at or now, attempt.started_at)
    alike = Q(outcome=outcome, reason=reason) if reason else Q(outcome=outcome)
    others = JudgeAttempt.objects.filter(judge=attempt.judge).exclude(job__session=session).order_by()
    counted = others.filter(finished_at__gt=since).aggregate(
        graded=Count("job", filter=Q(outcome=AttemptOutcome.GRADED), distinct=True),
        alike=Count("job", filter=alike, distinct=True),
    )
    answered = others.filter(finished_at__gt=now - LATELY, outcome__in=OUTCOMES.values()).order_by("-finished_at")
    in_a_row: set[int] = set()
    for its, came, why in answered.values_list("job__session", "outcome", "reason")[: 4 * retry.ALL_ALIKE]:
        if came != outcome or (reason and why != reason):
            break
        in_a_row.add(its)
    return Company(**counted, in_a_row=len(in_a_row))


def close(job: JudgeJob, token: uuid.UUID, why: str) -> None:
    """End a claimed job that needs no call."""
    mine = JudgeJob.objects.filter(pk=job.pk).held_by(token)
    with transaction.atomic():
        ended = mine.update(
            state=JobState.DONE,
            reason=Reason.NONE,
            finished_at=clock.now(),
            lease_token=None,
            leased_until=None,
        )
        if ended:
            logger.info("job %s of session %s ends without a call: %s", job.pk, job.session_id, why)
            rewards.settle(job.session)


def park(job: JudgeJob, session: Session, said: SourceGrade, now: dt.datetime) -> None:
    """Put a queued job aside, and say why. Runs in the caller's transaction, which holds the session."""
    JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
        state=JobState.PARKED,
        reason=said.reason,
        next_attempt_at=now + retry.PARKED_FOR,
        parked_at=Coalesce("parked_at", Value(now)),
    )
    enqueuing.record(session, said, parallel=not job.is_first)
    rewards.settle(session)
    review.recheck(session)


def note(job: JudgeJob, said: SourceGrade) -> None:
    """Write on a waiting job and its session why it waits, settle, and let the rules look: the screen says it."""
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).get(pk=job.session_id)
        if JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED).update(reason=said.reason):
            enqueuing.record(session, said)
            rewards.settle(session)
            review.recheck(session)


def computed(graded: Graded, rubric: Rubric) -> VerdictScore | None:
    """What a verdict is worth under its rubric; None where its dimensions are not the rubric's."""
    return score(graded.dimensions, weights(rubric), graded.reached)


def weights(rubric: Rubric) -> dict[str, float]:
    return {dimension["name"]: dimension["weight"] for dimension in rubric.dimensions}


def _move(attempt: JudgeAttempt, coming: RetryDecision, now: dt.datetime) -> bool:
    """Move the job on, if the lease is still this attempt's."""
    out = [JobState.LEASED, JobState.SENT]
    mine = JudgeJob.objects.filter(pk=attempt.job_id, state__in=out, lease_token=attempt.lease_token)
    ends = coming.step is not RetryStep.AGAIN
    attempts = attempt.job.attempts + coming.counts
    asks = attempt.judge if ends else attempt.job.judge
    if not ends and attempt.job.is_first:
        # Another model behind the same key is asked, in turns, once the first's service failed often enough.
        its_turn = coming.counts and retry.asks_fallback(attempts, settings.JUDGE_FALLBACK_AFTER)
        asks = JudgeRole.FALLBACK if its_turn and judges.fallback() is not None else JudgeRole.FIRST
    parked = {"parked_at": Coalesce("parked_at", Value(now))} if coming.step is RetryStep.PARK else {}
    moved = mine.update(
        **parked,
        state=STATES[coming.step],
        reason=coming.reason,
        attempts=attempts,
        own_failures=F("own_failures") + int(coming.own),
        others_graded=F("others_graded") + coming.others_graded,
        judge=asks,
        next_attempt_at=now + coming.wait,
        finished_at=now if ends else None,
        lease_token=None,
        leased_until=None,
    )
    return bool(moved)


def _finish(
    attempt: JudgeAttempt, answer: CallOutcome, outcome: AttemptOutcome, coming: RetryDecision, now: dt.datetime
) -> AttemptOutcome:
    """The attempt's row says what was sent, what it cost and what came of it, late or not."""
    detail = coming.detail
    if isinstance(answer.result, Invalid) and answer.result.reply:
        detail = f"{detail}\n{answer.result.reply}"
    if isinstance(answer.result, Graded):
        detail = f"score {answer.result.score:g}"
    if outcome is AttemptOutcome.LOST:
        detail = f"Answered after its lease had ended, so it changes nothing: {detail}"
    retry_at = now + coming.wait if coming.step is RetryStep.AGAIN else None
    if isinstance(answer.result, Deferred) and answer.result.retry_at is not None:
        retry_at = answer.result.retry_at
    # A definite error was not charged for; a verdict says what it cost; a timeout may have cost what was expected.
    charged = answer.row.get("http_status") is None and attempt.estimated_usd is not None
    columns = {
        **answer.row,
        "estimated_usd": attempt.estimated_usd if charged else None,
        "finished_at": now,
        "outcome": outcome,
        "reason": coming.reason,
        "detail": detail,
        "retry_at": retry_at,
        "model": answer.model or attempt.model,
        "answer": None,
        # The verdict says it.
        **({"read": {}} if outcome is AttemptOutcome.GRADED else {}),
    }
    JudgeAttempt.objects.filter(pk=attempt.pk).update(**columns)
    return outcome


def _unscored(coming: RetryDecision, result: Result, **kept: str) -> SourceGrade:
    status = Status.UNSCORED if coming.reason in DATA_REASONS else Status.FAILED
    if isinstance(result, Invalid) and result.reply:
        kept["reply"] = result.reply
    obstacle = quota.obstacle()
    # What concerns everybody is said in the same words on every session.
    detail = obstacle.detail if obstacle is not None and obstacle.reason is coming.reason else coming.detail
    return unscored(Source.JUDGE, coming.reason, version=VERSION, detail=detail, status=status, **kept)


def _verdict(
    session: Session,
    attempt: JudgeAttempt,
    answer: CallOutcome,
    graded: Graded,
    *,
    inputs_sha256: str,
    model: str,
    route: str,
) -> Grade:
    """The judge's grade with its whole identity (L8, L14). The same asked again is a replicate, never a conflict."""
    identity = {
        "version": VERSION,
        "model": model,
        "route": route,
        "rubric": attempt.job.rubric.sha256,
        "inputs_sha256": inputs_sha256,
    }
    job = attempt.job
    said = [row for row in session.grades.all() if (row.source, row.status) == (Source.JUDGE, Status.SCORED)]
    alike = [row for row in said if row.sample == job.sample and all(getattr(row, k) == v for k, v in identity.items())]
    cited = len(graded.citations)
    checked = f"{cited} of {cited} citations check out" if cited else "No transcript to cite"
    scored = computed(graded, job.rubric)
    value = graded.score if scored is None else scored.value
    # A verdict is vouched for by whoever vouches for what it was given on: who sent the log, or what there is without.
    witness = material.load_material(session).witness
    return Grade.objects.create(
        session=session,
        source=Source.JUDGE,
        status=Status.SCORED,
        value=value,
        detail=". ".join(filter(None, [checked, *([] if scored is None else [disagreement(graded.score, scored)])])),
        evidence={
            "dimensions": dict(graded.dimensions),
            "rationale": graded.rationale,
            "reached": graded.reached,
            "citations": list(graded.citations),
            "prompt_sha256": attempt.prompt_sha256,
            "attempt": attempt.pk,
            "purpose": str(job.purpose),
            "read": attempt.read,
            "witness": witness.value,
            **terms(graded.score, scored),
            **_spread(session, job, value),
        },
        replicate=len(alike),
        parallel=job.is_parallel,
        sample=job.sample,
        sample_of=job.sample_of,
        cost_usd=answer.cost_usd,
        duration_ms=_took_ms(attempt),
        **identity,
    )


def _took_ms(attempt: JudgeAttempt) -> int | None:
    """None where the clock was set meanwhile: then nobody knows."""
    took = (clock.now() - attempt.started_at) // dt.timedelta(milliseconds=1)
    return took if 0 <= took < 2**31 else None


def _spread(session: Session, job: JudgeJob, value: float) -> dict[str, Any]:
    """All readings with their median and how far they are apart, once there are enough."""
    if job.sample_of is None:
        return {}
    further = session.grades.filter(sample_of=job.sample_of).order_by("pk").values_list("value", flat=True)
    values = [each for each in (job.sample_of.value, *further, value) if each is not None]
    if len(values) < MAX_READINGS:
        return {}
    return {"samples": values, "median": median(values), "spread": round(max(values) - min(values), 6)}


def terms(overall: float, scored: VerdictScore | None) -> dict[str, Any]:
    """How a verdict's score came about, for its grade's evidence: the judge's own number, the sum, the caps; and where
    that number does not follow from the sum, that it does not.
    """
    if scored is None:
        return {}
    problem = disagreement(overall, scored)
    return {"overall": overall, **scored.as_dict(), **({"disagrees": problem} if problem else {})}
