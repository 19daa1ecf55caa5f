"""The figures and charts of the quota page."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from grading.days import start_of_day
from grading.judging.allowance import limiter
from grading.judging.core.forecast import ForecastEnding
from grading.judging.outlook import attempts, costs, outages
from grading.judging.outlook.attempts import AttemptTally, WaitingJobs
from grading.judging.outlook.forecast import QueueOutlook
from grading.judging.outlook.outages import Period, Spell
from grading.judging.outlook.standing import DIMENSIONS, JudgeStanding
from grading.models import JudgePolicy
from grading.plain import counted
from grading.reward.explain import weight
from grading.screens.charts import bars, timelines
from grading.screens.charts.timelines import BACKLOG, Note, TimelineSpan
from grading.templatetags.gradingsite_tags import moment, stamp, usd

DAYS = 14
DAY_HOURS = 24
TARGET_429 = 0.01
TRIVIAL = 0.005


# --- headroom --------------------------------------------------------------------------------------------------------


def gauges(headroom: limiter.State, tightest: str | None, reserved: float) -> list[dict[str, Any]]:
    """A gauge for each dimension of the rate limits, with the reserve for new sessions outlined."""
    return [
        {
            "words": label,
            "note": "a minute, the tightest" if name == tightest else "a minute",
            "used": room.used,
            "limit": room.limit,
            "bar": bars.gauge(room.used, room.limit, reserved, f"{room.used:,.0f} of {room.limit:,.0f} used"),
        }
        for name, label in DIMENSIONS.items()
        if (room := headroom.dimensions.get(name))
    ]


# --- backlog ---------------------------------------------------------------------------------------------------------


def arithmetic(outlook: QueueOutlook) -> str:
    """The rate with its computation: "1.58 verdicts a minute: .97 × 30,000 ÷ 18,400"."""
    pace = outlook.pace
    if pace is None:
        return "the rate is unknown until the first verdict"
    rate = f"{pace.per_minute:.2f}" if pace.per_minute < 10 else f"{pace.per_minute:,.0f}"  # noqa: PLR2004 - two digits
    what = DIMENSIONS[pace.dimension].lower()
    return f"{rate} verdicts per minute: {weight(pace.share)} × {pace.limit:,.0f} ÷ {pace.per_verdict:,.0f} {what}"


def arrivals(an_hour: float) -> str:
    """The rate of new sessions as text: "about 5 sessions a day"."""
    if an_hour == 0:
        return "no session since yesterday"
    if an_hour < 1:
        return f"about {counted(max(round(24 * an_hour), 1), 'session')} a day"
    return f"about {counted(round(an_hour), 'session')} an hour"


def sentence(outlook: QueueOutlook) -> str:
    """The forecast of the backlog, as a sentence."""
    new_sessions = arrivals(outlook.arrivals)
    if outlook.arrivals:
        at_this_rate, until_resumed = f" with {new_sessions}", f"grows until the judge is resumed, with {new_sessions}"
    else:
        at_this_rate, until_resumed = f"; {new_sessions}", f"waits until the judge is resumed; {new_sessions}"
    if outlook.forecast.ending is ForecastEnding.DRAINED:
        return f"The backlog clears by {moment(outlook.forecast.empty_at)}{at_this_rate}."
    rate = 0.0 if outlook.pace is None else 60 * outlook.pace.per_minute
    a_day = DAY_HOURS * outlook.arrivals
    pays = 0.0 if outlook.allowance is None else outlook.allowance.daily
    return {
        ForecastEnding.EMPTY: f"Queue empty; {new_sessions}.",
        ForecastEnding.NEVER: (
            f"The backlog never clears at this rate: {new_sessions}, but only {rate:.1f} can be judged."
        ),
        ForecastEnding.BUDGET: (
            f"The backlog never clears with this budget: it pays for {pays:.0f} of {a_day:.0f} sessions a day."
        ),
        ForecastEnding.SHUT: f"The backlog {until_resumed}.",
        ForecastEnding.UNKNOWN: f"No forecast yet, because verdicts and limits are still missing; {new_sessions}.",
        ForecastEnding.FAR: f"The backlog won’t clear within thirty days{at_this_rate}.",
    }[outlook.forecast.ending]


def backlog_chart(outlook: QueueOutlook, *, size: tuple[int, int] = BACKLOG) -> SafeString:
    past = [(timezone.localtime(at), waiting) for at, waiting in outlook.past]
    future = [(timezone.localtime(at), waiting) for at, waiting in outlook.forecast.curve]
    now, forecast = past[-1][0], outlook.forecast
    notes = [Note(at=now, waiting=outlook.waiting, label=f"{outlook.waiting:,} now", css="ink")]
    if forecast.opening is not None:
        at, waiting = forecast.opening
        label = f"{waiting:,.0f} when judging resumes"
        notes.append(Note(at=timezone.localtime(at), waiting=waiting, label=label))
    if forecast.empty_at is not None:
        at = timezone.localtime(forecast.empty_at)
        if size == BACKLOG:  # the others have no room for it, and the sentence above them says it
            notes.append(Note(at=at, waiting=0, label=f"0 at {moment(at)}"))
        future.append((at + (at - past[0][0]) / 10, 0.0))  # room for the label after the end
    return timelines.backlog(past, future if len(future) > 1 else [], notes, size=size)


# --- money -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Today's spend against the budget. `terms` and `rest` add up to `spend`, for sessions; `total` adds `tests`."""

    spend: costs.Spend
    tests: costs.Spend
    total: costs.Spend
    budget: float | None
    terms: tuple[costs.CostTerm, ...]
    rest: float
    bar: SafeString | str
    remaining: float | None


