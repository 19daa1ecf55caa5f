"""What becomes of a job after one answer: done, again, parked, or given up."""

import datetime as dt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.backoff import backoff
from grading.judging.core import retry
from grading.judging.core.retry import OtherAnswers, RetryDecision, RetryState, RetryStep, decide
from grading.judging.core.verdict import DeferralScope, Deferred, Graded, Invalid, Refused
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 3, 31, 12, 4, tzinfo=dt.UTC)
SECOND, DAY = dt.timedelta(seconds=1), dt.timedelta(days=1)


class Half(Random):
    """Always the middle, so that the arithmetic can be read."""

    def random(self):
        return 0.5


def next_after(result, *, company=OtherAnswers(), limit=3, base=SECOND, **tried):  # noqa: B008 - frozen
    return decide(result, RetryState(**tried), company, limit=limit, base=base, now=NOW, rng=Half())


def deferred(reason, scope, retry_at=None):
    return Deferred(reason=reason, scope=scope, detail="d", retry_at=retry_at)


NEXT = [
    (Graded(score=0, dimensions={}, rationale="", citations=(), reached=None), {}, RetryDecision(step=RetryStep.DONE)),
    # the first bad reply: half of the first ceiling, so that by then it is known how others fare
    (
        Refused(detail="d"),
        {},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.REFUSED, detail="d", wait=SECOND / 2),
    ),
    (Refused(detail="d"), {"bad_replies": 1}, RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.REFUSED, detail="d")),
    (
        Invalid(detail="d", reply=""),
        {},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.UNPARSABLE_VERDICT, detail="d", wait=SECOND / 2),
    ),
    (
        Invalid(detail="d", reply=""),
        {"bad_replies": 1},
        RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.UNPARSABLE_VERDICT, detail="d"),
    ),
    (
        deferred(Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
        {},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.INPUT_TOO_LARGE, detail="d", wait=SECOND / 2),
    ),
    (
        deferred(Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
        {"too_large": 1},
        RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.INPUT_TOO_LARGE, detail="d"),
    ),
    (
        deferred(Reason.RATE_LIMITED, DeferralScope.PACE),
        {"attempts": 99},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.RATE_LIMITED, detail="d"),
    ),
    (
        deferred(Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA),
        {"attempts": 99},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.QUOTA_EXHAUSTED, detail="d"),
    ),
    # second failure: ceiling 1 s · 2, half of it
    (
        deferred(Reason.TIMEOUT, DeferralScope.JOB),
        {"attempts": 1},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.TIMEOUT, detail="d", wait=SECOND, is_counted=True),
    ),
    # third failure of three: ceiling 4 s; nothing is known of others, so that it is not its own
    (
        deferred(Reason.TIMEOUT, DeferralScope.JOB),
        {"attempts": 2},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.TIMEOUT, detail="d", wait=2 * SECOND, is_counted=True),
    ),
    # five others were judged meanwhile and two failed alike: its own, the third of three, but 5 + 14 others are no 20
    (
        deferred(Reason.TIMEOUT, DeferralScope.JOB),
        {"attempts": 2, "own_failures": 2, "others_graded": 14, "company": OtherAnswers(graded=5, failed_alike=2)},
        RetryDecision(
            step=RetryStep.AGAIN,
            reason=Reason.TIMEOUT,
            detail="d",
            wait=2 * SECOND,
            is_counted=True,
            is_own=True,
            others_graded=5,
        ),
    ),
    # one more of the others, and it is parked for a day
    (
        deferred(Reason.TIMEOUT, DeferralScope.JOB),
        {"attempts": 2, "own_failures": 2, "others_graded": 15, "company": OtherAnswers(graded=5, failed_alike=2)},
        RetryDecision(
            step=RetryStep.PARK,
            reason=Reason.TIMEOUT,
            detail="d",
            wait=DAY,
            is_counted=True,
            is_own=True,
            others_graded=5,
        ),
    ),
    # others fail alike: that is no fault of this session, however often
    (
        deferred(Reason.NEEDS_ATTENTION, DeferralScope.JOB),
        {"attempts": 2, "own_failures": 99, "others_graded": 99, "company": OtherAnswers(graded=5, failed_alike=5)},
        RetryDecision(
            step=RetryStep.AGAIN, reason=Reason.NEEDS_ATTENTION, detail="d", wait=2 * SECOND, is_counted=True
        ),
    ),
    # evidence that cannot be read costs nothing to try: never parked
    (
        deferred(Reason.UNREADABLE, DeferralScope.JOB),
        {"attempts": 2, "own_failures": 99, "others_graded": 99, "company": OtherAnswers(graded=99)},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.UNREADABLE, detail="d", wait=2 * SECOND, is_counted=True),
    ),
    # unless one process after the other was lost over it
    (
        deferred(Reason.UNREADABLE, DeferralScope.READER),
        {"readers_lost": 1},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.UNREADABLE, detail="d", wait=SECOND / 2, is_counted=True),
    ),
    (
        deferred(Reason.UNREADABLE, DeferralScope.READER),
        {"readers_lost": 2},
        RetryDecision(step=RetryStep.PARK, reason=Reason.UNREADABLE, detail="d", wait=DAY, is_counted=True),
    ),
    # the second bad reply, where the last three other sessions had none better: a fault of the service
    (
        Invalid(detail="d", reply=""),
        {"bad_replies": 1, "attempts": 1, "company": OtherAnswers(in_a_row=3)},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.UNPARSABLE_VERDICT, detail="d", wait=SECOND, is_counted=True),
    ),
    # for each is paid for, not for ever
    (
        Invalid(detail="d", reply=""),
        {"bad_replies": 2, "attempts": 2, "company": OtherAnswers(in_a_row=3)},
        RetryDecision(step=RetryStep.PARK, reason=Reason.UNPARSABLE_VERDICT, detail="d", wait=DAY, is_counted=True),
    ),
    # an overloaded service is waited for, as long as it asks
    (
        deferred(Reason.OVERLOADED, DeferralScope.JOB, NOW + 90 * SECOND),
        {"attempts": 2},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.OVERLOADED, detail="d", wait=90 * SECOND, is_counted=True),
    ),
]


@pytest.mark.parametrize(("result", "tried", "expected"), NEXT)
def test_what_becomes_of_a_job(result, tried, expected):
    assert next_after(result, **tried) == expected


@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_backoff_is_jittered_and_never_over_an_hour(failures, seed):
    wait = backoff(failures, 15 * SECOND, Random(seed))
    assert dt.timedelta(0) <= wait <= min(retry.MAX_WAIT, 15 * SECOND * 2.0 ** min(failures - 1, 30))
