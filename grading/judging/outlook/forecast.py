"""The backlog, as it was and as it will be: what the rows and the limits say, put through the pure forecast."""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count, Min, QuerySet
from django.db.models.functions import TruncMinute
from django.utils import timezone

from grading.days import tomorrow
from grading.judging.allowance import limiter
from grading.judging.core import forecast as core
from grading.judging.core.forecast import Allowance, Conditions, Curve, Forecast, Pace
from grading.judging.outlook import costs
from grading.judging.outlook.standing import Headroom, JudgeStanding
from grading.models import JudgeJob, JudgePolicy
from grading.models.judging import JobState, JudgeRole
from grading.models.quota import QuotaState
from grading.models.sessions import yours

# How much of the past is drawn: since the oldest job that waits, within these.
LEAST_PAST, MOST_PAST = dt.timedelta(hours=6), dt.timedelta(days=3)
POINTS = 96
MEASURED = dt.timedelta(days=7)
DAY_HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOutlook:
    """What waits and when it will be gone. `arrivals` are jobs an hour; `each_usd` the mean cost of a verdict."""

    waiting: int
    sent: int
    past: Curve
    forecast: Forecast
    pace: Pace | None
    arrivals: float
    each_usd: float | None
    allowance: Allowance | None

    @property
    def expected_usd(self) -> float | None:
        """What the jobs that wait are expected to cost; None where no cost is known to go by."""
        return None if self.each_usd is None else self.waiting * self.each_usd


def outlook(
    standing: JudgeStanding, headroom: Headroom, policy: JudgePolicy, *, left_usd: float | None
) -> QueueOutlook:
    """The first judge's backlog. `left_usd` of today's budget, None where there is none."""
    now = timezone.now()
    each_usd, taken = costs.per_verdict(costs.since(now - MEASURED).filter(judge=JudgeRole.FIRST))
    pace = core.pace(headroom.limits, taken, share=limiter.PACE)
    counts = dict(jobs().filter(finished_at=None).order_by().values_list("state").annotate(n=Count("pk")))
    waiting, sent = counts.get(JobState.QUEUED, 0) + counts.get(JobState.LEASED, 0), counts.get(JobState.SENT, 0)
    arrivals = arriving(now)
    # The budget in verdicts; none without a budget, or without a cost to divide it by.
    allowance, daily_usd = None, policy.daily_budget_usd
    if daily_usd is not None and left_usd is not None and each_usd:
        allowance = Allowance(
            remaining=max(left_usd, 0) / each_usd, daily=daily_usd / each_usd, renews_at=tomorrow(now)
        )
    # What waited since the oldest job that does, in two queries of a row a minute.
    live = jobs().exclude(state=JobState.SENT)
    oldest = live.filter(finished_at=None).aggregate(at=Min("created_at"))["at"] or now
    start = max(min(oldest, now - LEAST_PAST), now - MOST_PAST)
    came = _minutes(live.filter(created_at__gt=start), "created_at")
    went = _minutes(live.filter(finished_at__gt=start), "finished_at")
    moments = [start + index * (now - start) / POINTS for index in range(POINTS + 1)]
    conditions = Conditions(
        waiting=waiting,
        arrivals=arrivals,
        rate=None if pace is None else 60 * pace.per_minute,
        opens_at=opens_at(standing, now),
        allowance=allowance,
    )
    return QueueOutlook(
        waiting=waiting,
        sent=sent,
        past=core.past(waiting, came, went, moments),
        forecast=core.forecast(now, conditions),
        pace=pace,
        arrivals=arrivals,
        each_usd=each_usd,
        allowance=allowance,
    )


def jobs() -> QuerySet[JudgeJob]:
    """The jobs of your sessions that share the first judge's allowance."""
    return JudgeJob.objects.filter(yours()).exclude(judge=JudgeRole.SECOND)


def arriving(now: dt.datetime) -> float:
    """Jobs an hour that the last day's sessions brought; what was imported or is judged again is no arrival."""
    day = now - dt.timedelta(days=1)
    return jobs().filter(created_at__gt=day, run=None, session__ended_at__gt=day).count() / DAY_HOURS


def opens_at(standing: JudgeStanding, now: dt.datetime) -> dt.datetime | None:
    """When calls can be made again: now where they can; None where that needs a person."""
    if not standing.quota.is_out:
        return now
    return standing.quota.until if standing.quota.state == QuotaState.EXHAUSTED else None


def _minutes(rows: QuerySet[JudgeJob], field: str) -> list[dt.datetime]:
    """The minute of each row, in order."""
    counted = rows.order_by().values(minute=TruncMinute(field)).annotate(n=Count("pk")).order_by("minute")
    return [row["minute"] for row in counted for _ in range(row["n"])]
