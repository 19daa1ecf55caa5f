"""Applies an answer of the judge: attempt, job, grade and settlement, in one fenced transaction."""

import datetime as dt
import logging
import uuid
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, Value
from django.db.models.functions import Coalesce

from grading import clock
from grading.backoff import DICE
from grading.evidence import material
from grading.judging import enqueuing, judges
from grading.judging.allowance import quota
from grading.judging.client import CallOutcome
from grading.judging.core import retry
from grading.judging.core.retry import OtherAnswers, RetryDecision, RetryState, RetryStep
from grading.judging.core.verdict import Deferred, Graded, Invalid, Refused, Result
from grading.judging.core.verdict_score import VERSION, VerdictScore, disagreement, score
from grading.judging.judges import Judge
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole
from grading.monitoring.watch import refresh_afterwards
from grading.review import queue
from grading.reward import rewards
from grading.reward.decide import MAX_READINGS
from grading.reward.explain import number
from grading.reward.grade import SourceGrade, unscored
from grading.vocabulary import Reason, Source, Status

logger = logging.getLogger(__name__)

OUTCOMES: dict[type, AttemptOutcome] = {
    Graded: AttemptOutcome.GRADED,
    Deferred: AttemptOutcome.DEFERRED,
    Refused: AttemptOutcome.REFUSED,
    Invalid: AttemptOutcome.INVALID,
}
BAD_REPLIES = (AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# The `error_type` of an attempt whose evidence reader was lost.
READER_LOST = "ReaderLost"
# The `error_type` of an attempt while its evidence is read. If a worker dies, that attempt's evidence is suspected.
READING = "Reading"
# The columns on which the decision after an answer depends.
JOB_COLUMNS = ("purpose", "attempts", "own_failures", "others_graded")
ATTEMPT_COLUMNS = ("outcome", "reason", "error_type", *(f"job__{name}" for name in JOB_COLUMNS))
# How far back answers about other sessions count.
RECENT = dt.timedelta(hours=1)
# Reasons that lie in the session's data; the others are failures of the judge, the provider or the site.
DATA_REASONS = frozenset({Reason.REFUSED, Reason.UNPARSABLE_VERDICT, Reason.INPUT_TOO_LARGE})


def store_answer(attempt: JudgeAttempt, answer: CallOutcome, judge: Judge) -> CallOutcome:
    """Store the outcome of a call before it is applied. Returns it with model and route.

    The call may have been paid for: if anything fails afterwards, the sweep applies the stored outcome.
    """
    answer = replace(answer, model=answer.model or judge.model, route=answer.route or judge.route)
    JudgeAttempt.objects.filter(pk=attempt.pk).update(**answer.row, answer=answer.as_dict())
    return answer


def apply(attempt: JudgeAttempt, answer: CallOutcome, judge: Judge | None, *, inputs_sha256: str) -> AttemptOutcome:
    """Apply an answer once, and make the jobs that follow a verdict. Returns the attempt's outcome.

    The quota always learns from the answer. If another worker has applied it already, nothing else changes. If the
    lease has ended, only the attempt changes. `judge` is None if it is no longer in use; then no quota is updated.
    """
    now = clock.now()
    if judge is not None:
        quota.learn(judge, answer.result, started_at=attempt.started_at, now=now)
    with transaction.atomic():
        session = Session.objects.for_grading().select_related("shares").get(pk=attempt.job.session_id)
        calls = list(JudgeAttempt.objects.filter(job=attempt.job_id).select_related("job").only(*ATTEMPT_COLUMNS))
        job = calls[0].job  # with its present columns; `attempt.job` was loaded before the call
        if any(row.pk == attempt.pk and row.outcome in OUTCOMES.values() for row in calls):
            return AttemptOutcome.LOST  # another worker applied it meanwhile
        earlier = [row for row in calls if row.pk != attempt.pk]
        bad_replies = sum(row.outcome in BAD_REPLIES for row in earlier)
        scored = compute_score(answer.result, attempt.job.rubric) if isinstance(answer.result, Graded) else None
        if isinstance(answer.result, Graded) and scored is not None and not bad_replies:
            # If the overall number does not follow from the dimensions, the job's first verdict is discarded and the
            # judge is asked again. After that the site's own score stands.
            problem = disagreement(answer.result.score, scored)
            if problem:
                answer = replace(answer, result=Invalid(detail=problem, reply=answer.result.rationale))
        state = RetryState(
            attempts=job.attempts,
            bad_replies=bad_replies,
            too_large=sum(row.reason == Reason.INPUT_TOO_LARGE for row in earlier),
            own_failures=job.own_failures,
            others_graded=job.others_graded,
            readers_lost=readers_lost(calls),
        )
        decision = retry.decide(
            answer.result,
            state,
            other_answers(attempt, answer.result, now),
            limit=settings.JUDGE_MAX_ATTEMPTS,
            base=dt.timedelta(seconds=settings.JUDGE_BACKOFF_SECONDS),
            now=now,
            rng=DICE,
        )
        if not _update_job(attempt, decision, now):
            return _finish(attempt, answer, AttemptOutcome.LOST, decision, now)
        outcome = _finish(attempt, answer, OUTCOMES[type(answer.result)], decision, now)
        identity = {"model": answer.model or attempt.model, "route": answer.route or (judge.route if judge else "")}
        if isinstance(answer.result, Graded):
            _create_verdict(session, attempt, answer, answer.result, inputs_sha256=inputs_sha256, **identity)
        else:
            grade = _grade_without_verdict(job, answer.result, decision)
            enqueuing.record_grade(session, grade, parallel=not job.is_first, **identity)
        rewards.settle(session)
        flagged = queue.recheck(session, alarms=False)
        if outcome is AttemptOutcome.GRADED:
            enqueuing.after_verdict(session, attempt.job)
    # A failure may open an alarm; a verdict after failures may end one.
    refresh_afterwards(flagged=flagged or outcome is not AttemptOutcome.GRADED or bool(earlier))
    return outcome


def _grade_without_verdict(job: JudgeJob, result: Result, decision: RetryDecision) -> SourceGrade:
    """The grade that records why the job has no verdict yet."""
    evidence = {"purpose": str(job.purpose)}
    if isinstance(result, Invalid) and result.reply:
        evidence["reply"] = result.reply
    status = Status.UNSCORED if decision.reason in DATA_REASONS else Status.FAILED
    detail = decision.detail
    obstacle = quota.obstacle()
    if obstacle is not None and obstacle.reason is decision.reason:
        detail = obstacle.detail  # the same text on every session that waits for this reason
    return unscored(Source.JUDGE, decision.reason, version=VERSION, detail=detail, status=status, **evidence)


def readers_lost(calls: Iterable[JudgeAttempt]) -> int:
    """How many readers and workers were lost while they read the evidence for these calls."""
    return sum(
        row.error_type == READER_LOST or (row.error_type == READING and row.outcome == AttemptOutcome.LOST)
        for row in calls
    )


def other_answers(attempt: JudgeAttempt, result: Result, now: dt.datetime) -> OtherAnswers:
    """What the same judge answered about other sessions since the job's previous attempt.

    Not counted if the decision about this result does not depend on it.
    """
    reasons_to_compare = retry.MAY_BE_OWN | DATA_REASONS
    if isinstance(result, Graded) or (isinstance(result, Deferred) and result.reason not in reasons_to_compare):
        return OtherAnswers()
    outcome = OUTCOMES[type(result)]
    reason = result.reason if isinstance(result, Deferred) else Reason.NONE
    session = attempt.job.session_id
    previous = attempt.job.attempt_rows.exclude(pk=attempt.pk).exclude(finished_at=None).order_by("-pk").first()
    since = attempt.started_at if previous is None else min(previous.finished_at or now, attempt.started_at)
    has_same_result = Q(outcome=outcome, reason=reason) if reason else Q(outcome=outcome)
    others = JudgeAttempt.objects.filter(judge=attempt.judge).exclude(job__session=session).order_by()
    counts = others.filter(finished_at__gt=since).aggregate(
        graded=Count("job", filter=Q(outcome=AttemptOutcome.GRADED), distinct=True),
        failed_alike=Count("job", filter=has_same_result, distinct=True),
    )
    answered = others.filter(finished_at__gt=now - RECENT, outcome__in=OUTCOMES.values()).order_by("-finished_at")
    # More than ALL_ALIKE, because a session may have several of the latest answers.
    latest = answered.values_list("job__session", "outcome", "reason")[: 4 * retry.ALL_ALIKE]
    sessions_in_a_row: set[int] = set()
    for other_session, other_outcome, other_reason in latest:
        if other_outcome != outcome or (reason and other_reason != reason):
            break
        sessions_in_a_row.add(other_session)
    return OtherAnswers(**counts, in_a_row=len(sessions_in_a_row))


def close(job: JudgeJob, token: uuid.UUID, why: str) -> None:
    """End a claimed job that needs no call, unless its lease was lost."""
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


def park(job: JudgeJob, session: Session, grade: SourceGrade, now: dt.datetime) -> None:
    """Park a queued job and record why. Runs in the caller's transaction, which has locked the session."""
    JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
        state=JobState.PARKED,
        reason=grade.reason,
        next_attempt_at=now + retry.PARKED_FOR,
        parked_at=Coalesce("parked_at", Value(now)),
    )
    enqueuing.record_grade(session, grade, parallel=not job.is_first)
    rewards.settle(session)
    queue.recheck(session)


