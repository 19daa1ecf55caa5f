"""Dashboard: can the reward be trusted today?"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from bandit.selection import posterior_of
from grading import charts, monitoring
from grading.admin.judge_state import first_quota
from grading.admin.quota import waiting
from grading.core.vocabulary import Source
from grading.models import Flag, Session
from grading.trust import CHART_DAYS, Trust, trust

LISTED = 5
MISSING_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Starving:
    """An arm that gets too little evidence, and in which way."""

    arm: str
    why: str


def show(request: HttpRequest) -> TemplateResponse:
    now = timezone.now()
    figures, quota = trust(now), first_quota()
    flags = with_rewards(monitoring.flagged_sessions()[: 2 * LISTED])
    context = {
        "title": "Dashboard",
        "trust": figures,
        "chart": grades_by_day(figures, timezone.localdate(now)),
        "sources": charts.STACK,
        # A plain dict: a template asks a Counter for its key "items" first, and gets 0.
        "provisional": dict(figures.provisional_by_source),
        "flags": flags[:LISTED],
        "starving": starving(now)[:LISTED],
        "quota": quota,
        "waiting": waiting(quota),
        "empty": not figures.cells and not Session.objects.exists(),
    }
    return TemplateResponse(request, "gradingsite/dashboard.html", context)


def grades_by_day(figures: Trust, today: dt.date) -> str:
    days = [today - dt.timedelta(days=back) for back in range(CHART_DAYS - 1, -1, -1)]
    totals: dict[tuple[dt.date, str, bool], int] = {}
    for cell in figures.cells:
        key = (cell.day, cell.source, cell.final)
        totals[key] = totals.get(key, 0) + cell.count
    bars = [charts.Bar(day=day, source=source, final=final, count=n) for (day, source, final), n in totals.items()]
    return charts.by_day((bar for bar in bars if bar.source), days)


def with_rewards(flags: Iterable[Flag]) -> list[Flag]:
    """Flags with their sessions' rewards on them, in two queries; one row a session."""
    rows = {flag.session_id: flag for flag in reversed(list(flags))}
    sessions = Session.objects.with_reward().with_people().in_bulk(list(rows))
    for flag in rows.values():
        flag.session = sessions[flag.session_id]
    return list(reversed(rows.values()))


def starving(now: dt.datetime) -> list[Starving]:
    """Category arms that a fortnight's sessions taught little, and arms that are hardly chosen any more."""
    return [*_ungraded(now), *_seldom_chosen(now)]


def _ungraded(now: dt.datetime) -> list[Starving]:
    rows = (
        Session.objects.filter(ended_at__gt=now - dt.timedelta(days=14), category__isnull=False)
        .with_reward()
        .values("category__name")
        .annotate(n=Count("pk"), missing=Count("pk", filter=Q(reward_source=Source.FLOOR) | Q(reward_final=False)))
        .order_by("-missing")
    )
    return [
        Starving(
            arm=row["category__name"],
            why=f"{100 * row['missing'] / row['n']:.0f} % of its grades in 14 days are missing or provisional, "
            f"{row['missing']} of {row['n']}",
        )
        for row in rows
        if row["missing"] >= MISSING_SHARE * row["n"] and row["missing"]
    ]


def _seldom_chosen(now: dt.datetime) -> list[Starving]:
    posterior = posterior_of("category", now)
    return [
        Starving(arm=name, why=f"About {posterior.share_of_next_100(name):.1f} of the next 100 sessions")
        for name in posterior.arms
        if posterior.share_of_next_100(name) <= 1
    ]
