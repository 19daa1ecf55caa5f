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
from grading.review.trust import Behind, narrow
from grading.review.views import PASSING
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

# Filters with another name than the column that they compare.
COLUMNS = {
    "project": "project__name",
    "version": "facts__harness_version",
    "landed": "landing__state",
    "source": "reward_source",
}


class SessionFilterForm(forms.Form):
    """What the list is narrowed to. Every field is optional; a value that doesn't exist is said and left out."""

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
        """What the list is narrowed to, as the form shows it: "verdict: stale"."""
        return [
            f"{field.label}: {dict(getattr(field.field, 'choices', ())).get(field.value(), field.value())}".lower()
            for field in self
            if field.value()
        ]

    def narrow(self, sessions: SessionQuerySet) -> SessionQuerySet:
        chosen = dict(self.cleaned_data if self.is_valid() else getattr(self, "cleaned_data", {}))
        sessions = sessions.samples() if chosen.pop("samples", "") else sessions.yours()
        since, until = chosen.pop("waited_from", None), chosen.pop("waited_until", None)
        if since is not None:
            during = JudgeJob.objects.filter(waited_during(since, until), purpose=Purpose.VERDICT)
            sessions = sessions.filter(Exists(during.filter(session=OuterRef("pk"))))
        if behind := chosen.pop("behind", None):
            sessions = narrow(sessions, behind)
        for name, choice in chosen.items():
            if not choice:
                continue
            if name == "q":
                condition = Q(external_id__icontains=choice) | Q(title__icontains=choice)
            elif name in COLUMNS:
                condition = Q(**{COLUMNS[name]: choice})
            elif name == "cost":
                reasons = CostUnknown.missing() if choice == "unknown" else [choice]
                condition = Q(cost_micro__isnull=False) if choice == "known" else Q(cost_unknown__in=reasons)
            elif name == "state":
                condition = {
                    "final": Q(reward_final=True, reward_value__isnull=False),
                    "provisional": Q(reward_final=False),
                    "none": Q(settlement__isnull=False, reward_value__isnull=True),
                }[choice]
            elif name in {"flagged", "stale"}:
                sessions = sessions.filter(has_stale()) if (name, choice) == ("stale", "yes") else sessions
                condition = {
                    "flagged": Q(open_flags__gt=0) if choice == "yes" else Q(open_flags=0),
                    "stale": Q(is_stale=choice == "yes"),
                }[name]
            elif name == "categorised":
                condition = Q(category=None) if choice == "no" else Q(category__isnull=False)
            elif name in {"since", "until"}:
                start = midnight(choice if name == "since" else choice + dt.timedelta(days=1))
                condition = Q(ended_at__gte=start) if name == "since" else Q(ended_at__lt=start)
            else:
                condition = Q(**{name: choice})
            sessions = sessions.filter(condition)
        return sessions


def columns(sessions: Sequence[Session]) -> dict[str, Any]:
    """`shows`: the columns in which these sessions differ; `same`: what the others say in every row, in words.

    A single session shows all of them.
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
    """Every session, samples too, with what the list shows and filters by."""
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
    for passing in PASSING:
        query.pop(passing, None)
    is_narrowed = any(value for name, value in query.items() if name != "sort")
    if not page.object_list and not is_narrowed and request.frame.samples.alone:
        # Nothing of the site's own yet: the samples, as if they had been asked for.
        query["samples"] = "only"
        filters = SessionFilterForm(query)
        page = paging.page(filters.narrow(listed()), request.GET)
    context = {
        "title": "Sessions",
        "filters": filters,
        "page": page,
        "groups": groups.of(page.object_list, by_week=order in {"", "oldest"}),
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
    """The session of that id of its agent's own; the list of them where several agents have used it."""
    sessions = Session.objects.filter(external_id=external_id)
    if agent := request.GET.get("agent", ""):
        sessions = sessions.filter(agent__name=agent)
    found = list(sessions[:2])
    if not found:
        raise Http404(f"No session has the id {external_id[:200]}.")
    if len(found) == 1:
        return redirect(found[0])
    return redirect(f"{reverse('admin:sessions')}?{urlencode({'q': external_id})}")


@staff_view("grading.view_session")
def export_csv(request: StaffRequest) -> StreamingHttpResponse:
    """What the list shows, all of it, as CSV."""
    return exports.as_csv("sessions", exported.SESSION, _each(request))


@staff_view("grading.view_session")
def export_jsonl(request: StaffRequest) -> StreamingHttpResponse:
    """The same as JSONL."""
    return exports.as_jsonl("sessions", _each(request))


def _each(request: HttpRequest) -> Iterator[dict[str, Any]]:
    sessions = SessionFilterForm(request.GET).narrow(listed())
    _, order = ORDERS.get(request.GET.get("sort", ""), ("", ("-ended_at", "-pk")))
    ordered = sessions.order_by(*order).select_related("facts").prefetch_related("usage")
    return map(exported.of_session, ordered.iterator(chunk_size=CHUNK))
