"""What becomes of a job after one answer: done, again, parked, or given up. Pure; randomness is handed in.

Only what the judge says of this very session ends its job. All other trouble waits: in growing gaps, or, where it
seems to be the session's own and each try may be billed, parked.
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from grading.backoff import MAX_WAIT, backoff
from grading.judging.core.verdict import DeferralScope, Deferred, Graded, Invalid, Refused, Result
from grading.vocabulary import Reason

# Trouble that may be this session's own, and may be billed each time.
MAY_BE_OWN = frozenset({Reason.TIMEOUT, Reason.NEEDS_ATTENTION})
# How many other sessions must have been judged meanwhile before a job's failures are attributed to its session.
OTHERS_GRADED = 20
# If the latest answers about this many other sessions were as bad, the cause is not this session.
ALL_ALIKE = 3
# How many lost readers of one session's evidence are no accident.
READERS_LOST = 3
PARKED_FOR, PARKED_TRIES = dt.timedelta(days=1), dt.timedelta(days=7)


class RetryStep(StrEnum):
    DONE = "done"
    AGAIN = "again"
    PARK = "park"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """What the same judge made of other sessions since this one was tried before: `graded`, and `alike` those that
    failed as this one did. `in_a_row`: how many of its latest answers about others were like this one.
    """

    graded: int = 0
    alike: int = 0
    in_a_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """What the job has behind it: failed `attempts` that count, replies that were no verdict, digests too large.

    `own_failures` of the attempts were its own, and `others_graded` sessions were judged during those. `readers_lost`
    counts the processes that were lost over its evidence.
    """

    attempts: int = 0
    bad_replies: int = 0
    too_large: int = 0
    own_failures: int = 0
    others_graded: int = 0
    readers_lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """`wait` until the next attempt; `counts` where this attempt made the gaps grow, `own` where its failure was the
    session's own, among `others_graded` sessions.
    """

    step: RetryStep
    reason: Reason = Reason.NONE
    detail: str = ""
    wait: dt.timedelta = dt.timedelta(0)
    counts: bool = False
    own: bool = False
    others_graded: int = 0


def asks_fallback(failures: int, patience: int) -> bool:
    """Whether the other model is asked after these failures: from `patience` on, in turns with the first."""
    return failures >= patience and (failures - patience) % 2 == 0


def after(
    result: Result,
    tried: RetryState,
    company: Company = Company(),
    *,
    limit: int,
    base: dt.timedelta,
    now: dt.datetime,
    rng: Random,
) -> RetryDecision:
    """The next step after `result`, given what was tried before it. `limit` ≥ 1 failures of its own, `base` the first
    backoff; `company` since the attempt before.
    """
    failures = tried.attempts + 1
    match result:
        case Graded():
            return RetryDecision(step=RetryStep.DONE)
        case Refused() | Invalid() | Deferred(scope=DeferralScope.INPUT):
            reason = Reason.REFUSED if isinstance(result, Refused) else Reason.UNPARSABLE_VERDICT
            reason = result.reason if isinstance(result, Deferred) else reason
            before = tried.too_large if isinstance(result, Deferred) else tried.bad_replies
            if not before:
                # Not at once: whether others fare the same is known a moment later.
                wait = backoff(1, base, rng)
                return RetryDecision(step=RetryStep.AGAIN, reason=reason, detail=result.detail, wait=wait)
            if company.in_a_row < ALL_ALIKE:
                return RetryDecision(step=RetryStep.GIVE_UP, reason=reason, detail=result.detail)
            step = RetryStep.PARK if failures >= limit else RetryStep.AGAIN
            wait = PARKED_FOR if step is RetryStep.PARK else backoff(failures, base, rng)
            return RetryDecision(step=step, reason=reason, detail=result.detail, wait=wait, counts=True)
        case Deferred(scope=DeferralScope.READER):
            step = RetryStep.PARK if tried.readers_lost + 1 >= READERS_LOST else RetryStep.AGAIN
            wait = PARKED_FOR if step is RetryStep.PARK else backoff(failures, base, rng)
            return RetryDecision(step=step, reason=result.reason, detail=result.detail, wait=wait, counts=True)
        case Deferred(scope=DeferralScope.JOB):
            own = result.reason in MAY_BE_OWN and company.graded > company.alike
            others = company.graded if own else 0
            is_own = own and tried.own_failures + 1 >= limit and tried.others_graded + others >= OTHERS_GRADED
            wait = backoff(failures, base, rng)
            asked = dt.timedelta(0) if result.retry_at is None else result.retry_at - now
            return RetryDecision(
                step=RetryStep.PARK if is_own else RetryStep.AGAIN,
                reason=result.reason,
                detail=result.detail,
                wait=PARKED_FOR if is_own else max(wait, min(asked, MAX_WAIT)),
                counts=True,
                own=own,
                others_graded=others,
            )
        case Deferred():
            # The quota row says when; the job keeps its attempts and is due as soon as the quota lets it.
            return RetryDecision(step=RetryStep.AGAIN, reason=result.reason, detail=result.detail)
