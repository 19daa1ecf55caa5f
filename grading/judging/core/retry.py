"""What becomes of a job after one answer: done, again, or given up. Pure; randomness is handed in."""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from grading.backoff import LONGEST_WAIT, backoff
from grading.judging.core.verdict import DeferralScope, Deferred, Graded, Invalid, Refused, Result
from grading.vocabulary import Reason

# Trouble that may be this job's own. An overloaded or unreachable service is waited for, however long it takes.
GIVEN_UP = frozenset({Reason.TIMEOUT, Reason.NEEDS_ATTENTION, Reason.UNREADABLE})


class RetryStep(StrEnum):
    DONE = "done"
    AGAIN = "again"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """What the job has behind it: failed `attempts` that count, replies that were no verdict, digests too large."""

    attempts: int = 0
    bad_replies: int = 0
    too_large: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """`wait` until the next attempt; `counts` where this attempt counts towards giving up."""

    step: RetryStep
    reason: Reason = Reason.NONE
    detail: str = ""
    wait: dt.timedelta = dt.timedelta(0)
    counts: bool = False


def asks_fallback(failures: int, patience: int) -> bool:
    """Whether the other model is asked after so many failures: once `patience` are reached, in turns with the first."""
    return failures >= patience and (failures - patience) % 2 == 0


def after(
    result: Result, tried: RetryState, *, limit: int, base: dt.timedelta, now: dt.datetime, rng: Random
) -> RetryDecision:
    """The next step after `result`, given what was tried before it. `limit` ≥ 1 attempts, `base` the first backoff."""
    match result:
        case Graded():
            return RetryDecision(step=RetryStep.DONE)
        case Refused():
            step = RetryStep.GIVE_UP if tried.bad_replies else RetryStep.AGAIN
            return RetryDecision(step=step, reason=Reason.REFUSED, detail=result.detail)
        case Invalid():
            step = RetryStep.GIVE_UP if tried.bad_replies else RetryStep.AGAIN
            return RetryDecision(step=step, reason=Reason.UNPARSABLE_VERDICT, detail=result.detail)
        case Deferred(scope=DeferralScope.INPUT):
            step = RetryStep.GIVE_UP if tried.too_large else RetryStep.AGAIN
            return RetryDecision(step=step, reason=result.reason, detail=result.detail)
        case Deferred(scope=DeferralScope.JOB):
            failures = tried.attempts + 1
            asked = dt.timedelta(0) if result.retry_at is None else result.retry_at - now
            wait = max(backoff(failures, base, rng), min(asked, LONGEST_WAIT))
            step = RetryStep.GIVE_UP if failures >= limit and result.reason in GIVEN_UP else RetryStep.AGAIN
            return RetryDecision(step=step, reason=result.reason, detail=result.detail, wait=wait, counts=True)
        case Deferred():
            # The quota row says when; the job keeps its attempts and is due as soon as the quota lets it.
            return RetryDecision(step=RetryStep.AGAIN, reason=result.reason, detail=result.detail)