def record_wait(job: JudgeJob, grade: SourceGrade) -> None:
    """Record on a waiting job and its session why it waits, settle, and check the review rules."""
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",)).get(pk=job.session_id)
        if JudgeJob.objects.filter(pk=job.pk, state=JobState.QUEUED).update(reason=grade.reason):
            enqueuing.record_grade(session, grade)
            rewards.settle(session)
            queue.recheck(session)


def compute_score(graded: Graded, rubric: Rubric) -> VerdictScore | None:
    """The score of a verdict under its rubric; None if its dimensions are not the rubric's."""
    weights = {dimension["name"]: dimension["weight"] for dimension in rubric.dimensions}
    return score(graded.dimensions, weights, graded.reached)


def _update_job(attempt: JudgeAttempt, decision: RetryDecision, now: dt.datetime) -> bool:
    """Write the decision on the job. Returns whether the attempt still had the lease; without it nothing changes."""
    under_way = [JobState.LEASED, JobState.SENT]
    mine = JudgeJob.objects.filter(pk=attempt.job_id, state__in=under_way, lease_token=attempt.lease_token)
    is_queued_again = decision.step is RetryStep.AGAIN
    attempts = attempt.job.attempts + int(decision.is_counted)
    next_judge = attempt.job.judge if is_queued_again else attempt.judge
    if is_queued_again and attempt.job.is_first:
        # Once the first model's service has failed often enough, another model behind the same key takes turns with it.
        is_fallbacks_turn = decision.is_counted and retry.is_fallbacks_turn(attempts, settings.JUDGE_FALLBACK_AFTER)
        uses_fallback = is_fallbacks_turn and JudgeRole.FALLBACK in judges.configured()
        next_judge = JudgeRole.FALLBACK if uses_fallback else JudgeRole.FIRST
    parked_at = {"parked_at": Coalesce("parked_at", Value(now))} if decision.step is RetryStep.PARK else {}
    updated = mine.update(
        **parked_at,
        state=JobState(decision.step),
        reason=decision.reason,
        attempts=attempts,
        own_failures=F("own_failures") + int(decision.is_own),
        others_graded=F("others_graded") + decision.others_graded,
        judge=next_judge,
        next_attempt_at=now + decision.wait,
        finished_at=None if is_queued_again else now,
        lease_token=None,
        leased_until=None,
    )
    return bool(updated)


