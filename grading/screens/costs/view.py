"""Costs: what the judge cost by day, agent, model and purpose, and every attempt, on the page and as CSV."""

import datetime as dt
from itertools import chain
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.db.models import F, QuerySet
from django.db.models.functions import TruncDate
from django.http import StreamingHttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.days import start_of_day
from grading.judging.outlook import costs, daily_costs
from grading.judging.outlook.attempts import BY_NAME, KINDS
from grading.judging.outlook.costs import Spend
from grading.judging.outlook.daily_costs import DaySpend
from grading.models import Agent, JudgeAttempt, JudgeKeyTest
from grading.models.judging import Purpose
from grading.plain import counted
from grading.screens.charts import timelines
from grading.screens.charts.timelines import DayCost
from grading.screens.exports import view as exports
from grading.screens.http import StaffRequest, staff_view
from grading.templatetags.gradingsite_tags import usd

PAGE_SIZE = 25
# The columns of the keys of `costs.Spends`.
DAY, AGENT, MODEL, PURPOSE, BATCHED = range(5)
DAYS = 30
# A purpose of its own, since a test of the key judges no session.
KEY_TEST = "key-test"
PURPOSES = {**{each.value: each.words for each in Purpose}, KEY_TEST: "test of the key, or canary"}
COLUMNS = (
    "started_at", "finished_at", "agent", "session", "purpose", "judge", "model", "batch", "outcome", "reason",
    "http_status", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd",
    "estimated_usd", "request_id", "detail",
)  # fmt: skip


