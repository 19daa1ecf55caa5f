"""What an answer of the judge changes: attempt, job, grade and settlement, in one fenced transaction (L4)."""

import datetime as dt
import logging
import uuid
from dataclasses import replace
from random import Random
from statistics import median
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from grading import review
from grading.judging import judges
from grading.judging.allowance import quota
from grading.judging.client import CallOutcome
from grading.judging.core.retry import RetryDecision, RetryState, RetryStep, after, asks_fallback
from grading.judging.core.verdict import Deferred, Graded, Invalid, Refused, Result
from grading.judging.core.verdict_score import VERSION, VerdictScore, disagreement, score
from grading.judging.judges import Judge
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole
from grading.reward import rewards
from grading.reward.decide import READINGS
from grading.reward.grade import SourceGrade, unscored
from grading.reward.witness import weakest
from grading.vocabulary import Reason, Source, Status

logger = logging.getLogger(__name__)

STATES = {RetryStep.DONE: JobState.DONE, RetryStep.AGAIN: JobState.QUEUED, RetryStep.GIVE_UP: JobState.ABANDONED}
OUTCOMES: dict[type, AttemptOutcome] = {
    Graded: AttemptOutcome.GRADED,
    Deferred: AttemptOutcome.DEFERRED,
    Refused: AttemptOutcome.REFUSED,
    Invalid: AttemptOutcome.INVALID,
}
BAD_REPLIES = (AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# Reasons that lie in what was judged; the others are somebody's failure.
DATA_REASONS = frozenset({Reason.REFUSED, Reason.UNPARSABLE_VERDICT, Reason.INPUT_TOO_LARGE})


def apply(
    attempt: JudgeAttempt, answer: CallOutcome, judge: Judge, *, inputs_sha256: str, rng: Random
) -> AttemptOutcome:
    """Record an answer. It changes the job and the grades only while the attempt's lease holds; late, only itself."""
    now = timezone.now()
    quota.learn(judge, answer.result, started_at=attempt.started_at, now=now)
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).get(judge_jobs=attempt.job_id)
        job = JudgeJob.objects.get(pk=attempt.job_id)
        before = job.attempt_rows.exclude(pk=attempt.pk)
        bad_replies = before.filter(outcome__in=BAD_REPLIES).count()
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
            too_large=before.filter(reason=Reason.INPUT_TOO_LARGE).count(),
        )
        base = dt.timedelta(seconds=settings.JUDGE_BACKOFF_SECONDS)
        coming = after(answer.result, tried, limit=settings.JUDGE_MAX_ATTEMPTS, base=base, now=now, rng=rng)
        if not _move(attempt, coming, now):
            return _finish(attempt, answer, AttemptOutcome.LOST, coming, now)
        outcome = _finish(attempt, answer, OUTCOMES[type(answer.result)], coming, now)
        identity = {"model": answer.model or judge.model, "route": answer.route or judge.route}
        if isinstance(answer.result, Graded):
            _verdict(session, attempt, answer, answer.result, inputs_sha256=inputs_sha256, **identity)
        else:
            said = _unscored(coming, answer.result, purpose=str(job.purpose))
            record(session, said, parallel=not job.is_first, **identity)
        rewards.settle(session)
        review.recheck(session)
    return outcome


def close(job: JudgeJob, token: uuid.UUID, why: str) -> None:
    """End a claimed job that needs no call."""
    mine = JudgeJob.objects.filter(pk=job.pk).held_by(token)
    with transaction.atomic():
        ended = mine.update(
            state=JobState.DONE,
            reason=Reason.NONE,
            finished_at=timezone.now(),
            lease_token=None,
            leased_until=None,
        )
        if ended:
            logger.info("job %s of session %s ends without a call: %s", job.pk, job.session_id, why)
            rewards.settle(job.session)


def record(session: Session, said: SourceGrade, *, parallel: bool = False, **identity: Any) -> Grade | None:
    """Append what a judge says without a score, where it does not say so already."""
    latest = session.grades.filter(source=Source.JUDGE, parallel=parallel).order_by("-pk").first()
    if latest is not None and (latest.status, latest.reason) == (said.status, said.reason):
        return None
    return Grade.objects.create(
        session=session,
        source=Source.JUDGE,
        status=said.status,
        reason=said.reason,
        detail=said.detail,
        evidence=dict(said.evidence),
        version=said.version,
        parallel=parallel,
        **identity,
    )


def note(job: JudgeJob, said: SourceGrade) -> None:
    """Write on a waiting job and its session why it waits, settle, and let the rules look: the screen says it."""
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).get(pk=job.session_id)
        if JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED).update(reason=said.reason):
            record(session, said)
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
        its_turn = coming.counts and asks_fallback(attempts, settings.JUDGE_FALLBACK_AFTER)
        asks = JudgeRole.FALLBACK if its_turn and judges.fallback() is not None else JudgeRole.FIRST
    moved = mine.update(
        state=STATES[coming.step],
        reason=coming.reason,
        attempts=attempts,
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
    same = session.grades.verdicts().filter(sample=job.sample, **identity)
    cited = len(graded.citations)
    checked = f"{cited} of {cited} citations check out" if cited else "No transcript to cite"
    scored = computed(graded, job.rubric)
    value = graded.score if scored is None else scored.value
    # Who vouches for the effects that a verdict on the session rests on: the weakest of those who do.
    holds = rewards.holding(session)
    effects = (holds[source] for source in (Source.TRAJECTORY, Source.CONSUMPTION) if source in holds)
    witness = weakest(grade.witness for grade in effects if grade.value is not None)
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
        replicate=same.count(),
        parallel=job.is_parallel,
        sample=job.sample,
        sample_of=job.sample_of,
        cost_usd=answer.cost_usd,
        duration_ms=int((timezone.now() - attempt.started_at).total_seconds() * 1000),
        **identity,
    )


def _spread(session: Session, job: JudgeJob, value: float) -> dict[str, Any]:
    """All readings with their median and how far they are apart, once there are enough."""
    if job.sample_of is None:
        return {}
    further = session.grades.filter(sample_of=job.sample_of).order_by("pk").values_list("value", flat=True)
    values = [each for each in (job.sample_of.value, *further, value) if each is not None]
    if len(values) < READINGS:
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