def _finish(
    attempt: JudgeAttempt, answer: CallOutcome, outcome: AttemptOutcome, decision: RetryDecision, now: dt.datetime
) -> AttemptOutcome:
    """Write the outcome and the cost on the attempt, also after its lease has ended. Returns the outcome."""
    detail = decision.detail
    if isinstance(answer.result, Invalid) and answer.result.reply:
        detail = f"{detail}\n{answer.result.reply}"
    if isinstance(answer.result, Graded):
        detail = f"score {number(answer.result.score)}"
    if outcome is AttemptOutcome.LOST:
        detail = f"Answered after its lease had ended, so it changes nothing: {detail}"
    retry_at = now + decision.wait if decision.step is RetryStep.AGAIN else None
    if isinstance(answer.result, Deferred) and answer.result.retry_at is not None:
        retry_at = answer.result.retry_at
    # An HTTP error was not charged. A timeout may have cost what was expected, and so did a reply that does not say.
    has_unknown_cost = answer.row.get("http_status") is None or answer.row.get("cost_usd", 0) is None
    columns = {
        **answer.row,
        "estimated_usd": attempt.estimated_usd if has_unknown_cost else None,
        "finished_at": now,
        "outcome": outcome,
        "reason": decision.reason,
        "detail": detail,
        "retry_at": retry_at,
        "model": answer.model or attempt.model,
        "answer": None,
        # The verdict's grade has what was read.
        **({"read": {}} if outcome is AttemptOutcome.GRADED else {}),
    }
    JudgeAttempt.objects.filter(pk=attempt.pk).update(**columns)
    return outcome


