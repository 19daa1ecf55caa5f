"""Dashboard: can the reward be trusted today?"""

import datetime as dt
from typing import Any

from django.contrib.auth.models import User
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from bandit.models import Selection
from grading.days import start_of_day
from grading.judging import earlier
from grading.judging.outlook import costs
from grading.judging.outlook.forecast import outlook
from grading.judging.outlook.standing import JudgeStanding, headroom, standings
from grading.models import JudgePolicy, Session
from grading.models.judging import JudgeRole
from grading.models.sessions import Whose
from grading.monitoring.rule import is_advisory
from grading.monitoring.sessions import impossible_pair
from grading.review import calibration, claims, queue
from grading.review.filters import QueueFilters, waiting
from grading.review.seen import has_verdict
from grading.review.trust import CHART_DAYS, Trust, trust
from grading.screens.categories.view import uncategorised
from grading.screens.charts import timelines
from grading.screens.charts.bars import STACK
from grading.screens.charts.timelines import NARROW, PHONE_BACKLOG, SMALL_BACKLOG, Bar
from grading.screens.dashboard.checklist import checklist
from grading.screens.dashboard.starving import BANDITS, starving
from grading.screens.desk.answer import TrustFacts, answer
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota import figures as quota_figures
from grading.screens.quota.cards import card, unconfigured
from grading.screens.quota.judge_state import judge_trouble
from grading.screens.quota.outage_marks import outage_marks
from grading.story import march31
from grading.templatetags.gradingsite_tags import moment

LISTED = 5
SAMPLES = QueueFilters(samples="only")


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The dashboard, in a constant number of queries."""
    now, policy = timezone.now(), JudgePolicy.objects.current()
    first = standings().get(JudgeRole.FIRST)
    figures, alarms = trust(now), request.frame.site.alarms
    pressing = [alarm for alarm in alarms if not is_advisory(alarm.rule)]
    midnight, budget = start_of_day(now), policy.daily_budget_usd
    spend, tests = costs.spend(costs.since(midnight)), costs.spend_on_tests(costs.tests_since(midnight))
    # The grader in use against people; None before its first verdict.
    used, counts = request.frame.calibration, queue.count()
    compared = None if used is None else calibration.for_grader(used.grader)
    any_sessions = bool(figures.cells) or Session.objects.yours().exists()
    facts = TrustFacts(
        any_sessions=any_sessions,
        today=figures.provisional_today,
        ungraded=figures.ungraded_today,
        contradicted=waiting(None, QueueFilters(rule=impossible_pair.id)).count(),
        trouble=judge_trouble(None if first is None else first.quota, alarms),
        alarms=tuple(alarm.rule for alarm in alarms),
        compared=compared,
        blind=counts.blind,
        queue=counts.open,
        may_review=request.user.has_perm("grading.add_grade"),
        may_operate=request.user.has_perm("grading.add_apitoken"),
    )
    # The first of the queue. The reward is hidden if a judge has answered, so that people can grade blind.
    user = request.user
    own_items = waiting(user).annotate(hidden=has_verdict())
    queued = claims.in_order(user, own_items, QueueFilters(), size=LISTED)
    context = {
        "title": "Dashboard",
        "offers_story": march31.is_demo() and not march31.Incident(now).pressed_at,
        "uncategorised": uncategorised(),
        "earlier": None if first is None else earlier.load_earlier(now),
        "trust": figures,
        "answer": answer(facts),
        "checklist": checklist(user),
        **grades_by_day(figures, first, now),
        "sources": STACK,
        "money": {"spend": spend, "tests": tests, "total": spend + tests, "budget": budget},
        "compared": compared,
        "judge": unconfigured() if first is None else card(first, policy, now),
        "alarms": pressing[:LISTED],
        "alarm_count": len(pressing),
        "advisories": len(alarms) - len(pressing),
        "queue": counts,
        "items": queued.items,
        "starving": starving(figures, now)[:LISTED],
        "decided": Selection.objects.filter(bandit__name__in=BANDITS).exists(),
        "sample": None if any_sessions or not request.frame.samples.count else sample(user, now),
        **_backlog(first, policy, None if budget is None else budget - (spend + tests).committed_usd),
    }
    return TemplateResponse(request, "dashboard/dashboard.html", context)


def _backlog(first: JudgeStanding | None, policy: JudgePolicy, left_usd: float | None) -> dict[str, object]:
    """What waits for the first judge, as it was and as it is forecast with this much of the budget left."""
    if first is None:
        return {}
    view = outlook(first, headroom(first), policy, left_usd=left_usd)
    worth_drawing = view.waiting or any(waiting for _at, waiting in view.past)
    # The forecast in the few words that a figure has room for.
    drained = []
    if view.forecast.opening is not None:
        _at, waiting = view.forecast.opening
        if waiting > view.waiting:
            drained.append(f"{waiting:,.0f} when judging resumes")
    if (at := view.forecast.empty_at) is not None and view.waiting:
        # Within a day the hour is enough.
        is_near = at - timezone.now() < dt.timedelta(days=1)
        time = f"{timezone.localtime(at):%H:%M}" if is_near else moment(at)
        drained.append(f"none left at about {time}")
    return {
        "backlog": quota_figures.backlog_chart(view, size=SMALL_BACKLOG) if worth_drawing else "",
        "narrow_backlog": quota_figures.backlog_chart(view, size=PHONE_BACKLOG) if worth_drawing else "",
        "forecast": quota_figures.sentence(view),
        "drained": ", ".join(drained),
    }


def sample(user: User, now: dt.datetime) -> dict[str, Any]:
    """What the page will show once the site has sessions of its own, computed from the samples."""
    figures = trust(now, Whose.SAMPLES)
    items = waiting(user, SAMPLES).annotate(hidden=has_verdict())
    queued = claims.in_order(user, items, SAMPLES, size=LISTED)
    return {
        "trust": figures,
        **grades_by_day(figures, None, now),
        "items": queued.items,
        "waiting": queued.all,
    }


def grades_by_day(figures: Trust, first: JudgeStanding | None, now: dt.datetime) -> dict[str, SafeString]:
    """The chart for a screen, and the one for a phone."""
    today = timezone.localdate(now)
    days = [today - dt.timedelta(days=back) for back in range(CHART_DAYS - 1, -1, -1)]
    totals: dict[tuple[dt.date, str, bool], int] = {}
    for cell in figures.cells:
        key = (cell.day, cell.source, cell.final)
        totals[key] = totals.get(key, 0) + cell.count
    bars = [Bar(day=day, source=source, final=final, count=n) for (day, source, final), n in totals.items()]
    outages = outage_marks(first, now, CHART_DAYS)
    return {
        "chart": timelines.by_day(bars, days, outages),
        "narrow": timelines.by_day(bars, days, outages, NARROW),
    }
