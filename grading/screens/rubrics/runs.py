"""Runs of the judge over earlier sessions: the plan with its price, the progress, and cancelling."""

import datetime as dt
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.judging.allowance import budget, quota
from grading.judging.outlook import estimates
from grading.judging.outlook.standing import DIMENSIONS
from grading.judging.rubrics import plans, progress, rejudge
from grading.judging.rubrics.plans import LeftOut
from grading.models import JudgeAttempt, JudgeJob, JudgePolicy, JudgeRun, Rubric, Session
from grading.models.sessions import SessionQuerySet
from grading.monitoring import operation
from grading.plain import counted, primary_key
from grading.screens.charts import bars
from grading.screens.http import StaffRequest, staff_view
from grading.screens.rubrics.view import stale
from grading.screens.sessions import paging
from grading.screens.sessions.view import SessionFilterForm, listed

LISTED = 50
NO_SUCH_FILTER = "The link contains a filter that does not exist. Go back to the list and choose again."


class RunForm(forms.Form):
    """Starts a run of the `count` sessions that match now, unless these are more than the page showed (`seen`)."""

    seen = forms.IntegerField(min_value=0)
    why = forms.CharField(max_length=300, required=False)

    def __init__(self, data: QueryDict | None, *, count: int) -> None:
        super().__init__(data)
        self.count = count

    def clean(self) -> None:
        # Nobody pays for more sessions than the page showed.
        if self.count > self.cleaned_data.get("seen", -1):
            raise forms.ValidationError(
                f"Nothing was queued, because more sessions match now: {self.count}. Check the plan again."
            )


@staff_view("grading.view_rubric")
def show(request: StaffRequest) -> TemplateResponse:
    jobs = JudgeJob.objects.open().filter(run=OuterRef("pk")).order_by().values("run")
    costs = JudgeAttempt.objects.filter(job__run=OuterRef("pk")).order_by().values("job__run")
    runs = (
        JudgeRun.objects.defer("sessions")
        .select_related("rubric", "by")
        .annotate(
            waiting=Coalesce(Subquery(jobs.annotate(n=Count("pk")).values("n")), 0),
            spent=Subquery(costs.annotate(usd=Sum("cost_usd")).values("usd")),
        )
    )
    context = {
        "title": "Judged again",
        "runs": runs[:LISTED],
        "judged": Session.objects.yours().filter(verdict__isnull=False).count(),
        "stale": stale().count(),
    }
    return TemplateResponse(request, "rubrics/runs.html", context)


@staff_view("grading.change_quota")
def plan(request: StaffRequest) -> HttpResponse:
    """The sessions that a run would judge and their cost. A POST starts it."""
    sessions, label, problem = selection(request.GET)
    rerun = None if problem else plans.plan(paging.older(sessions, request.GET), Rubric.objects.in_force())
    form = RunForm(request.POST or None, count=len(rerun.session_ids) if rerun else 0)
    if rerun is not None and rerun.session_ids and form.is_valid():
        run = rejudge.start(
            rerun.session_ids,
            rerun.rubric,
            by=request.user,
            why=form.cleaned_data["why"] or label,
            estimated_usd=rerun.estimate.usd,
        )
        return redirect("admin:run", pk=run.pk)
    context: dict[str, Any] = {
        "title": "Judge again",
        "words": label,
        "problem": problem,
        "form": form,
        "plan": rerun,
        "unchanged": rerun.left_out.get(LeftOut.UNCHANGED, 0) if rerun else 0,
    }
    if rerun is not None and rerun.rest is not None:
        query = request.GET.copy()
        query["before"] = paging.place_of(rerun.rest)
        context["rest"] = query.urlencode()
    if rerun is not None:
        limit, spent = JudgePolicy.objects.current().daily_budget_usd, budget.spent_today(timezone.now())
        remaining = None if limit is None else max(limit - spent, 0.0)
        exceeds_budget = remaining is not None and rerun.estimate.usd > remaining
        pace = estimates.pace(rerun.estimate)
        obstacle = quota.obstacle()
        context |= {
            "budget": limit,
            "spent": spent,
            "left": remaining,
            "days": rerun.estimate.usd / limit if limit and exceeds_budget else None,
            "pace": pace,
            "pace_words": "" if pace is None else DIMENSIONS[pace.dimension].lower(),
            "seconds": None if pace is None else 60 * len(rerun.session_ids) / pace.per_minute,
            "obstacle": obstacle.detail if obstacle else "",
        }
    return TemplateResponse(request, "rubrics/run_plan.html", context)


