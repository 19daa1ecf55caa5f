"""Insight: whether results changed, since when, and what else changed then."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from grading.insight import agents, loading, since
from grading.insight.changes import compare, last_two_weeks
from grading.insight.core.measures import MeasureUnit
from grading.insight.core.results import AgentCard, Trend
from grading.insight.sentences import write_headline, write_too_few
from grading.insight.trends import load_trend
from grading.judging.rubrics import trials
from grading.models import Repository, Rubric, Session
from grading.monitoring.worse import find_worse_results
from grading.outcomes.landed_work import load_by_agent
from grading.plain import counted, primary_key
from grading.screens.exports import view as exports
from grading.screens.http import StaffRequest, staff_view
from grading.screens.insight import change_card, effects_card, trend_card
from grading.screens.insight.forms import PERIODS, InsightForm

# A bridge needs about thirty sessions; a form with more than this is not ours.
MOST_READ = 100


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The page of Insight, in a constant number of queries."""
    form = InsightForm(request.GET, timezone.now())
    trend = _trend(form, trend_card.GROUPS)
    context: dict[str, Any] = {
        "title": "Insight",
        "filters": form,
        "query": form.query(),
        "without_periods": form.query(mark="", **dict.fromkeys(PERIODS, "")),
        "narrowed": any(request.GET.values()),
        "measure": form.chosen_measure,
        "step": form.chosen_step,
        "split": form.chosen_split,
        "has_sessions": Session.objects.yours().exists(),
        "worse": [alarm for alarm in request.frame.site.alarms if alarm.rule == find_worse_results.id],
    }
    if trend.whole.total.sessions:
        context |= _cards(form, trend)
    return TemplateResponse(request, "insight/insight.html", context)


def _cards(form: InsightForm, trend: Trend) -> dict[str, Any]:
    """The headline and the four cards."""
    reading = since.stored_reading()
    marks = since.marks_during(reading, form.span)
    before, after = form.periods(marks)
    # A number of sessions has no mean, and so no parts: the reward's are shown then.
    measure = "reward" if form.chosen_measure.unit is MeasureUnit.SESSIONS else form.chosen_measure.name
    change = compare(before, after, measure=measure, filters=form.filters)
    is_last_week = bool(change.after.sessions) and (before, after) == last_two_weeks(form.now)
    work = {}
    if Repository.objects.exists():
        span = loading.last_weeks(form.now, agents.WEEKS)
        work = load_by_agent(span, form.now, filters=form.filters)
    cards = _agents(form)
    return {
        "headline": f"{'Last whole week, ' if is_last_week else ''}{write_headline(change)}",
        "trend": trend_card.context(trend, marks, form.narrowing, form.query),
        "change": change_card.context(change, form.narrowing, marks),
        "chosen_mark": form.chosen_mark(marks),
        "effects": effects_card.group_effects(reading.effects if reading else ()),
        "effects_at": reading and reading.read_at,
        "agents": effects_card.agent_rows(cards, work),
        "compares": any(card.reward for card in cards),
        "too_few": write_too_few(cards),
        "has_work": any(each.tried for each in work.values()),
        "agent_span": agents.WEEKS,
    }


def _agents(form: InsightForm) -> tuple[AgentCard, ...]:
    """The comparison of the last weeks: stored by the worker for all sessions, computed now for filtered ones."""
    if not form.narrowing:
        return agents.latest_cards()
    return agents.compare_agents(loading.last_weeks(form.now, agents.WEEKS), filters=form.filters)


@staff_view("grading.view_session")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The points of the trend and of all its groups as CSV. An unknown value is empty."""
    trend = _trend(InsightForm(request.GET, timezone.now()), None)
    return exports.as_csv("insight", trend_card.COLUMNS, trend_card.export(trend))


@staff_view("grading.change_rubric", methods=["POST"])
def bridge(request: StaffRequest) -> HttpResponse:
    """Have the judge read the sessions of a bridge by another rubric: trials, which change no reward."""
    rubric = get_object_or_404(Rubric, sha256=request.POST.get("rubric", ""))
    keys = {primary_key(text) for text in request.POST.getlist("session")}
    if not keys or len(keys) > MOST_READ:
        raise Http404(f"Expected 1 to {MOST_READ} sessions; got {len(keys)}.")
    ordered = 0
    try:
        for session in Session.objects.yours().filter(pk__in=keys).order_by("pk"):
            if trials.try_on(session, rubric) is not None:
                ordered += 1
    except trials.TrialError as error:
        messages.error(request, str(error))
    if ordered:
        messages.success(
            request,
            f"The judge grades {counted(ordered, 'session')} with {rubric}. This page is updated as its grades arrive.",
        )
    return redirect(f"{reverse('admin:insight')}?{request.POST.get('back', '')}#change")


def _trend(form: InsightForm, most_lines: int | None) -> Trend:
    return load_trend(
        form.chosen_measure.name,
        form.span,
        step=form.chosen_step,
        split=form.chosen_split,
        filters=form.filters,
        most_lines=most_lines,
    )