class CostFilterForm(forms.Form):
    """The page's filters. Every field is optional; a value that doesn't exist is reported and ignored."""

    days = forms.ChoiceField(
        required=False,
        label="Time",
        choices=[("1", "today"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days")],
    )
    agent = forms.ModelChoiceField(
        Agent.objects.filter(is_sample=False), required=False, to_field_name="name", empty_label="any"
    )
    model = forms.ChoiceField(required=False, choices=[])
    purpose = forms.ChoiceField(required=False, choices=[("", "any"), *PURPOSES.items()])
    outcome = forms.ChoiceField(required=False, choices=[("", "any"), *((kind.name, kind.label) for kind in KINDS)])

    def __init__(self, data: Any) -> None:
        super().__init__({"days": DAYS, **{name: data[name] for name in data}})
        # Older calls are not on the page.
        oldest = start_of_day(timezone.now()) - dt.timedelta(days=daily_costs.MOST_DAYS)
        judged = costs.since(oldest).exclude(model="").order_by().values_list("model", flat=True).distinct()
        tested = costs.tests_since(oldest).order_by().values_list("model", flat=True).distinct()
        choices = [("", "any"), *((name, name) for name in sorted({*judged, *tested}))]
        self.fields["model"].choices = choices  # type: ignore[attr-defined] # a ChoiceField, declared above
        self.is_valid()  # fills `cleaned_data`, which the methods read

    @property
    def start(self) -> dt.datetime:
        days = int(self.cleaned_data.get("days") or DAYS)
        return start_of_day(timezone.now()) - dt.timedelta(days=days - 1)

    def attempts(self) -> QuerySet[JudgeAttempt]:
        chosen = self.cleaned_data
        rows = costs.since(self.start)
        if chosen.get("purpose") == KEY_TEST:
            return rows.none()
        for path, name in (("job__session__agent", "agent"), ("model", "model"), ("job__purpose", "purpose")):
            if chosen.get(name):
                rows = rows.filter(**{path: chosen[name]})
        return rows.filter(BY_NAME[chosen["outcome"]].condition) if chosen.get("outcome") else rows

    def shows(self, row: DaySpend) -> bool:
        """Whether the filters include these calls, as in `attempts`."""
        chosen = self.cleaned_data
        columns = {"model": row.model, "purpose": row.purpose, "outcome": row.kind}
        is_chosen = all(not chosen.get(name) or chosen[name] == value for name, value in columns.items())
        return is_chosen and (chosen.get("agent") is None or chosen["agent"].pk == row.agent)

    def tests(self) -> QuerySet[JudgeKeyTest]:
        """The tests of the key that the filters include: none if they name an agent, an outcome or another purpose."""
        chosen = self.cleaned_data
        rows = costs.tests_since(self.start)
        if chosen.get("agent") or chosen.get("outcome") or chosen.get("purpose") not in {"", None, KEY_TEST}:
            return rows.none()
        return rows.filter(model=chosen["model"]) if chosen.get("model") else rows


@staff_view("grading.view_quota")
def show(request: StaffRequest) -> TemplateResponse:
    """A constant number of queries."""
    filters = CostFilterForm(request.GET)
    rows = filters.attempts().select_related("job__session__category", "job__session__agent")
    query = request.GET.copy()
    query.pop("page", None)
    names = dict(Agent.objects.values_list("pk", "name"))
    days, read_at = daily_costs.latest_spends(timezone.localdate(filters.start))
    spends: costs.Spends = [
        ((row.day, names.get(row.agent, ""), row.model, row.purpose, row.batched), row.spend)
        for row in days
        if filters.shows(row)
    ]
    pages = Paginator(rows.order_by("-started_at", "-pk"), PAGE_SIZE)
    pages.count = sum(spend.attempts for _, spend in spends)  # saves a query
    tests = costs.spend_on_tests_by(filters.tests(), day=TruncDate("started_at"), tested_model=F("model"))
    spends = [*spends, *(((day, "", model, KEY_TEST, False), spend) for (day, model), spend in tests)]
    by_day, splits = costs.sum_by(spends, DAY), tables(spends)
    context = {
        "title": "Judge’s costs",
        "filters": filters,
        "read_at": read_at,
        "total": dict(costs.sum_by(spends)).get((), Spend()),  # by no column: the only key is ()
        "chart": chart(by_day, timezone.localdate(filters.start)),
        "tables": splits,
        "splits": [table for table in splits if len(table["rows"]) > 1],  # one row repeats the total
        "days": _table("day", [(f"{day:%-d %b %Y}", spend) for (day,), spend in reversed(by_day)]),
        "page": pages.get_page(request.GET.get("page")),
        "query": query.urlencode(),
        "narrowed": any(query.values()),
    }
    return TemplateResponse(request, "costs/costs.html", context)


def chart(by_day: list[tuple[tuple[Any, ...], Spend]], first: dt.date) -> Any:
    """Every day since `first`, or since the first with a call if that is later, including those that cost nothing."""
    spends = {day: spend for (day,), spend in by_day}
    first = max(first, min(spends, default=first))
    days = (timezone.localdate() - first).days + 1
    bars = []
    for day in (first + dt.timedelta(days=n) for n in range(days)):
        spend = spends.get(day, Spend())
        label = f"{day:%-d %b}: {usd(spend.usd)} known for {spend.known} calls"
        if spend.unknown_cost:
            calls = counted(spend.unknown_cost, "more call")
            label += f", {calls} estimated at {usd(spend.expected_usd)}"
        bars.append(DayCost(day=day, reported=spend.usd or 0.0, expected=spend.expected_usd, label=label))
    return timelines.costs(bars)


def tables(spends: costs.Spends) -> list[dict[str, Any]]:
    """The same figures by agent, model and purpose."""
    by_purpose = []
    for (purpose, batched), spend in costs.sum_by(spends, PURPOSE, BATCHED):
        name = PURPOSES[purpose].capitalize()
        by_purpose.append((f"{name}, in a batch at half price" if batched else name, spend))
    return [
        _table(
            "agent",
            [(name or "none (key tests and canaries)", spend) for (name,), spend in costs.sum_by(spends, AGENT)],
        ),
        _table("model", [(name or "unknown", spend) for (name,), spend in costs.sum_by(spends, MODEL)]),
        _table("purpose", by_purpose),
    ]


def _table(by: str, rows: list[tuple[str, Spend]]) -> dict[str, Any]:
    return {"by": by, "rows": [{"name": name, "spend": spend} for name, spend in rows]}


@staff_view("grading.view_quota")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The page's attempts as CSV, then the tests of the key. An unknown cost is empty."""
    filters = CostFilterForm(request.GET)
    attempts = filters.attempts().select_related("job__session__agent").order_by("pk").iterator(chunk_size=500)
    tests = filters.tests().order_by("pk").iterator(chunk_size=500)
    return exports.as_csv("judge-attempts", COLUMNS, chain(map(record, attempts), map(record_of_test, tests)))


def record(row: JudgeAttempt) -> dict[str, Any]:
    session = row.job.session
    special = {
        "agent": session.agent.name,
        "session": session.external_id,
        "purpose": row.job.purpose,
        "batch": row.batch_id,
    }
    return {name: special[name] if name in special else getattr(row, name) for name in COLUMNS}


def record_of_test(row: JudgeKeyTest) -> dict[str, Any]:
    """The record of a test of the key; columns that only attempts have are empty."""
    outcome = ""
    if row.finished_at is not None:
        outcome = "answered" if row.answered else "failed"
    special = {"purpose": KEY_TEST, "outcome": outcome}
    return {name: special[name] if name in special else getattr(row, name, None) for name in COLUMNS}
