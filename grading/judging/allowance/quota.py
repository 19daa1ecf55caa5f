"""What a judge's provider lets us do, as a row that people see and workers obey: open, pacing, exhausted until a time,
misconfigured, or paused by an operator.

The row belongs to a key and model: another key or model starts with a row of its own, open. While it is exhausted or
misconfigured nothing is sent, except one probe when it is due. A spent budget is an exhausted quota whose reset is
midnight.
"""

import datetime as dt
import logging
from dataclasses import dataclass
from enum import Enum

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from grading import clock, monitoring
from grading.days import tomorrow
from grading.judging import judges
from grading.judging.allowance import limiter
from grading.judging.core import api_errors
from grading.judging.core.ratelimits import RateLimits
from grading.judging.core.verdict import DeferralScope, Deferred, Result
from grading.judging.judges import Judge
from grading.models import Quota, QuotaTransition
from grading.models.quota import QuotaState
from grading.vocabulary import Reason

logger = logging.getLogger(__name__)

LONGEST_GAP = dt.timedelta(hours=1)
# Spend limits are monthly: a reset named beyond that is not believed.
LONGEST_OUTAGE = dt.timedelta(days=32)
# A key that was refused costs nothing to try, and is mended where the site does not see it.
LONGEST_REFUSED = dt.timedelta(minutes=15)
LONGEST_BY_STATE = {
    QuotaState.PACING: api_errors.SHORT_WAIT,
    QuotaState.EXHAUSTED: LONGEST_OUTAGE,
    QuotaState.MISCONFIGURED: LONGEST_REFUSED,
}
PROBED = (QuotaState.EXHAUSTED, QuotaState.MISCONFIGURED)
# How often the limits that headers name are written down, at most.
LIMITS_EVERY = dt.timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why nobody can be judged at present, in a typed reason and a sentence."""

    reason: Reason
    detail: str


def is_configured() -> bool:
    return judges.first() is not None


def current(judge: Judge | None = None) -> Quota:
    """The row of a judge; of the first where none is named. LookupError where no judge is configured."""
    judge = judge or judges.first()
    if judge is None:
        raise LookupError("there is no judge: add a key in Settings, or set ANTHROPIC_API_KEY")
    return Quota.objects.get_or_create(key=judge.fingerprint, model=judge.model)[0]


def rows() -> list[Quota]:
    """The rows of all judges that are configured, the first judge's first."""
    return [current(judge) for judge in judges.configured().values()]


def obstacle() -> Obstacle | None:
    """What keeps every session from being judged now; None where nothing does."""
    if not is_configured():
        return Obstacle(reason=Reason.NOT_CONFIGURED, detail="Add a key in Settings to have sessions judged")
    quota = current()
    if not quota.is_out:
        return None
    # The sentence on the tile of every session that waits.
    reason = Reason(quota.reason)
    again = "" if quota.until is None else f", asks again {quota.until.astimezone(dt.UTC):%-d %b %H:%M} UTC"
    return Obstacle(reason=reason, detail=f"{reason.words}{again}. {quota.detail}".strip())


def is_due(quota: Quota, now: dt.datetime) -> bool:
    """Whether a call may be made: none while paused or waiting; one (a probe) once an exhausted or misconfigured one is
    due.
    """
    if quota.state == QuotaState.OPEN:
        return True
    if quota.state == QuotaState.PAUSED:
        return False
    longest = LONGEST_BY_STATE[QuotaState(quota.state)]
    # A time further ahead than any that is ever set was set by another clock.
    return quota.until is None or quota.changed_at > now + LIMITS_EVERY or not now < quota.until <= now + longest


class Permit(Enum):
    """The right to go on to a call; a `PROBE` is the one call that a quota lets through that is out."""

    CALL = "call"
    PROBE = "probe"


def take(judge: Judge, now: dt.datetime) -> Permit | None:
    """The right to go on to a call now. Of several who ask while a probe is due, one gets it."""
    quota = current(judge)
    if not is_due(quota, now):
        return None
    if quota.state not in PROBED:
        return Permit.CALL
    # The probe is held for as long as a lease, so that a probe whose worker died is followed by another.
    held = now + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
    due = Quota.objects.filter(pk=quota.pk, state=quota.state, until=quota.until)
    return Permit.PROBE if due.update(until=held) else None


def return_probe(judge: Judge, now: dt.datetime) -> None:
    """The probe that was taken was not sent: another may be."""
    seen = Quota.objects.filter(key=judge.fingerprint, model=judge.model, state__in=PROBED)
    seen.exclude(reason=Reason.BUDGET_SPENT).update(until=now)


def learn(judge: Judge, result: Result, *, started_at: dt.datetime, now: dt.datetime) -> None:
    """Let an answer move the quota. A call that began before the last change knows nothing newer than that."""
    if not isinstance(result, Deferred):
        seen = current(judge)
        _remember_answer(seen, now)
        if (seen.state, seen.detail, seen.until, seen.failures) == (QuotaState.OPEN, "", None, 0):
            return  # it says so
    with transaction.atomic():
        quota = _held(judge)
        is_news = started_at >= quota.changed_at or not quota.is_out
        match result:
            case _ if quota.state == QuotaState.PAUSED:
                pass  # what a person decided, a person undoes
            case Deferred(scope=DeferralScope.QUOTA):
                quota.failures += is_news
                until = now + probe_gap(quota.failures)
                if result.retry_at is not None and result.retry_at > now:
                    until = min(result.retry_at, now + LONGEST_OUTAGE)
                elif not is_news and quota.until is not None:
                    until = quota.until
                _move(quota, QuotaState.EXHAUSTED, now, reason=result.reason, detail=result.detail, until=until)
            case Deferred(scope=DeferralScope.CONFIGURATION):
                quota.failures += is_news
                until = now + min(probe_gap(quota.failures), LONGEST_REFUSED)
                until = until if is_news or quota.until is None else quota.until
                _move(quota, QuotaState.MISCONFIGURED, now, reason=result.reason, detail=result.detail, until=until)
            case Deferred(scope=DeferralScope.PACE) if is_news:
                pacing = max(filter(None, (result.retry_at, quota.until)), default=None)
                _move(quota, QuotaState.PACING, now, reason=result.reason, detail=result.detail, until=pacing)
            case Deferred(scope=DeferralScope.JOB | DeferralScope.READER):
                pass  # trouble of another kind says nothing about the quota
            case _ if is_news:
                if quota.is_out:
                    limiter.shared().ramp(judge.name)
                _move(quota, QuotaState.OPEN, now)


