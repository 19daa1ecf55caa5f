"""What the provider lets us do, as a row that people see and workers obey: open, pacing, exhausted or misconfigured.

The row belongs to a key and model: another key or model starts with a row of its own, open. While it is exhausted
nothing is sent, except one probe when it is due.
"""

import datetime as dt
import hashlib
import logging
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from grading import monitoring
from grading.core.verdict import Deferred, Result, Scope
from grading.core.vocabulary import Reason
from grading.models import Quota, QuotaTransition
from grading.models.quota import QuotaState

logger = logging.getLogger(__name__)

LONGEST_GAP = dt.timedelta(hours=1)
# Spend limits are monthly: a reset named beyond that is not believed.
LONGEST_OUTAGE = dt.timedelta(days=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why nobody can be judged at present, in a typed reason and a sentence."""

    reason: Reason
    detail: str


def is_configured() -> bool:
    return bool(settings.ANTHROPIC_API_KEY)


def fingerprint() -> str:
    """Names the key and where it is sent, without giving it away."""
    return hashlib.sha256(f"{settings.ANTHROPIC_API_KEY}\n{settings.ANTHROPIC_BASE_URL}".encode()).hexdigest()[:16]


def current() -> Quota:
    """The row of the configured key and model."""
    return Quota.objects.get_or_create(key=fingerprint(), model=settings.JUDGE_MODEL)[0]


def obstacle() -> Obstacle | None:
    """What keeps every job from being judged now; None where nothing does."""
    if not is_configured():
        return Obstacle(reason=Reason.NOT_CONFIGURED, detail="Set ANTHROPIC_API_KEY to have sessions judged")
    quota = current()
    if not quota.is_out:
        return None
    return Obstacle(reason=Reason(quota.reason), detail=_outage(quota))


def is_due(quota: Quota, now: dt.datetime) -> bool:
    """Whether a call may be made: none while misconfigured or waiting; one (a probe) when an exhausted quota is due."""
    if quota.state == QuotaState.OPEN:
        return True
    return quota.state != QuotaState.MISCONFIGURED and (quota.until is None or quota.until <= now)


def take(now: dt.datetime) -> bool:
    """The right to make one call now. Of several who ask while a probe is due, one gets it."""
    quota = current()
    if not is_due(quota, now):
        return False
    if quota.state != QuotaState.EXHAUSTED:
        return True
    # The probe is held for as long as a lease, so that a probe whose worker died is followed by another.
    held = now + dt.timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
    due = Quota.objects.filter(pk=quota.pk, state=QuotaState.EXHAUSTED, until=quota.until)
    return bool(due.update(until=held))


def learn(result: Result, *, started_at: dt.datetime, now: dt.datetime) -> None:
    """Let an answer move the quota. A call that began before the last change knows nothing newer than that."""
    with transaction.atomic():
        quota = Quota.objects.select_for_update().get(pk=current().pk)
        is_news = started_at >= quota.changed_at or not quota.is_out
        match result:
            case Deferred(scope=Scope.QUOTA):
                _exhaust(quota, result, now, is_news=is_news)
            case Deferred(scope=Scope.CONFIGURATION):
                _move(quota, QuotaState.MISCONFIGURED, now, reason=result.reason, detail=result.detail)
            case Deferred(scope=Scope.PACE) if is_news:
                until = max(filter(None, (result.retry_at, quota.until)), default=None)
                _move(quota, QuotaState.PACING, now, reason=result.reason, detail=result.detail, until=until)
            case Deferred(scope=Scope.JOB):
                pass  # trouble of another kind says nothing about the quota
            case _ if is_news:
                _move(quota, QuotaState.OPEN, now)


def probe_now(now: dt.datetime | None = None) -> None:
    """Let the next job ask, whatever the row says: for a person who knows that the quota is back."""
    now = now or timezone.now()
    with transaction.atomic():
        quota = Quota.objects.select_for_update().get(pk=current().pk)
        if quota.is_out:
            _move(quota, QuotaState.EXHAUSTED, now, reason=Reason(quota.reason), detail=quota.detail, until=now)


def retire_others(now: dt.datetime) -> None:
    """An outage of a key or model that is no longer used is over."""
    with transaction.atomic():
        for quota in Quota.objects.out().exclude(pk=current().pk).select_for_update():
            _move(quota, QuotaState.OPEN, now, detail="no longer used")


def probe_gap(failures: int) -> dt.timedelta:
    """Doubling from JUDGE_PROBE_SECONDS up to an hour, for `failures` ≥ 1."""
    base = dt.timedelta(seconds=settings.JUDGE_PROBE_SECONDS)
    return min(base * float(2 ** min(max(failures - 1, 0), 30)), LONGEST_GAP)


def _exhaust(quota: Quota, result: Deferred, now: dt.datetime, *, is_news: bool) -> None:
    if is_news:
        quota.failures += 1
    until = now + probe_gap(quota.failures)
    if result.retry_at is not None and result.retry_at > now:
        until = min(result.retry_at, now + LONGEST_OUTAGE)
    elif not is_news and quota.until is not None:
        until = quota.until
    _move(quota, QuotaState.EXHAUSTED, now, reason=result.reason, detail=result.detail, until=until)


def _move(
    quota: Quota,
    state: QuotaState,
    now: dt.datetime,
    *,
    reason: Reason = Reason.NONE,
    detail: str = "",
    until: dt.datetime | None = None,
) -> None:
    """Write the row; a change of state or reason is a transition, and the alarm follows at once."""
    changed = (quota.state, quota.reason) != (state, reason)
    quota.state, quota.reason, quota.detail, quota.until = state, reason, detail, until
    if state == QuotaState.OPEN:
        quota.failures = 0
    if changed:
        quota.changed_at = now
    quota.save()
    if not changed:
        return
    QuotaTransition.objects.create(quota=quota, state=state, reason=reason, detail=detail, until=until, at=now)
    logger.log(logging.ERROR if quota.is_out else logging.INFO, "judge quota of %s: %s. %s", quota.model, state, detail)
    monitoring.refresh()


def _outage(quota: Quota) -> str:
    """The sentence on the tile of every session that waits."""
    if quota.until is None:
        return f"{Reason(quota.reason).words}. {quota.detail}"
    return f"{Reason(quota.reason).words}, asks again {quota.until.astimezone(dt.UTC):%-d %b %H:%M} UTC. {quota.detail}"
