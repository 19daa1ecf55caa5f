"""Sessions: every finished session with its reward, filtered, searched and paged in a constant number of queries."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Exists, F, OuterRef, Q
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from bandit.models import Arm
from grading.days import midnight
from grading.judging.outlook.outages import waited_during
from grading.judging.rubrics.verdicts import has_stale, with_verdict
from grading.models import Agent, JudgeJob, Session
from grading.models.judging import Purpose
from grading.models.outcomes import LandingState
from grading.models.review import FilteredList
from grading.models.sessions import SessionQuerySet
from grading.review import exported
from grading.review.trust import Behind, sessions_behind
from grading.review.views import NOT_FILTERS
from grading.screens.exports import view as exports
from grading.screens.http import StaffRequest, staff_view
from grading.screens.sessions import groups, paging, saved_views
from grading.templatetags.gradingsite_tags import DASH, short_number, usd
from grading.vocabulary import CostUnknown, Source

CHUNK = 500
DAY = forms.DateInput(attrs={"type": "date"})
# Each order that a person can choose, beside the order of time.
ORDERS = {
    "oldest": ("oldest first", (F("ended_at").asc(), F("pk").asc())),
    "best": ("highest reward", (F("reward_value").desc(nulls_last=True), F("ended_at").desc(), F("pk").desc())),
    "worst": ("lowest reward", (F("reward_value").asc(nulls_last=True), F("ended_at").desc(), F("pk").desc())),
    "dearest": ("highest cost", (F("cost_micro").desc(nulls_last=True), F("ended_at").desc(), F("pk").desc())),
    "longest": ("most tokens", (F("tokens").desc(nulls_last=True), F("ended_at").desc(), F("pk").desc())),
}

# The conditions of fields and values that are not simply a comparison with a column.
CONDITIONS = {
    ("state", "final"): Q(reward_final=True, reward_value__isnull=False),
    ("state", "provisional"): Q(reward_final=False),
    ("state", "none"): Q(settlement__isnull=False, reward_value__isnull=True),
    ("flagged", "yes"): Q(open_flags__gt=0),
    ("flagged", "no"): Q(open_flags=0),
    ("stale", "yes"): Q(is_stale=True),
    ("stale", "no"): Q(is_stale=False),
    ("categorised", "yes"): Q(category__isnull=False),
    ("categorised", "no"): Q(category=None),
    ("cost", "known"): Q(cost_micro__isnull=False),
    ("cost", "unknown"): Q(cost_unknown__in=CostUnknown.missing()),
}
# Fields with another name than the column that they compare.
COLUMNS = {
    "cost": "cost_unknown",
    "project": "project__name",
    "version": "facts__harness_version",
    "landed": "landing__state",
    "source": "reward_source",
}


class SessionFilterForm(forms.Form):
    """The filters of the list. Every field is optional; an invalid value is reported and ignored."""

    q = forms.CharField(required=False, max_length=200, label="Search")
    category = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="category"), required=False, to_field_name="name", empty_label="Any category"
    )
    categorised = forms.ChoiceField(
        required=False,
        label="Has category",
        choices=[("", "With or without category"), ("no", "no category"), ("yes", "has one")],
    )
    harness = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="harness"), required=False, to_field_name="name", empty_label="Any harness"
    )
    agent = forms.ModelChoiceField(
        Agent.objects.filter(is_sample=False), required=False, to_field_name="name", empty_label="Any agent"
    )
    source = forms.ChoiceField(
        required=False, label="Decided by", choices=[("", "Any source"), *((source, source) for source in Source)]
    )
    state = forms.ChoiceField(
        required=False,
        label="Reward",
        choices=[("", "Any reward"), ("final", "final"), ("provisional", "provisional"), ("none", "no reward")],
    )
    stale = forms.ChoiceField(
        required=False, label="Verdict", choices=[("", "Any verdict"), ("yes", "stale"), ("no", "up to date")]
    )
    flagged = forms.ChoiceField(
        required=False, choices=[("", "Flagged or not"), ("yes", "flagged"), ("no", "not flagged")]
    )
    # Names that sessions have, in full. There may be thousands, so they are typed, or follow from a link.
    project = forms.CharField(required=False, max_length=200)
    task = forms.CharField(required=False, max_length=200)
    model = forms.CharField(required=False, max_length=120)
    version = forms.CharField(required=False, max_length=60, label="Harness version")
    # The links of the costs page lead to a reason.
    cost = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Cost known or not"),
            ("known", "known"),
            ("unknown", "unknown"),
            *((reason.value, f"unknown: {reason.words}") for reason in CostUnknown.missing()),
        ],
    )
    landed = forms.ChoiceField(
        required=False,
        choices=[("", "Landed or not"), *((state.value, state.words) for state in LandingState)],
    )
    since = forms.DateField(required=False, label="From", widget=DAY)
    until = forms.DateField(required=False, label="To", widget=DAY)
    samples = forms.ChoiceField(required=False, choices=[("", "Without samples"), ("only", "only samples")])
    # The links of the dashboard: the sessions that a figure counts.
    behind = forms.TypedChoiceField(
        required=False, choices=[(each, each.words) for each in Behind], coerce=Behind, widget=forms.HiddenInput
    )
    # The links of the quota page: sessions whose verdict was outstanding during an outage.
    waited_from = forms.DateTimeField(required=False, widget=forms.HiddenInput)
    waited_until = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    @property
    def common(self) -> list[forms.BoundField]:
        """The fields that the page shows at once."""
        return [self[name] for name in ("category", "agent", "source", "state", "flagged")]

    @property
    def rare(self) -> list[forms.BoundField]:
        """The fields that the page keeps in a menu."""
        facts = ("harness", "version", "model", "project", "task")
        return [self[name] for name in ("categorised", *facts, "cost", "landed", "stale", "samples", "since", "until")]

    @property
    def is_rare(self) -> bool:
        """Whether a field of the menu narrows the list."""
        return any(field.value() for field in self.rare)

    def words(self) -> list[str]:
        """The filters that are set, as the form shows them: "verdict: stale"."""
        labels = []
        for field in self:
            if value := field.value():
                choices = dict(getattr(field.field, "choices", ()))
                labels.append(f"{field.label}: {choices.get(value, value)}".lower())
        return labels

    def narrow(self, sessions: SessionQuerySet) -> SessionQuerySet:
        """The sessions that match every valid field that is set; samples only if the form asks for them."""
        self.is_valid()
        chosen = {name: value for name, value in self.cleaned_data.items() if value}
        sessions = sessions.samples() if chosen.pop("samples", "") else sessions.yours()
        since, until = chosen.pop("waited_from", None), chosen.pop("waited_until", None)
        if since is not None:
            waiting_jobs = JudgeJob.objects.filter(waited_during(since, until), purpose=Purpose.VERDICT)
            sessions = sessions.filter(Exists(waiting_jobs.filter(session=OuterRef("pk"))))
        if "behind" in chosen:
            sessions = sessions_behind(sessions, chosen.pop("behind"))
        if chosen.get("stale") == "yes":
            sessions = sessions.filter(has_stale())
        for name, value in chosen.items():
            sessions = sessions.filter(_condition(name, value))
        return sessions


def _condition(name: str, value: Any) -> Q:
    """The condition for a field of the form that is set to `value`."""
    if (name, value) in CONDITIONS:
        return CONDITIONS[name, value]
    if name == "q":
        return Q(external_id__icontains=value) | Q(title__icontains=value)
    if name == "since":
        return Q(ended_at__gte=midnight(value))
    if name == "until":
        return Q(ended_at__lt=midnight(value + dt.timedelta(days=1)))
    return Q(**{COLUMNS.get(name, name): value})


def columns(sessions: Sequence[Session]) -> dict[str, Any]:
    """`shows`: the columns in which these sessions differ, or all for a single session; `same`: the other columns and
    their common values, as text.
    """
    texts = {
        "project": [each.project.name if each.project else "" for each in sessions],
        "agent": [each.agent.name for each in sessions],
        "arm": [str(each.category or "") for each in sessions],
        "harness": [str(each.harness or "") for each in sessions],
        "model": [each.model for each in sessions],
        "landed": [each.landing.get_state_display() if hasattr(each, "landing") else "" for each in sessions],
        "tokens": [short_number(each.tokens) for each in sessions],
        "cost": [usd(each.cost) for each in sessions],
    }
    shows = {name for name, column in texts.items() if len(column) == 1 or len(set(column)) > 1}
    same = [f"{name} {column[0]}" for name, column in texts.items() if name not in shows and {*column} - {"", DASH}]
    return {"shows": shows, "same": ", ".join(same)}


def listed() -> SessionQuerySet:
    """All sessions, including samples, with the related rows and annotations that the list and its filters use."""
    sessions = Session.objects.with_people().select_related("settlement", "landing").defer("settlement__steps")
    return with_verdict(sessions)


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    filters = SessionFilterForm(request.GET)
    narrowed = filters.narrow(listed())
    order = request.GET.get("sort", "")
    if order in ORDERS:
        page = paging.sorted_page(narrowed, request.GET, by=ORDERS[order][1])
    else:
        page, order = paging.page(narrowed, request.GET), ""
    query = request.GET.copy()
    for name in NOT_FILTERS:
        query.pop(name, None)
    is_narrowed = any(value for name, value in query.items() if name != "sort")
    if not page.object_list and not is_narrowed and request.frame.samples.alone:
        # The site has no sessions of its own yet: show the samples.
        query["samples"] = "only"
        filters = SessionFilterForm(query)
        page = paging.page(filters.narrow(listed()), request.GET)
    context = {
        "title": "Sessions",
        "filters": filters,
        "page": page,
        "groups": groups.group(page.object_list, by_week=order in {"", "oldest"}),
        "late": max(len(page.object_list) - groups.FIRST_ROWS, 0),
        **columns(page.object_list),
        "orders": [("", "newest first"), *((name, words) for name, (words, _) in ORDERS.items())],
        "order": order,
        "query": query.urlencode(),
        "of_samples": query.get("samples") == "only",
        "narrowed": is_narrowed,
        "saved_views": saved_views.menu(request, FilteredList.SESSIONS),
    }
    return TemplateResponse(request, "sessions/sessions.html", context)


@staff_view("grading.view_session")
def by_id(request: StaffRequest, external_id: str) -> HttpResponse:
    """Redirect to the session with this id, or to the list of them if several agents have used the id."""
    sessions = Session.objects.filter(external_id=external_id)
    if agent := request.GET.get("agent", ""):
        sessions = sessions.filter(agent__name=agent)
    first_two = sessions[:2]
    if not first_two:
        raise Http404(f"No session has the id {external_id[:200]}.")
    if len(first_two) == 1:
        return redirect(first_two[0])
    return redirect(f"{reverse('admin:sessions')}?{urlencode({'q': external_id})}")


@staff_view("grading.view_session")
def export_csv(request: StaffRequest) -> StreamingHttpResponse:
    """All sessions that match the filters, as CSV."""
    return exports.as_csv("sessions", exported.SESSION_FIELDS, _export_rows(request))


@staff_view("grading.view_session")
def export_jsonl(request: StaffRequest) -> StreamingHttpResponse:
    """All sessions that match the filters, as JSONL."""
    return exports.as_jsonl("sessions", _export_rows(request))


def _export_rows(request: HttpRequest) -> Iterator[dict[str, Any]]:
    sessions = SessionFilterForm(request.GET).narrow(listed())
    _, order = ORDERS.get(request.GET.get("sort", ""), ("", ("-ended_at", "-pk")))
    ordered = sessions.order_by(*order).select_related("facts").prefetch_related("usage")
    return map(exported.session_record, ordered.iterator(chunk_size=CHUNK))