def answered(judge: Judge, *, started_at: dt.datetime, now: dt.datetime) -> None:
    """A call was answered, by whatever: the quota is open, unless it has changed since or a person paused it."""
    with transaction.atomic():
        quota = _held(judge)
        _remember_answer(quota, now)
        if quota.state not in {QuotaState.PAUSED, QuotaState.OPEN} and started_at >= quota.changed_at:
            limiter.shared().ramp(judge.name)
            _move(quota, QuotaState.OPEN, now)


def _remember_answer(quota: Quota, now: dt.datetime) -> None:
    """Write down that the judge answers, if this is its first answer."""
    if not quota.has_answered:
        Quota.objects.filter(pk=quota.pk, limits_at=None).update(limits_at=now)


def lock(judge: Judge) -> None:
    """Hold the judge's row for the rest of the transaction."""
    _held(judge)


def _held(judge: Judge) -> Quota:
    """The judge's row, locked for the rest of the transaction."""
    mine = Quota.objects.select_for_update()
    return mine.filter(key=judge.fingerprint, model=judge.model).first() or mine.get(pk=current(judge).pk)


def spend_out(judge: Judge, now: dt.datetime, detail: str) -> None:
    """Nothing more today: the budget would be passed."""
    with transaction.atomic():
        quota = _held(judge)
        if quota.state != QuotaState.PAUSED:
            until = tomorrow(now)
            _move(quota, QuotaState.EXHAUSTED, now, reason=Reason.BUDGET_SPENT, detail=detail, until=until)


def remember_limits(judge: Judge, limits: RateLimits | None, now: dt.datetime, *, is_answer: bool) -> None:
    """Write down what the headers said, so that it is known after a restart; every few seconds is enough.

    The headers of a refusal are not written down before the first answer: `Quota.limits_at` shows that there was one.
    """
    if not limits:
        return
    quotas = Quota.objects.filter(key=judge.fingerprint, model=judge.model)
    if not is_answer:
        quotas = quotas.exclude(limits_at=None)
    quotas.exclude(limits_at__gt=now - LIMITS_EVERY).update(limits=limits.said(), limits_at=now)


# --- what operators do -----------------------------------------------------------------------------------------------


def pause(*, by: User | None, note: str = "", now: dt.datetime | None = None) -> None:
    """Send nothing until somebody resumes. Calls that are under way are heard."""
    now = now or clock.now()
    with transaction.atomic():
        for quota in _locked().exclude(state=QuotaState.PAUSED):
            _move(quota, QuotaState.PAUSED, now, reason=Reason.PAUSED, detail=note, by=by)


def resume(*, by: User | None, now: dt.datetime | None = None) -> None:
    """End a pause. An outage that began before it and is not over yet goes on."""
    now = now or clock.now()
    with transaction.atomic():
        for quota in _locked().filter(state=QuotaState.PAUSED):
            before = quota.transitions.exclude(state=QuotaState.PAUSED).last()
            if before is None or before.state == QuotaState.OPEN or (before.until and before.until <= now):
                _move(quota, QuotaState.OPEN, now, by=by)
            else:
                reason = Reason(before.reason)
                state = QuotaState(before.state)
                _move(quota, state, now, reason=reason, detail=before.detail, until=before.until, by=by)


def probe_now(*, by: User | None = None, now: dt.datetime | None = None) -> int:
    """Let the next job of each judge that is out ask, whatever its row says: for a person who knows that the quota is
    back. How many judges that concerns; a paused one is resumed, not probed.
    """
    now = now or clock.now()
    with transaction.atomic():
        out = list(_locked().filter(state__in=[QuotaState.EXHAUSTED, QuotaState.MISCONFIGURED]))
        for quota in out:
            _move(
                quota,
                QuotaState.EXHAUSTED,
                now,
                reason=Reason(quota.reason),
                detail=quota.detail,
                until=now,
                by=by,
            )
    return len(out)


def reopen_budget(now: dt.datetime, *, by: User | None) -> None:
    """After the budget was raised: judging goes on today."""
    with transaction.atomic():
        for quota in _locked().filter(state=QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT):
            _move(quota, QuotaState.OPEN, now, by=by)


def retire_others(now: dt.datetime) -> None:
    """An outage of a key or model that is no longer used is over."""
    used = [row.pk for row in rows()]
    with transaction.atomic():
        for quota in Quota.objects.out().exclude(pk__in=used).select_for_update():
            _move(quota, QuotaState.OPEN, now, detail="no longer used")


def _locked() -> QuerySet[Quota]:
    return Quota.objects.select_for_update().filter(pk__in=[row.pk for row in rows()]).order_by("pk")


# --- transitions -----------------------------------------------------------------------------------------------------


def probe_gap(failures: int) -> dt.timedelta:
    """Doubling from JUDGE_PROBE_SECONDS up to an hour, for `failures` ≥ 1."""
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
    """Write the row; a change of state or reason is a transition, and the alarm follows at once."""
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
    monitoring.refresh()