def _create_verdict(
    session: Session,
    attempt: JudgeAttempt,
    answer: CallOutcome,
    graded: Graded,
    *,
    inputs_sha256: str,
    model: str,
    route: str,
) -> Grade:
    """Create the grade of a verdict. Another verdict with the same identity is a replicate."""
    identity = {
        "version": VERSION,
        "model": model,
        "route": route,
        "rubric": attempt.job.rubric.sha256,
        "inputs_sha256": inputs_sha256,
    }
    job = attempt.job
    key = {"source": Source.JUDGE, "status": Status.SCORED, "sample": job.sample, **identity}
    earlier_replicates = [row for row in session.grades.all() if all(getattr(row, name) == key[name] for name in key)]
    count = len(graded.citations)
    citations = f"{count} of {count} citations check out" if count else "No transcript to cite"
    scored = compute_score(graded, job.rubric)
    value = graded.score if scored is None else scored.value
    # Whoever vouches for the evidence that the judge read vouches for the verdict.
    witness = material.load_material(session).witness
    problem = "" if scored is None else disagreement(graded.score, scored)
    # All readings with their median and range, once there are enough.
    all_readings: dict[str, Any] = {}
    if job.sample_of is not None:
        earlier = session.grades.filter(sample_of=job.sample_of).order_by("pk").values_list("value", flat=True)
        values = [reading for reading in (job.sample_of.value, *earlier, value) if reading is not None]
        if len(values) >= MAX_READINGS:
            spread = round(max(values) - min(values), 6)
            all_readings = {"samples": values, "median": median(values), "spread": spread}
    took_ms = (clock.now() - attempt.started_at) // dt.timedelta(milliseconds=1)
    return Grade.objects.create(
        session=session,
        source=Source.JUDGE,
        status=Status.SCORED,
        value=value,
        detail=". ".join(filter(None, [citations, problem])),
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
            **score_evidence(graded.score, scored),
            **all_readings,
        },
        replicate=len(earlier_replicates),
        parallel=job.is_parallel,
        sample=job.sample,
        sample_of=job.sample_of,
        cost_usd=answer.cost_usd,
        duration_ms=took_ms if 0 <= took_ms < 2**31 else None,  # None if the clock was set meanwhile
        **identity,
    )


def score_evidence(overall: float, scored: VerdictScore | None) -> dict[str, Any]:
    """How a score was computed, for the grade's evidence; empty if `scored` is None. `overall` is the judge's own
    number.
    """
    if scored is None:
        return {}
    problem = disagreement(overall, scored)
    return {"overall": overall, **scored.as_dict(), **({"disagrees": problem} if problem else {})}
