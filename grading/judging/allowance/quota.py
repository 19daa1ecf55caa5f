"""Whether a judge may be called: one row per key and model that is open, pacing, exhausted until a time, misconfigured,
or paused by an operator.

A new key or model starts open. While the quota is exhausted or misconfigured nothing is sent except a single call, the
probe, once it is due. A spent budget is an exhausted quota that ends at midnight.
"""

import datetime as dt
import logging
from dataclasses import dataclass
from enum import Enum

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from grading import clock
from grading.days import tomorrow
from grading.judging import judges
from grading.judging.allowance import limiter
from grading.judging.core import api_errors
from grading.judging.core.ratelimits import RateLimits
from grading.judging.core.verdict import DeferralScope, Deferred, Result
from grading.judging.judges import Judge
from grading.models import Quota, QuotaTransition
from grading.models.quota import QuotaState
from grading.monitoring.watch import refresh_alarms
from grading.vocabulary import Reason

logger = logging.getLogger(__name__)

LONGEST_GAP = dt.timedelta(hours=1)
# Spend limits are monthly: a later reset is ignored.
LONGEST_OUTAGE = dt.timedelta(days=32)
# A refused key costs nothing to try, and may be fixed at the provider without the site's notice.
LONGEST_REFUSED = dt.timedelta(minutes=15)
LONGEST_BY_STATE = {
    QuotaState.PACING: api_errors.SHORT_WAIT,
    QuotaState.EXHAUSTED: LONGEST_OUTAGE,
    QuotaState.MISCONFIGURED: LONGEST_REFUSED,
}
# The states in which only a probe may be sent.
STATES_WITH_PROBES = (QuotaState.EXHAUSTED, QuotaState.MISCONFIGURED)
# The limits in headers are stored at most this often.
LIMITS_EVERY = dt.timedelta(seconds=5)
# Clocks of the site's machines may differ by this much.
CLOCK_TOLERANCE = dt.timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why no session can be judged now."""

    reason: Reason
    detail: str


def is_configured() -> bool:
    """Whether there is a first judge."""
    return judges.first() is not None


def current(judge: Judge | None = None) -> Quota:
    """The row of a judge, by default the first. LookupError if no judge is configured."""
    judge = judge or judges.first()
    if judge is None:
        raise LookupError("there is no judge: add a key in Settings, or set ANTHROPIC_API_KEY")
    return Quota.objects.get_or_create(key=judge.fingerprint, model=judge.model)[0]


def rows() -> list[Quota]:
    """The rows of all configured judges, the first judge's first."""
    return [current(judge) for judge in judges.configured().values()]


def obstacle() -> Obstacle | None:
    """Why no session can be judged now; None if they can."""
    if not is_configured():
        return Obstacle(reason=Reason.NOT_CONFIGURED, detail="Add a key in Settings to have sessions judged")
    quota = current()
    if not quota.is_out:
        return None
    # This sentence is shown with every waiting session.
    reason = Reason(quota.reason)
    next_try = "" if quota.until is None else f", asks again {quota.until.astimezone(dt.UTC):%-d %b %H:%M} UTC"
    return Obstacle(reason=reason, detail=f"{reason.words}{next_try}. {quota.detail}".strip())


def is_due(quota: Quota, now: dt.datetime) -> bool:
    """Whether a call may be made now: always if open, never if paused, otherwise once `until` has passed."""
    if quota.state == QuotaState.OPEN:
        return True
    if quota.state == QuotaState.PAUSED:
        return False
    if quota.until is None or quota.until <= now:
        return True
    # Times further ahead than the site ever sets come from a wrong clock, and are ignored.
    return quota.changed_at > now + CLOCK_TOLERANCE or quota.until > now + LONGEST_BY_STATE[QuotaState(quota.state)]


class Permit(Enum):
    """Permission to make a call; a PROBE is the one call that a closed quota allows when it is due."""

    CALL = "call"
    PROBE = "probe"


def take_permit(judge: Judge, now: dt.datetime) -> Permit | None:
    """Permission to make a call now, or None. If a probe is due, only one of several callers gets it."""
    quota = current(judge)
    if not is_due(quota, now):
        return None
    if quota.state not in STATES_WITH_PROBES:
        return Permit.CALL
    # The next probe is due after a lease, in case this one's worker dies.
    next_probe = now + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
    due = Quota.objects.filter(pk=quota.pk, state=quota.state, until=quota.until)
    return Permit.PROBE if due.update(until=next_probe) else None


