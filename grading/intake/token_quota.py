"""The daily quota of a token in requests and bytes. Beyond it, requests are refused unread until midnight."""

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from grading.days import tomorrow
from grading.judging.allowance import budget
from grading.models import ApiToken, TokenUsage


class OverQuota(Exception):
    """The token has used up `what` ("requests" or "bytes") of the day: `used` of `limit`, until `resets`."""

    def __init__(self, *, what: str, used: int, limit: int, resets: dt.datetime) -> None:
        super().__init__(f"{used:,} of {limit:,} {what} of the day are used")
        self.what, self.used, self.limit, self.resets = what, used, limit, resets


def limits() -> dict[str, int]:
    """The daily limits of a token, by what they limit. Unlimited ones are left out."""
    quotas = {"requests": settings.TOKEN_DAILY_REQUESTS, "bytes": settings.TOKEN_DAILY_BYTES}
    return {what: quota for what, quota in quotas.items() if quota}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedToday:
    """What a token has used today."""

    requests: int
    bytes: int
    usd: float

    @property
    def is_over(self) -> bool:
        quotas = {**limits(), **({"usd": settings.TOKEN_DAILY_JUDGE_USD} if settings.TOKEN_DAILY_JUDGE_USD else {})}
        return any(getattr(self, what) >= limit for what, limit in quotas.items())


def used_today(now: dt.datetime) -> dict[int, UsedToday]:
    """What each token that was used today has used, by its key. Two queries."""
    rows = {row.token_id: row for row in TokenUsage.objects.filter(day=timezone.localdate(now))}
    paid = budget.paid_by_tokens(now)
    return {
        token: UsedToday(
            requests=rows[token].requests if token in rows else 0,
            bytes=rows[token].bytes if token in rows else 0,
            usd=paid.get(token, 0.0),
        )
        for token in {*rows, *paid}
    }


def spend(token: ApiToken, size: int, now: dt.datetime) -> None:
    """Count a request with a body of `size` bytes. Raises OverQuota, and counts nothing, if the day's quota is used up.

    A request that begins within the quota may exceed it, so that no request is too large for every day.
    """
    today = timezone.localdate(now)
    rows = TokenUsage.objects.filter(token=token, day=today)
    quotas = limits()
    within = rows.filter(**{f"{what}__lt": limit for what, limit in quotas.items()})
    while True:
        # Reads first, so that a token that is refused again and again doesn't block writers.
        usage = rows.first()
        if usage is None:
            usage = TokenUsage(token=token, day=today)
            TokenUsage.objects.bulk_create([usage], ignore_conflicts=True)
        for what, limit in quotas.items():
            used = getattr(usage, what)
            if used >= limit:
                raise OverQuota(what=what, used=used, limit=limit, resets=tomorrow(now))
        if within.update(requests=F("requests") + 1, bytes=F("bytes") + size):
            return
        # Since `usage` was read, other requests used up the quota, or the row was deleted: read it again.
