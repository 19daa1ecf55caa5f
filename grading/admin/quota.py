"""Quota: what the provider lets the judge do now, what waits for it, and every attempt by its outcome."""

import datetime as dt

from django.conf import settings
from django.db.models import Count, Max, Min, Sum
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from grading import charts
from grading.admin.house import judge_state, worst_quota
from grading.core.vocabulary import Reason
from grading.models import JudgeAttempt, JudgeJob, Quota, QuotaTransition
from grading.models.judging import AttemptOutcome
from grading.models.quota import QuotaState
from grading.trust import start_of_day

DAYS = 14
LISTED = 20
OUTCOMES = {
    AttemptOutcome.GRADED: ("Graded", "judge"),
    AttemptOutcome.DEFERRED: ("Deferred, tried again later", "floor"),
    AttemptOutcome.REFUSED: ("Declined by the model", "floor"),
    AttemptOutcome.INVALID: ("No verdict in the reply", "floor"),
    AttemptOutcome.LOST: ("Lost with its worker", "floor"),
    AttemptOutcome.RUNNING: ("Running now", "floor"),
}


def show(request: HttpRequest) -> TemplateResponse:
    now = timezone.now()
    quota = worst_quota()
    attempts = JudgeAttempt.objects.filter(started_at__gte=start_of_day(now))
    context = {
        "title": "Judge quota",
        "state": judge_state(quota),
        "quota": quota,
        "quotas": Quota.objects.order_by("model"),
        "configured": bool(settings.ANTHROPIC_API_KEY),
        "model": settings.JUDGE_MODEL,
        "today": attempts.aggregate(
            cost=Sum("cost_usd"), verdicts=Count("cost_usd"), read=Sum("input_tokens"), written=Sum("output_tokens")
        ),
        "outcomes": _outcomes(dict(attempts.order_by().values_list("outcome").annotate(n=Count("pk")))),
        "waiting": waiting(quota),
        "recent": JudgeAttempt.objects.select_related("job__session__category").order_by("-pk")[:LISTED],
        "timeline": timeline(now),
    }
    return TemplateResponse(request, "gradingsite/quota.html", context)


def _outcomes(counts: dict[str, int]) -> list[dict[str, object]]:
    most = max(counts.values(), default=0)
    return [
        {
            "words": words,
            "n": counts.get(outcome, 0),
            "source": "judge" if outcome == AttemptOutcome.GRADED else "",
            "bar": charts.share_bar(f"f-{css}", counts.get(outcome, 0), most, words),
        }
        for outcome, (words, css) in OUTCOMES.items()
    ]


def waiting(quota: Quota | None) -> list[dict[str, object]]:
    """Open jobs by why they wait, with when the next of them is tried."""
    rows = (
        JudgeJob.objects.open()
        .order_by()
        .values("reason")
        .annotate(n=Count("pk"), next=Min("next_attempt_at"), tries=Max("attempts"))
    )
    return [{**row, "words": Reason(row["reason"]).words, "next": not_before(row["next"], quota)} for row in rows]


def not_before(due: dt.datetime, quota: Quota | None) -> dt.datetime:
    """When a job that is due then is really tried: nothing is sent while the quota is exhausted."""
    if quota is None or quota.state != QuotaState.EXHAUSTED or quota.until is None:
        return due
    return max(due, quota.until)


def timeline(now: dt.datetime) -> str:
    """Two weeks of quota states, from the transitions."""
    start = now - dt.timedelta(days=DAYS)
    before = QuotaTransition.objects.filter(at__lte=start).order_by("-at").first()
    spans = [(start, before.state if before else str(QuotaState.OPEN))]
    spans += [(row.at, row.state) for row in QuotaTransition.objects.filter(at__gt=start).order_by("at")]
    return charts.timeline(spans, start, now)