def return_probe(judge: Judge, now: dt.datetime) -> None:
    """Make the next probe due now, because the one that was taken was not sent. If today's budget turned out to be
    spent, the quota stays closed until midnight.
    """
    closed = Quota.objects.filter(key=judge.fingerprint, model=judge.model, state__in=STATES_WITH_PROBES)
    closed.exclude(reason=Reason.BUDGET_SPENT).update(until=now)


def learn(judge: Judge, result: Result, *, started_at: dt.datetime, now: dt.datetime) -> None:
    """Update the quota from a call's result.

    A call that began before the quota closed neither reopens it nor counts as another failure. If such a call was
    refused, it still sets state and reason, but it sets the time of the next probe only if the answer names a time.
    """
    if not isinstance(result, Deferred):
        quota = current(judge)
        _remember_answer(quota, now)
        if (quota.state, quota.detail, quota.until, quota.failures) == (QuotaState.OPEN, "", None, 0):
            return  # nothing changes
    with transaction.atomic():
        quota = lock(judge)
        began_before_closing = quota.is_out and started_at < quota.changed_at
        match result:
            case _ if quota.state == QuotaState.PAUSED:
                pass  # only a person ends a pause
            case Deferred(scope=DeferralScope.QUOTA):
                quota.failures += int(not began_before_closing)
                until = now + probe_gap(quota.failures)
                if result.retry_at is not None and result.retry_at > now:
                    until = min(result.retry_at, now + LONGEST_OUTAGE)
                elif began_before_closing and quota.until is not None:
                    until = quota.until
                _move(quota, QuotaState.EXHAUSTED, now, reason=result.reason, detail=result.detail, until=until)
            case Deferred(scope=DeferralScope.CONFIGURATION):
                quota.failures += int(not began_before_closing)
                until = now + min(probe_gap(quota.failures), LONGEST_REFUSED)
                if began_before_closing and quota.until is not None:
                    until = quota.until
                _move(quota, QuotaState.MISCONFIGURED, now, reason=result.reason, detail=result.detail, until=until)
            case Deferred(scope=DeferralScope.PACE) if not began_before_closing:
                # The `until` of any other state says nothing about pacing.
                paced_until = quota.until if quota.state == QuotaState.PACING else None
                later = max(filter(None, (result.retry_at, paced_until)), default=None)
                _move(quota, QuotaState.PACING, now, reason=result.reason, detail=result.detail, until=later)
            case Deferred(scope=DeferralScope.JOB | DeferralScope.READER):
                pass  # other errors say nothing about the quota
            case _ if not began_before_closing:
                if quota.is_out:
                    limiter.shared().ramp(judge.name)
                _move(quota, QuotaState.OPEN, now)


def reopen_after_answer(judge: Judge, *, started_at: dt.datetime, now: dt.datetime) -> None:
    """Open the quota after a call that was answered, unless it changed after `started_at` or a person paused it."""
    with transaction.atomic():
        quota = lock(judge)
        _remember_answer(quota, now)
        if quota.state not in {QuotaState.PAUSED, QuotaState.OPEN} and started_at >= quota.changed_at:
            limiter.shared().ramp(judge.name)
            _move(quota, QuotaState.OPEN, now)


def _remember_answer(quota: Quota, now: dt.datetime) -> None:
    """Record that the judge has answered, if this is its first answer."""
    if not quota.has_answered:
        Quota.objects.filter(pk=quota.pk, limits_at=None).update(limits_at=now)


def lock(judge: Judge) -> Quota:
    """The judge's row, locked for the rest of the transaction."""
    locked = Quota.objects.select_for_update()
    return locked.filter(key=judge.fingerprint, model=judge.model).first() or locked.get(pk=current(judge).pk)


def exhaust_budget(judge: Judge, now: dt.datetime, detail: str) -> None:
    """Close the quota until midnight: the next call would exceed the budget."""
    with transaction.atomic():
        quota = lock(judge)
        if quota.state != QuotaState.PAUSED:
            until = tomorrow(now)
            _move(quota, QuotaState.EXHAUSTED, now, reason=Reason.BUDGET_SPENT, detail=detail, until=until)


