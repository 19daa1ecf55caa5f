"""The history and the forecast of the first judge's queue, from the job rows and the rate limits."""

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
from grading.judging.outlook.standing import JudgeStanding
from grading.models import JudgeJob, JudgePolicy
from grading.models.judging import JobState, JudgeRole
from grading.models.quota import QuotaState
from grading.models.sessions import yours

# The length of the history that is drawn: since the oldest waiting job, within these.
LEAST_PAST, MOST_PAST = dt.timedelta(hours=6), dt.timedelta(days=3)
POINTS = 96
MEASURED = dt.timedelta(days=7)
DAY_HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOutlook:
    """The jobs that wait and when they will be done. `arrivals` are jobs per hour; `sent` counts the jobs in batches,
    which do not wait. `each_usd` is the mean cost of a verdict, None if unknown.
    """

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
        """The expected cost of the waiting jobs; None if no cost is known yet."""
        return None if self.each_usd is None else self.waiting * self.each_usd


def outlook(
    standing: JudgeStanding, headroom: limiter.State, policy: JudgePolicy, *, left_usd: float | None
) -> QueueOutlook:
    """The first judge's queue. `left_usd` is the rest of today's budget, None without a budget."""
    now = timezone.now()
    each_usd, use_per_verdict = costs.per_verdict(costs.since(now - MEASURED).filter(judge=JudgeRole.FIRST))
    pace = core.pace(headroom.limits, use_per_verdict, share=limiter.PACE)
    counts = dict(jobs().filter(finished_at=None).order_by().values_list("state").annotate(n=Count("pk")))
    waiting = counts.get(JobState.QUEUED, 0) + counts.get(JobState.LEASED, 0)
    sent = counts.get(JobState.SENT, 0)
    arrivals = arrivals_per_hour(now)
    # The budget in verdicts; None without a budget or a known cost.
    allowance = None
    daily_usd = policy.daily_budget_usd
    if daily_usd is not None and left_usd is not None and each_usd:
        allowance = Allowance(
            remaining=max(left_usd, 0) / each_usd, daily=daily_usd / each_usd, renews_at=tomorrow(now)
        )
    # The history of the queue since the oldest waiting job was added, in two queries with a row per minute.
    not_sent = jobs().exclude(state=JobState.SENT)
    oldest = not_sent.filter(finished_at=None).aggregate(at=Min("created_at"))["at"] or now
    start = max(min(oldest, now - LEAST_PAST), now - MOST_PAST)
    created = _minutes(not_sent.filter(created_at__gt=start), "created_at")
    finished = _minutes(not_sent.filter(finished_at__gt=start), "finished_at")
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
        past=core.queue_history(waiting, created, finished, moments),
        forecast=core.forecast(now, conditions),
        pace=pace,
        arrivals=arrivals,
        each_usd=each_usd,
        allowance=allowance,
    )


def jobs() -> QuerySet[JudgeJob]:
    """The jobs of your sessions that share the first judge's allowance."""
    return JudgeJob.objects.filter(yours()).exclude(judge=JudgeRole.SECOND)


def arrivals_per_hour(now: dt.datetime) -> float:
    """The jobs per hour for sessions that ended in the last day, without imported sessions and those judged again."""
    day = now - dt.timedelta(days=1)
    return jobs().filter(created_at__gt=day, run=None, session__ended_at__gt=day).count() / DAY_HOURS


def opens_at(standing: JudgeStanding, now: dt.datetime) -> dt.datetime | None:
    """When calls can be made again: `now` if they can be made already, None if a person has to act first."""
    if not standing.quota.is_out:
        return now
    return standing.quota.until if standing.quota.state == QuotaState.EXHAUSTED else None


def _minutes(rows: QuerySet[JudgeJob], field: str) -> list[dt.datetime]:
    """The minute of each row, in order; a minute occurs once for each of its rows."""
    counted = rows.order_by().values(minute=TruncMinute(field)).annotate(n=Count("pk")).order_by("minute")
    minutes: list[dt.datetime] = []
    for row in counted:
        minutes += [row["minute"]] * row["n"]
    return minutes
