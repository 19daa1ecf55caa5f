"""What one token may ask and send in a day of the site. What is beyond that is refused unread, until midnight."""

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


USED = ("requests", "bytes")


def limits() -> dict[str, int]:
    """How much of what a token may use in a day, where that is limited."""
    quotas = {"requests": settings.TOKEN_DAILY_REQUESTS, "bytes": settings.TOKEN_DAILY_BYTES}
    return {what: quota for what, quota in quotas.items() if quota}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedToday:
    """What a token has used of a day: of the limits, where there are any."""

    requests: int
    bytes: int
    usd: float

    @property
    def is_over(self) -> bool:
        quotas = {**limits(), **({"usd": settings.TOKEN_DAILY_JUDGE_USD} if settings.TOKEN_DAILY_JUDGE_USD else {})}
        return any(getattr(self, what) >= limit for what, limit in quotas.items())


def used_today(now: dt.datetime) -> dict[int, UsedToday]:
    """By token, where it has used anything. Two queries."""
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
    """Count a request with a body of `size` bytes. Raises OverQuota, and counts nothing, where the day's quota is used.

    One that begins within the quota may go beyond it, so that none is too large to be sent on any day.
    """
    today = TokenUsage(token=token, day=timezone.localdate(now))
    rows = TokenUsage.objects.filter(token=token, day=today.day)
    quotas = limits()
    within = rows.filter(**{f"{what}__lt": limit for what, limit in quotas.items()})
    # Read first: whoever is refused again and again is to hold up nobody who writes.
    day, used = token.used or (None, None)
    used = used if day == today.day else None
    while True:
        used = used or rows.values(*USED).first()
        if used is None:
            TokenUsage.objects.bulk_create([today], ignore_conflicts=True)
        for what, limit in quotas.items():
            spent = 0 if used is None else used[what]
            if spent >= limit:
                raise OverQuota(what=what, used=spent, limit=limit, resets=tomorrow(now))
        if within.update(requests=F("requests") + 1, bytes=F("bytes") + size):
            return
        used = None