def remember_limits(judge: Judge, limits: RateLimits | None, now: dt.datetime, *, is_answer: bool) -> None:
    """Store the limits in the headers, at most every few seconds, so that they are known after a restart.

    The limits in an error's headers are stored only after the judge's first answer: `limits_at` shows that the judge
    has answered.
    """
    if not limits:
        return
    quotas = Quota.objects.filter(key=judge.fingerprint, model=judge.model)
    if not is_answer:
        quotas = quotas.exclude(limits_at=None)
    quotas.exclude(limits_at__gt=now - LIMITS_EVERY).update(limits=limits, limits_at=now)


# --- what operators do -----------------------------------------------------------------------------------------------


def pause(*, by: User | None, note: str = "") -> None:
    """Send nothing until a person resumes. Answers to calls under way still count."""
    now = clock.now()
    with transaction.atomic():
        for quota in _locked_rows().exclude(state=QuotaState.PAUSED):
            _move(quota, QuotaState.PAUSED, now, reason=Reason.PAUSED, detail=note, by=by)


def resume(*, by: User | None) -> None:
    """End a pause. An outage that began before it continues until a probe is answered; a budget is checked anew."""
    now = clock.now()
    with transaction.atomic():
        for quota in _locked_rows().filter(state=QuotaState.PAUSED):
            before = quota.transitions.exclude(state=QuotaState.PAUSED).last()
            if before is None or before.state == QuotaState.OPEN or before.reason == Reason.BUDGET_SPENT:
                _move(quota, QuotaState.OPEN, now, by=by)
            else:
                reason = Reason(before.reason)
                state = QuotaState(before.state)
                # Probes that failed before the pause have not changed the time in the transition.
                until = max(before.until or now, now)
                _move(quota, state, now, reason=reason, detail=before.detail, until=until, by=by)


def probe_now() -> int:
    """Make a probe of each exhausted or misconfigured judge due now, on a person's request. Returns how many judges."""
    configured = Quota.objects.filter(pk__in=[row.pk for row in rows()])
    return configured.filter(state__in=STATES_WITH_PROBES).update(until=clock.now())


def reopen_budget(now: dt.datetime, *, by: User | None) -> None:
    """Open the quotas that a spent budget has closed."""
    with transaction.atomic():
        for quota in _locked_rows().filter(state=QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT):
            _move(quota, QuotaState.OPEN, now, by=by)


def retire_others(now: dt.datetime) -> None:
    """Open the quotas of keys and models that are no longer used, so that their outages end."""
    used = [row.pk for row in rows()]
    with transaction.atomic():
        for quota in Quota.objects.out().exclude(pk__in=used).select_for_update():
            _move(quota, QuotaState.OPEN, now, detail="no longer used")


def _locked_rows() -> QuerySet[Quota]:
    """The rows of all configured judges, locked for the rest of the transaction."""
    return Quota.objects.select_for_update().filter(pk__in=[row.pk for row in rows()]).order_by("pk")


# --- transitions -----------------------------------------------------------------------------------------------------


def probe_gap(failures: int) -> dt.timedelta:
    """The time until the next probe: JUDGE_PROBE_SECONDS, doubled for each failure after the first, up to an hour."""
    base = dt.timedelta(seconds=settings.JUDGE_PROBE_SECONDS)
    return min(base * float(2 ** min(max(failures - 1, 0), 30)), LONGEST_GAP)


def _move(
    quota: Quota,
    state: QuotaState,
    now: dt.datetime,
    *,
    reason: Reason = Reason.NONE,
    detail: str = "",
    until: dt.datetime | None = None,
    by: User | None = None,
) -> None:
    """Set and save the state. If state or reason changed, record a transition and refresh the alarms."""
    changed = (quota.state, quota.reason) != (state, reason)
    quota.state, quota.reason, quota.detail, quota.until = state, reason, detail, until
    if state == QuotaState.OPEN:
        quota.failures = 0
    if changed:
        quota.changed_at = now
    quota.save(update_fields=["state", "reason", "detail", "until", "failures", "changed_at"])
    if not changed:
        return
    QuotaTransition.objects.create(quota=quota, state=state, reason=reason, detail=detail, until=until, at=now, by=by)
    level = logging.ERROR if quota.is_out and state != QuotaState.PAUSED else logging.INFO
    logger.log(level, "judge quota of %s: %s. %s", quota.model, state, detail)
    refresh_alarms()
