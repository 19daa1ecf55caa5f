"""Bandits: what the next hundred sessions will be about, and how much of that rests on a real grade."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from bandit.core.posterior import ArmPosterior
from bandit.models import Arm, Bandit, Selection
from bandit.selection import Outlook, posterior_of
from grading import charts
from grading.admin import rectifier
from grading.models import JudgeJob, Session

DECISIONS = 25
REAL = frozenset({"judge", "human", "consumption"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm on the page: `spread` is half the central 90 % interval; `pending` counts verdicts still to come."""

    arm: Arm
    posterior: ArmPosterior
    ridge: str
    spread: float
    share: float
    proof: str
    sessions: float
    graded: float
    fallback: float | None
    pending: int


def first(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - a view
    bandit = Bandit.objects.order_by("pk").first()
    if bandit is None:
        raise Http404("there is no bandit yet; add one under Settings")
    return redirect("admin:bandit", name=bandit.name)


def show(request: HttpRequest, name: str) -> TemplateResponse:
    bandits = list(Bandit.objects.order_by("pk"))
    bandit = next((each for each in bandits if each.name == name), None)
    if bandit is None:
        raise Http404(f"there is no bandit {name}")
    outlook = posterior_of(name, timezone.now())
    context = {
        "title": f"{bandit} bandit" if "bandit" not in str(bandit).lower() else str(bandit),
        "bandit": bandit,
        "bandits": bandits,
        "policy": outlook.posterior.policy,
        "scale": outlook.posterior.evidence_scale,
        "rows": arm_rows(bandit, outlook),
        "sources": charts.STACK[:-1],
        "decisions": decisions(bandit),
        **rectifier.card(name),
    }
    return TemplateResponse(request, "gradingsite/bandit.html", context)


def arm_rows(bandit: Bandit, outlook: Outlook) -> list[ArmRow]:
    """The arms, the most chosen first; retired ones last."""
    arms = {arm.name: arm for arm in bandit.arms.all()}
    pending = _pending(bandit.name)
    betas = {name: charts.Beta(alpha=arm.alpha, beta=arm.beta) for name, arm in outlook.arms.items()}
    drawn = charts.ridges(betas)
    weights = {name: {e.source: e.pseudo for e in arm.evidence} for name, arm in outlook.arms.items()}
    full = max((sum(weights[name].values()) + pending.get(name, 0) for name in weights), default=1.0)
    rows = [
        ArmRow(
            arm=arms[name],
            posterior=arm,
            ridge=drawn[name],
            spread=(arm.high - arm.low) / 2,
            share=outlook.share_of_next_100(name),
            proof=charts.proof(weights[name], pending.get(name, 0), full),
            sessions=sum(e.n for e in arm.evidence),
            graded=sum(weights[name].values()),
            fallback=_fallback(weights[name]),
            pending=pending.get(name, 0),
        )
        for name, arm in outlook.arms.items()
    ]
    return sorted(rows, key=lambda row: (row.arm.retired_at is not None, -row.share, row.arm.name))


def _fallback(weights: dict[str, float]) -> float | None:
    """The percentage of an arm's evidence that no judge, person or artifact stands behind; None without evidence."""
    whole = sum(weights.values())
    return None if not whole else 100 * sum(n for source, n in weights.items() if source not in REAL) / whole


def _pending(bandit: str) -> dict[str, int]:
    """Verdicts still to come, by arm."""
    column = {"category": "session__category__name", "harness": "session__harness__name"}.get(bandit)
    if column is None:
        return {}
    rows = JudgeJob.objects.open().order_by().values_list(column).annotate(n=Count("pk"))
    return {name: n for name, n in rows if name}


def decisions(bandit: Bandit) -> list[dict[str, Any]]:
    """The latest decisions: chosen, ran, earned, left out. Three queries."""
    rows = list(Selection.objects.filter(bandit=bandit).select_related("arm", "executed_arm")[:DECISIONS])
    keys = [row.observation.removeprefix("session:") for row in rows]
    sessions = Session.objects.with_reward().in_bulk([int(key) for key in keys if key.isdecimal()])
    return [
        {
            "row": row,
            "session": sessions.get(int(key)) if key.isdecimal() else None,
            "left_out": left_out(row.eligible),
        }
        for row, key in zip(rows, keys, strict=True)
    ]


def left_out(eligible: dict[str, Any]) -> list[str]:
    """The arms that were not eligible, together where they share the reason: "news, social: 2 of 2 used today"."""
    arms: dict[str, list[str]] = {}
    for arm, why in sorted(eligible.items()):
        if isinstance(why, str):
            arms.setdefault(why, []).append(arm)
    return [f"{', '.join(names)}: {why}" for why, names in arms.items()]
