"""Decides what happens to a job after an answer: done, retried, parked, or given up. Pure; randomness is passed in.

Only an answer about the session itself ends its job. After any other failure the job is retried with backoff, or parked
if the session itself seems to be the cause and each try may be billed.
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from grading.backoff import MAX_WAIT, backoff
from grading.judging.core.verdict import DeferralScope, Deferred, Graded, Invalid, Refused, Result
from grading.vocabulary import Reason

# Failures that this session may cause itself, and that may be billed each time.
MAY_BE_OWN = frozenset({Reason.TIMEOUT, Reason.NEEDS_ATTENTION})
# How many other sessions must have been judged meanwhile before a job's failures are attributed to its session.
OTHERS_GRADED = 20
# If the latest answers about this many other sessions were as bad, the cause is not this session.
ALL_ALIKE = 3
# After this many lost readers of one session's evidence its job is parked.
READERS_LOST = 3
PARKED_FOR, PARKED_TRIES = dt.timedelta(days=1), dt.timedelta(days=7)


class RetryStep(StrEnum):
    """What happens to the job. The values are those of the job's next state (`JobState`)."""

    DONE = "done"
    AGAIN = "queued"
    PARK = "parked"
    GIVE_UP = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherAnswers:
    """The same judge's answers about other sessions since this job's previous attempt.

    Of the sessions, `graded` got a verdict, and `failed_alike` failed as this one did. `in_a_row` is the number of
    sessions whose answers, the latest ones without a gap, failed as this one did.
    """

    graded: int = 0
    failed_alike: int = 0
    in_a_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """The job's history.

    `attempts` are the failed ones that count for the backoff. `own_failures` of them were attributed to the session,
    because `others_graded` other sessions were judged meanwhile. `bad_replies` counts replies without a verdict,
    `too_large` digests that were too large, and `readers_lost` processes that were lost while they read the evidence.
    """

    attempts: int = 0
    bad_replies: int = 0
    too_large: int = 0
    own_failures: int = 0
    others_graded: int = 0
    readers_lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """The next step. `wait` is the time until the next attempt. `is_counted`: the attempt counts for the backoff.

    `is_own`: the failure is attributed to the session, because `others_graded` other sessions were judged meanwhile.
    """

    step: RetryStep
    reason: Reason = Reason.NONE
    detail: str = ""
    wait: dt.timedelta = dt.timedelta(0)
    is_counted: bool = False
    is_own: bool = False
    others_graded: int = 0


def is_fallbacks_turn(failures: int, patience: int) -> bool:
    """Whether the fallback model is asked next: after `patience` failures, then after every second failure."""
    return failures >= patience and (failures - patience) % 2 == 0


def decide(
    result: Result,
    state: RetryState,
    others: OtherAnswers = OtherAnswers(),
    *,
    limit: int,
    base: dt.timedelta,
    now: dt.datetime,
    rng: Random,
) -> RetryDecision:
    """The next step after `result`. A job is parked after `limit` ≥ 1 failures of its own; `base` is the first wait."""
    failures = state.attempts + 1
    match result:
        case Graded():
            return RetryDecision(step=RetryStep.DONE)
        case Refused() | Invalid() | Deferred(scope=DeferralScope.INPUT):
            reason = Reason.REFUSED if isinstance(result, Refused) else Reason.UNPARSABLE_VERDICT
            same_failures = state.bad_replies
            if isinstance(result, Deferred):
                reason = result.reason
                same_failures = state.too_large
            if not same_failures:
                # After a wait, in which it shows whether other sessions have the same problem.
                wait = backoff(1, base, rng)
                return RetryDecision(step=RetryStep.AGAIN, reason=reason, detail=result.detail, wait=wait)
            if others.in_a_row < ALL_ALIKE:
                return RetryDecision(step=RetryStep.GIVE_UP, reason=reason, detail=result.detail)
            step = RetryStep.PARK if failures >= limit else RetryStep.AGAIN
            wait = PARKED_FOR if step is RetryStep.PARK else backoff(failures, base, rng)
            return RetryDecision(step=step, reason=reason, detail=result.detail, wait=wait, is_counted=True)
        case Deferred(scope=DeferralScope.READER):
            step = RetryStep.PARK if state.readers_lost + 1 >= READERS_LOST else RetryStep.AGAIN
            wait = PARKED_FOR if step is RetryStep.PARK else backoff(failures, base, rng)
            return RetryDecision(step=step, reason=result.reason, detail=result.detail, wait=wait, is_counted=True)
        case Deferred(scope=DeferralScope.JOB):
            is_own = result.reason in MAY_BE_OWN and others.graded > others.failed_alike
            others_graded = others.graded if is_own else 0
            failed_often = state.own_failures + 1 >= limit
            others_are_fine = state.others_graded + others_graded >= OTHERS_GRADED
            is_parked = is_own and failed_often and others_are_fine
            wait = backoff(failures, base, rng)
            retry_after = dt.timedelta(0) if result.retry_at is None else result.retry_at - now
            return RetryDecision(
                step=RetryStep.PARK if is_parked else RetryStep.AGAIN,
                reason=result.reason,
                detail=result.detail,
                wait=PARKED_FOR if is_parked else max(wait, min(retry_after, MAX_WAIT)),
                is_counted=True,
                is_own=is_own,
                others_graded=others_graded,
            )
        case Deferred():
            # The job keeps its attempts and is due as soon as the quota allows it.
            return RetryDecision(step=RetryStep.AGAIN, reason=result.reason, detail=result.detail)