def spent(now: dt.datetime, policy: JudgePolicy) -> Spent:
    today = costs.since(start_of_day(now))
    spend, terms, budget = costs.spend(today), tuple(costs.terms(today)), policy.daily_budget_usd
    tests = costs.spend_on_tests(costs.tests_since(start_of_day(now)))
    total = spend + tests
    rest = (spend.usd or 0.0) - sum(term.usd for term in terms)
    committed = total.committed_usd
    bar = bars.gauge(committed, budget, 0, f"{usd(committed)} of {usd(budget)}") if budget else ""
    return Spent(
        spend=spend,
        tests=tests,
        total=total,
        budget=budget,
        terms=terms,
        rest=rest if abs(rest) >= TRIVIAL else 0.0,
        bar=bar,
        remaining=None if budget is None else budget - committed,
    )


# --- attempts --------------------------------------------------------------------------------------------------------


def outcomes(
    tallies: list[AttemptTally], waiting: WaitingJobs, each_usd: float | None, waits: str
) -> list[dict[str, Any]]:
    """Today's attempts by kind, and the held jobs, with bars on one scale."""
    most = max([waiting.jobs, *(tally.attempts for tally in tallies)])
    calls = sum(tally.attempts for tally in tallies)
    rows: list[dict[str, Any]] = []
    for tally in tallies:
        kind, n = tally.kind, tally.attempts
        if not (n or kind.is_always_shown):
            continue
        if kind.name == "limited":
            share = 100 * n / calls if calls else 0
            missed = ", missed" if share > 100 * TARGET_429 else ""
            note = f"{share:.2g} % of calls; the target is at most 1 %{missed}"
        elif not n:
            note = ""
        elif kind.name == "graded":
            note = "a verdict each" + ("" if each_usd is None else f", {usd(each_usd)} on average")
        elif kind.name == "batched":
            note = "at half price, within a day"
        elif kind.name == "running":
            note = "recorded before they were sent"
        else:
            note = f"{tally.jobs_done:,} of {counted(tally.jobs, 'job')} judged since"
        css = "f-alarm" if kind.needs_attention else "f-floor"
        if kind.name == "graded":
            css = "f-judge"
        rows.append({"kind": kind, "n": n, "bar": bars.share_bar(css, n, most, kind.label), "words": note})
    bar = bars.share_bar("", waiting.jobs, most, "Held, not sent")
    return [*rows, {"kind": None, "n": waiting.jobs, "bar": bar, "words": waits if waiting.jobs else ""}]


# --- outages ---------------------------------------------------------------------------------------------------------


def timeline(
    standing: JudgeStanding, known_since: dt.datetime, periods: list[Period], spells: list[Spell], now: dt.datetime
) -> SafeString:
    """One judge's states over the last two weeks, in whole days, as far back as they are known. The wait until a reset
    is hatched.
    """
    start, end = start_of_day(now) - dt.timedelta(days=DAYS - 1), start_of_day(now) + dt.timedelta(days=1)
    is_open = TimelineSpan(since=max(start, known_since), until=now, css="f-open", label="open")
    spans = [] if standing.quota.is_untested else [is_open]
    for period in periods:
        until, state = period.until or now, period.row.state
        label = f"{state}, {stamp(period.since)} to {stamp(until)}"
        spans.append(TimelineSpan(since=period.since, until=until, css=f"f-{state}", label=label))
    spans += [TimelineSpan(since=s.since, until=s.until, css="f-overloaded", label=spell_words(s)) for s in spells]
    quota = standing.quota
    if quota.is_out and quota.until is not None and quota.until > now:
        label = f"nothing is sent until {stamp(quota.until)}"
        spans.append(TimelineSpan(since=now, until=quota.until, css="", label=label))
    return timelines.timeline(spans, timezone.localtime(start), timezone.localtime(end))


def spell_words(spell: Spell) -> str:
    return f"overloaded, {stamp(spell.since)}–{timezone.localtime(spell.until):%H:%M}, {spell.calls} calls"


def listed(periods: list[Period]) -> list[dict[str, Any]]:
    """The latest outages, newest first, each with the sessions that it affected."""
    latest = [period for period in reversed(periods) if period.is_outage][: outages.LISTED]
    rows = []
    for period, affected in zip(latest, outages.count_affected(latest), strict=True):
        # The list of the sessions that waited for a verdict then.
        window = {"waited_from": period.row.at.isoformat()}
        if period.until is not None:
            window["waited_until"] = period.until.isoformat()
        address = f"{reverse('admin:sessions')}?{urlencode(window)}"
        rows.append({"period": period, "affected": affected, "sessions": address})
    return rows


def tallies_today(now: dt.datetime) -> list[AttemptTally]:
    return attempts.tallies(costs.since(start_of_day(now)))
