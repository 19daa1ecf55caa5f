"""The first page of `gradingsite try`: what ran on this machine, what it cost, what failed, and what is not graded.

The facts come first, because they need no grader.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from grading.busy import trouble
from grading.models import ImportedFile, LogInPlace, Session
from grading.models.evidence import ArtifactKind
from grading.models.imports import Fate
from grading.models.sessions import MICRODOLLARS
from grading.screens.http import StaffRequest, staff_view
from grading.signals.final_state import TestState
from grading.trial import keeping, places, reading
from grading.vocabulary import NO_REWARD, Outcome, Source

FAILURES_LISTED, PROMPTS_LISTED, REASONS_LISTED, EXAMPLES_LISTED = 20, 50, 6, 10
RELOAD_SECONDS = 2
STOP_SECONDS = 1.0  # from the reply with the password to the end of the trial
# Grades of sessions that no judge or person has read.
NOT_GRADED = ("", Source.FLOOR)
HOW_IT_ENDED = {
    Outcome.INFRASTRUCTURE: "ended by a provider error",
    Outcome.FAILED: "failed",
    Outcome.REFUSED: "refused",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSession:
    """A session in which something failed, and what."""

    session: Session
    what: str


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    if not settings.TRIAL:
        raise Http404("Only `gradingsite try` has this page.")
    progress, sessions = reading.PROGRESS, own_sessions()
    failures, lost_prompts = [*failed(sessions)], places.lost_prompts()
    not_graded = sessions.filter(reward_source__in=NOT_GRADED).exclude(outcome__in=NO_REWARD)
    context = {
        "title": "What ran here",
        "progress": progress,
        "reload_seconds": RELOAD_SECONDS,
        "total": totals(sessions),
        "rows": by_model(sessions),
        "failures": failures[:FAILURES_LISTED],
        "failures_count": len(failures),
        "not_graded": not_graded.order_by("-ended_at")[:EXAMPLES_LISTED],
        "not_graded_count": not_graded.count(),
        "refused": refused_files(),
        "folders": places.log_folders(),
        "in_place": LogInPlace.objects.count(),
        "cleanup": places.cleanup(),
        "lost": lost_prompts[:PROMPTS_LISTED],
        "lost_count": len(lost_prompts),
        "state": settings.STATE_DIR,
    }
    return TemplateResponse(request, "trial/trial.html", context)


@staff_view("grading.change_quota")
def keep(request: StaffRequest) -> HttpResponse:
    """Copy the logs, make an admin, and start the site in place of the trial. Shows the password once."""
    if not settings.TRIAL:
        raise Http404("Only a trial can be kept.")
    if request.method != "POST" or not reading.PROGRESS.is_over:
        return redirect("admin:trial")
    try:
        missing_logs = keeping.keep_logs()
        password = keeping.make_admin()
    except Exception as error:
        problem = trouble(error)
        if problem is None:
            raise
        messages.error(
            request, f"The trial was not kept. {problem.title}: {problem.words} Then press “Keep this” again."
        )
        return redirect("admin:trial")
    threading.Timer(STOP_SECONDS, keeping.when_kept).start()
    context = {
        "title": "Kept",
        "password": password,
        "gone": missing_logs,
        "agent": reading.AGENT,
        "state": settings.STATE_DIR,
    }
    return TemplateResponse(request, "trial/kept.html", context)


def own_sessions() -> QuerySet[Session]:
    """The sessions without those of subagents, which belong to the session that started them."""
    return Session.objects.yours().filter(log__part_of=None)


def totals(sessions: QuerySet[Session]) -> dict[str, Any]:
    sums = sessions.aggregate(
        sessions=Count("pk"),
        harnesses=Count("harness", distinct=True),
        first=Min("ended_at"),
        last=Max("ended_at"),
        tokens=Sum("tokens"),
        cost=Sum("cost_micro"),
        priced=Count("cost_micro"),
        minutes=Sum("facts__active_minutes"),
    )
    return {**sums, "usd": dollars(sums["cost"])}


def by_model(sessions: QuerySet[Session]) -> list[dict[str, Any]]:
    """The sessions, costs, calls and artifacts of each model in each harness, the most used first."""
    rows = sessions.order_by().values("harness__name", "model")
    rows = rows.annotate(
        sessions=Count("pk"),
        cost_sum=Sum("cost_micro"),
        priced=Count("cost_micro"),
        tool_calls=Sum("facts__tool_calls"),
        failed_calls=Sum("facts__failed_calls"),
        broken=Count("pk", filter=~Q(outcome=Outcome.COMPLETED)),
        last=Max("ended_at"),
    )
    kinds = {ArtifactKind.COMMIT: "commits", ArtifactKind.PULL_REQUEST: "pulls"}
    own_artifacts = sessions.order_by().filter(artifacts__kind__in=kinds, artifacts__owned_by=None)
    grouped = own_artifacts.values_list("harness__name", "model", "artifacts__kind")
    counts = {
        (harness, model, kind): n
        for harness, model, kind, n in grouped.annotate(n=Count("artifacts__key", distinct=True))
    }
    table = []
    for row in rows.order_by("-sessions", "harness__name", "model"):
        harness, model = row["harness__name"], row["model"]
        artifacts = {name: counts.get((harness, model, kind), 0) for kind, name in kinds.items()}
        table.append({**row, **artifacts, "harness": harness or "unknown", "usd": dollars(row["cost_sum"])})
    return table


def failed(sessions: QuerySet[Session]) -> Iterator[FailedSession]:
    """The sessions whose log shows that something failed, latest first."""
    rows = sessions.select_related("facts", "harness")
    suspects = ~Q(outcome=Outcome.COMPLETED) | Q(facts__suites__isnull=False)
    for session in rows.filter(suspects).order_by("-ended_at"):
        what = []
        if session.outcome != Outcome.COMPLETED:
            what.append(HOW_IT_ENDED[Outcome(session.outcome)])
            if session.outcome_reason:
                what.append(session.outcome_reason)
        facts = getattr(session, "facts", None)
        suites = facts.suites if facts and facts.suites else ()
        red = [suite["suite"] for suite in suites if suite["state"] == TestState.RED]
        if red:
            what.append(f"tests failed at the end ({', '.join(red)})")
        if facts and facts.claimed_without_green:
            what.append("claimed success without a passing test")
        if what:
            yield FailedSession(session=session, what="; ".join(what))


def refused_files() -> list[tuple[str, int]]:
    """Why logs were not read, with their numbers, the most frequent first."""
    rows = ImportedFile.objects.filter(fate=Fate.REFUSED).exclude(why="").order_by()
    counted = rows.values_list("why").annotate(n=Count("path", distinct=True)).order_by("-n", "why")
    return list(counted[:REASONS_LISTED])


def dollars(micro: int | None) -> float | None:
    return None if micro is None else micro / MICRODOLLARS
