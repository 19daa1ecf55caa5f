"""Rubrics: the list, one rubric with its results, and activating one."""

import datetime as dt

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.judging.core.rubric import difference
from grading.judging.rubrics import kinds, plans, versions
from grading.judging.rubrics.verdicts import has_stale, verdicts, with_verdict
from grading.judging.rubrics.versions import RubricFigures
from grading.models import Grade, Rubric, RubricActivation, Session
from grading.models.judging import Purpose
from grading.screens.http import StaffRequest, staff_view
from grading.screens.rubrics.preview import full_name
from grading.vocabulary import WorkKind

LISTED = 20
ABOUT = {
    WorkKind.PRODUCTION: "all other work, and sessions without a category",
    WorkKind.CONSUMPTION: "reading categories; judged by what the session found and stored, not by commits",
    WorkKind.LOOKING: "checking categories; judged by whether the check was done, not by what it found",
}
# The periods for which the page shows the cost of judging again before a rubric is activated.
WINDOWS = ((7, "of the last 7 days"), (30, "of the last 30 days"), (None, "all of them"))


@staff_view("grading.view_rubric")
def show(request: StaffRequest) -> TemplateResponse:
    rows = list(Rubric.objects.select_related("author", "parent").order_by("-is_active", "-created_at"))
    figures, read_at = versions.latest_figures()
    sections = []
    for kind in WorkKind:
        of_this_kind = [row for row in rows if row.kind == kind]
        sections.append(
            {
                "words": kind.words,
                "about": ABOUT[kind],
                "active": next((row for row in of_this_kind if row.is_active), None),
                "rows": [{"rubric": row, "figures": figures.get(row.sha256, RubricFigures())} for row in of_this_kind],
            }
        )
    context = {
        "title": "Rubrics",
        "kinds": sections,
        "read_at": read_at,
        "stale": stale().count(),
        "activations": RubricActivation.objects.select_related("rubric", "by")[:LISTED],
    }
    return TemplateResponse(request, "rubrics/rubrics.html", context)


@staff_view("grading.view_rubric")
def detail(request: StaffRequest, pk: int) -> TemplateResponse:
    rubric = get_object_or_404(Rubric.objects.select_related("author", "parent"), pk=pk)
    parent = rubric.parent
    # The texts that differ from the parent's.
    reworded = []
    if parent is not None:
        pairs = [("Instructions", parent.text, rubric.text)]
        for section in ("dimensions", "bands"):
            old = {row["name"]: row["text"] for row in getattr(parent, section)}
            pairs += [(row["name"], old.get(row["name"], row["text"]), row["text"]) for row in getattr(rubric, section)]
        reworded = [{"name": name, "before": old, "after": new} for name, old, new in pairs if old != new]
    trials = Grade.objects.verdicts().filter(rubric=rubric.sha256, parallel=True, purpose=Purpose.TRIAL)
    trials = trials.select_related("session__category", "session__agent").order_by("-pk")[:LISTED]
    figures, read_at = versions.latest_figures()
    context = {
        "title": rubric.title,
        "rubric": rubric,
        "in_force": Rubric.objects.filter(kind=rubric.kind, is_active=True).first(),
        "read_at": read_at,
        "figures": figures.get(rubric.sha256, RubricFigures()),
        "differs": difference(versions.content(parent), versions.content(rubric)) if parent else [],
        "before_after": reworded,
        "stale": of_kind(stale(), WorkKind(rubric.kind)).count() if rubric.is_active else 0,
        "about": ABOUT[WorkKind(rubric.kind)],
        "trials": [{"grade": row, "named": full_name(row.session)} for row in trials],
    }
    return TemplateResponse(request, "rubrics/rubric.html", context)


def stale() -> QuerySet[Session]:
    """The sessions whose verdict is stale."""
    return with_verdict(Session.objects.yours().filter(has_stale())).filter(Q(is_stale=True))


def of_kind(sessions: QuerySet[Session], kind: WorkKind) -> QuerySet[Session]:
    """The sessions of a kind of work."""
    categories = kinds.of_categories()
    if kind is WorkKind.PRODUCTION:
        return sessions.filter(~Q(category__in=categories) | Q(category=None))
    return sessions.filter(category__in=[pk for pk, each in categories.items() if each is kind])


@staff_view("grading.change_rubric")
def activate(request: StaffRequest, pk: int) -> HttpResponse:
    rubric = get_object_or_404(Rubric, pk=pk)
    if request.method == "POST":
        job_count = versions.activate(rubric, by=request.user)
        jobs = "1 queued job uses" if job_count == 1 else f"{job_count} queued jobs use"
        waiting = f" {jobs} it." if job_count else ""
        message = f"{rubric} is in force for {rubric.work}.{waiting} Verdicts from other rubrics on such work are stale"
        messages.success(request, f"{message}, and hold.")
        return redirect("admin:rubric", pk=pk)
    now = timezone.now()
    kind = WorkKind(rubric.kind)
    judged = of_kind(Session.objects.yours().filter(pk__in=verdicts().order_by().values("session")), kind)
    rows = verdicts().filter(session__in=judged.order_by().values("pk")).order_by("pk")
    latest = dict(rows.values_list("session", "rubric")).values()  # a later row of a session replaces an earlier one
    # The cost of judging the sessions of some days again under this rubric.
    windows = []
    for days, label in WINDOWS:
        sessions = judged if days is None else judged.filter(ended_at__gt=now - dt.timedelta(days=days))
        windows.append({"words": label, "plan": plans.plan(sessions, {kind: rubric})})
    context = {
        "title": "Put a rubric in force",
        "rubric": rubric,
        "active": Rubric.objects.active(kind),
        "about": ABOUT[kind],
        "stale": sum(sha256 != rubric.sha256 for sha256 in latest),
        "judged": len(latest),
        "windows": windows,
    }
    return TemplateResponse(request, "rubrics/rubric_activate.html", context)
