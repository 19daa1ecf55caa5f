"""Costs: what sessions used of models and what it cost, by day, category, harness, model, project, agent and arm."""

import datetime as dt
from dataclasses import replace
from functools import reduce
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Count, QuerySet
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from bandit.models import Arm
from grading.days import midnight
from grading.models import Agent, Project, Session, SessionUsage
from grading.models.sessions import yours
from grading.plain import counted
from grading.screens.charts import timelines
from grading.screens.charts.timelines import DayCost
from grading.screens.http import StaffRequest, staff_view
from grading.screens.spending import figures
from grading.screens.spending.figures import UsageSum
from grading.templatetags.gradingsite_tags import usd
from grading.vocabulary import CostUnknown

DAYS = 30
LISTED = 50
UNKNOWN = {
    CostUnknown.NOT_READ: "log not read for tokens yet",
    CostUnknown.NO_LOG: "no readable log and no reported cost",
    CostUnknown.NO_TOKENS: "no tokens in the log, or impossible ones",
    CostUnknown.NO_PRICE: "no known price for a model",
}
# Rows are added up for each request. On a site of 200,000 sessions in three years (`benchmarks/pages.py`), that takes
# 25 ms of processor time for 30 days and 40 ms for 90; for half a year 60 ms, and 110 ms by arm.
PERIODS = [("1", "today"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("180", "half a year")]
# The filters that a usage row and a session have alike, with the path of each from a session.
FILTERS = {"category": "category", "harness": "harness", "agent": "agent", "project": "project__name", "model": "model"}


class SpendingFilterForm(forms.Form):
    """The page's filters. Every field is optional; a value that doesn't exist is reported and left out."""

    days = forms.ChoiceField(required=False, label="Time", choices=PERIODS)
    by = forms.ChoiceField(required=False, label="Table by", choices=[(name, name) for name in figures.GROUPS])
    category = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="category"), required=False, to_field_name="name", empty_label="any"
    )
    harness = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="harness"), required=False, to_field_name="name", empty_label="any"
    )
    agent = forms.ModelChoiceField(
        Agent.objects.filter(is_sample=False), required=False, to_field_name="name", empty_label="any"
    )
    project = forms.ChoiceField(required=False, choices=[])
    model = forms.CharField(required=False, max_length=120)

    def __init__(self, data: Any) -> None:
        super().__init__({"days": DAYS, "by": "category", **{name: data[name] for name in data}})
        names = Project.objects.order_by("name").values_list("name", flat=True).distinct()
        self.fields["project"].choices = [("", "any"), *((name, name) for name in names)]  # type: ignore[attr-defined]
        self.is_valid()

    @property
    def by_group(self) -> str:
        return str(self.cleaned_data.get("by") or "category")

    @property
    def start(self) -> dt.date:
        """The first day."""
        days = int(self.cleaned_data.get("days") or DAYS)
        return timezone.localdate() - dt.timedelta(days=days - 1)

    @property
    def chosen(self) -> dict[str, Any]:
        """The filters in use."""
        return {name: self.cleaned_data[name] for name in FILTERS if self.cleaned_data.get(name)}

    def usage(self) -> QuerySet[SessionUsage]:
        """The usage of the site's own sessions on these days."""
        paths = {f"session__{FILTERS[name]}": value for name, value in self.chosen.items() if name != "model"}
        rows = SessionUsage.objects.filter(yours("session"), day__gte=self.start, **paths)
        return rows.filter(model=self.chosen["model"]) if "model" in self.chosen else rows

    def sessions(self) -> QuerySet[Session]:
        """The site's own sessions that ended on these days."""
        paths = {FILTERS[name]: value for name, value in self.chosen.items()}
        return Session.objects.yours().filter(ended_at__gte=midnight(self.start), **paths)


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The page of costs, in a constant number of queries."""
    filters = SpendingFilterForm(request.GET)
    usage = filters.usage()
    by_day = {day: each for (day,), each in figures.sum_by(usage, "day")}
    table = figures.table(usage, filters.by_group)
    total = replace(reduce(UsageSum.plus, by_day.values(), UsageSum()), sessions=table.sessions)
    query = request.GET.copy()
    context = {
        "title": "Costs",
        "filters": filters,
        "by": filters.by_group,
        "total": total,
        "chart": chart(by_day, filters.start),
        "rows": table.rows[:LISTED],
        "rest": len(table.rows) - LISTED,
        "unknown": unknown(filters),
        "narrowed": any(query.values()),
        "has_sessions": Session.objects.yours().exists(),
    }
    context["unknown_count"] = sum(each["count"] for each in context["unknown"])
    return TemplateResponse(request, "spending/spending.html", context)


def chart(sums: dict[dt.date, UsageSum], first: dt.date) -> Any:
    """The chart of costs, with every day since `first`, or since the first with any use if that is later."""
    first = max(first, min(sums, default=first))
    bars = []
    for number in range((timezone.localdate() - first).days + 1):
        day = first + dt.timedelta(days=number)
        each = sums.get(day, UsageSum())
        label = f"{day:%-d %b}: {usd(each.paid_usd)} for {counted(each.sessions, 'session')}"
        if each.covered:
            label += f", and {usd(each.covered_usd)} covered by subscriptions"
        bars.append(DayCost(day=day, reported=each.paid_usd or 0.0, expected=each.covered_usd or 0.0, label=label))
    return timelines.costs(bars, expected_css="f-paused")


def unknown(filters: SpendingFilterForm) -> list[dict[str, Any]]:
    """The sessions whose cost is in no figure, by the reason, with the address of their list."""
    query = {
        "since": filters.start.isoformat(),
        **{name: str(getattr(value, "name", value)) for name, value in filters.chosen.items()},
    }
    sessions = filters.sessions().filter(cost_unknown__in=CostUnknown.missing()).order_by()
    counts = sessions.values_list("cost_unknown").annotate(count=Count("pk")).order_by("-count")
    return [
        {
            "reason": CostUnknown(reason),
            "words": UNKNOWN[CostUnknown(reason)],
            "count": count,
            "url": f"{reverse('admin:sessions')}?{urlencode({**query, 'cost': reason})}",
        }
        for reason, count in counts
    ]
