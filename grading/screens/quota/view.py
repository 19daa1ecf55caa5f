"""Quota: what each judge's provider lets it do now, what it cost today, what waits, and the outages of two weeks."""

import datetime as dt

from django.template.response import TemplateResponse
from django.utils import timezone

from grading.judging import earlier
from grading.judging.allowance.quota import STATES_WITH_PROBES
from grading.judging.ordering import CALLS_SHARED
from grading.judging.outlook import attempts, outages
from grading.judging.outlook.attempts import WaitingJobs
from grading.judging.outlook.forecast import outlook
from grading.judging.outlook.standing import headroom, standings
from grading.judging.rubrics import plans
from grading.judging.rubrics.plans import Plan
from grading.models import JudgePolicy, Quota, Rubric, Session
from grading.models.judging import JudgeRole
from grading.models.quota import QuotaState
from grading.monitoring import operation
from grading.screens.charts.timelines import PHONE_BACKLOG
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota import figures
from grading.screens.quota.cards import card, unconfigured, waiting_effect
from grading.screens.quota.judge_state import until
from grading.screens.quota.policy import why_not_probe
from grading.templatetags.gradingsite_tags import clock


@staff_view("grading.view_quota")
def show(request: StaffRequest) -> TemplateResponse:
    """The quota page, in a constant number of queries."""
    now, policy, waiting = timezone.now(), JudgePolicy.objects.current(), attempts.waiting_jobs()
    judged = standings()
    first = judged.pop(JudgeRole.FIRST, None)
    context: dict[str, object] = {
        "title": "Judge quota",
        "states": list(QuotaState),
        "first": unconfigured() if first is None else card(first, policy, now),
        "others": [card(standing, policy, now) for standing in judged.values()],
        "effect": waiting_effect(),
        "waiting": waiting,
        "calls_shared": CALLS_SHARED,
        "policy": policy,
        "stalled": operation.count_stalled_jobs(),
        "probe": "There is no judge.",
        "sample": _sample() if request.frame.samples.alone else None,
    }
    if first is not None:
        # Only for a configured judge: headroom, a forecast, outages and the probe.
        room, money = headroom(first), figures.spent(now, policy)
        queue = outlook(first, room, policy, left_usd=money.remaining)
        since = now - dt.timedelta(days=figures.DAYS)
        periods, beginning = outages.periods(first.quota, since), outages.known_since(first.quota)
        spells = outages.spells(first.judge.model, since)
        tallies = figures.tallies_today(now)
        context |= {
            "earlier": earlier.load_earlier(now),
            "spent": money,
            "headroom": room,
            "gauges": figures.gauges(room, queue.pace.dimension if queue.pace else None, policy.reserved_share),
            "outlook": queue,
            "arithmetic": figures.arithmetic(queue),
            "forecast": figures.sentence(queue),
            "chart": figures.backlog_chart(queue),
            "narrow": figures.backlog_chart(queue, size=PHONE_BACKLOG),
            "outcomes": figures.outcomes(tallies, waiting, money.spend.each_usd, _waits(first.quota, waiting)),
            "calls": sum(tally.attempts for tally in tallies),
            "timeline": figures.timeline(first, beginning, periods, spells, now),
            "known_since": beginning if beginning > since else None,
            "spells": [figures.spell_words(spell) for spell in spells],
            "outages": figures.listed(periods),
            "probe": why_not_probe(first.quota, waiting.jobs),
        }
    return TemplateResponse(request, "quota/quota.html", context)


def _sample() -> Plan | None:
    """The plan for judging the samples, which are never judged automatically."""
    return plans.plan(Session.objects.samples(), Rubric.objects.in_force())


def _waits(quota: Quota, waiting: WaitingJobs) -> str:
    """What held jobs wait for."""
    lanes = f"{waiting.new} new, {waiting.backlog} backlog; " if waiting.backlog else ""
    if quota.state == QuotaState.PAUSED:
        return f"{lanes}until somebody resumes"
    if quota.state == QuotaState.MISCONFIGURED:
        return f"{lanes}until the key works"
    if quota.state == QuotaState.EXHAUSTED and quota.until is not None:
        return f"{lanes}held{until(quota.until)}"
    due = "now" if waiting.next_due is None or waiting.next_due <= timezone.now() else f"at {clock(waiting.next_due)}"
    return f"{lanes}the next is due {due}"


def not_before(due: dt.datetime, quota: Quota | None) -> dt.datetime:
    """The earliest time at which a job that is due at `due` is sent: if the quota is out, not before its next probe."""
    if quota is None or quota.state not in STATES_WITH_PROBES or quota.until is None:
        return due
    return max(due, quota.until)