def selection(query: QueryDict) -> tuple[SessionQuerySet, str, str]:
    """The sessions that a query selects, a label for them, and the problem with the query, "" if there is none.

    It selects by `session` (ticked ones), `given_up` (those that earlier versions gave up), or the list's filters.
    """
    if "given_up" in query:
        jobs = operation.given_up().filter(session=OuterRef("pk"))
        return (
            Session.objects.yours().filter(Exists(jobs)),
            "given up by an earlier version for reasons outside the session",
            "",
        )
    ticked = [key for text in query.getlist("session") if (key := primary_key(text))]
    if "ticked" in query or "session" in query:
        sessions = Session.objects.filter(pk__in=ticked)
        return sessions, counted(len(ticked), "chosen session"), ""
    filters = SessionFilterForm(query)
    if not filters.is_valid():
        return listed(), "", NO_SUCH_FILTER
    labels = filters.words()
    sessions = filters.narrow(listed())
    days = query.get("days", "")
    if days.isdecimal() and len(days) < 5:  # noqa: PLR2004 - some years
        sessions = sessions.filter(ended_at__gt=timezone.now() - dt.timedelta(days=int(days)))
        labels.append(f"ended in the last {days} days")
    return sessions, "; ".join(labels) or "all sessions", ""


@staff_view("grading.view_rubric")
def run(request: StaffRequest, pk: int) -> TemplateResponse:
    run = _run(pk)
    changes = progress.changes(run)
    sessions = Session.objects.with_people().in_bulk([change.session for change in changes.largest])
    # The rubrics of its jobs; before it has any job, the one of most of its sessions.
    rubrics = Rubric.objects.filter(pk__in=run.jobs.order_by().values("rubric")).order_by("kind", "pk")
    context = {
        "title": f"Judged again: run {run.pk}",
        "changes": changes,
        "rows": [{"change": change, "session": sessions[change.session]} for change in changes.largest],
        "rubrics": list(rubrics) or [run.rubric],
        "histogram": bars.verdict_moves(changes.differences) if changes.differences else "",
        **_progress(run),
    }
    return TemplateResponse(request, "rubrics/run.html", context)


@staff_view("grading.view_rubric", methods=["GET"])
def run_progress(request: StaffRequest, pk: int) -> HttpResponse:
    """The progress of a run as a fragment, for a page that is open."""
    return render(request, "rubrics/_run_progress.html", _progress(_run(pk)))


@staff_view("grading.change_quota", methods=["POST"])
def run_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    count = rejudge.cancel(_run(pk), by=request.user)
    messages.success(request, f"{counted(count, 'queued job')} cancelled. Calls in progress still finish.")
    return redirect("admin:run", pk=pk)


def _run(pk: int) -> JudgeRun:
    return get_object_or_404(JudgeRun.objects.defer("sessions").select_related("rubric", "by", "cancelled_by"), pk=pk)


def _progress(run: JudgeRun) -> dict[str, Any]:
    counts = progress.progress(run)
    parts = [
        ("f-judge", "judged", counts.done),
        ("f-floor", "not asked", counts.cancelled + counts.superseded + sum(counts.left_out.values())),
        ("f-alarm", "given up", sum(counts.failed.values())),
        ("", "being judged", counts.judging),
    ]
    obstacle = quota.obstacle()
    return {
        "run": run,
        "progress": counts,
        "bar": bars.run_bar(parts, counts.total, f"{counts.ended} of {counts.total} sessions finished"),
        "waiting": {reason.words or "Due": n for reason, n in counts.waiting.items()},
        "failed": {reason.words: n for reason, n in counts.failed.items()},
        "left_out": {why.label: n for why, n in counts.left_out.items()},
        "obstacle": obstacle.detail if obstacle and counts.waiting else "",
    }
