"""Lessons: the effect of each one on a session's reward, and whether a draw is behind the figure."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.db.models import Q
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from bandit.core.effect import (
    RELEVANT_EFFECT,
    STRIKING_DIFFERENCE,
    EffectVerdict,
    StudyDesign,
    TreatmentEffect,
    Window,
    sessions_to_decide,
)
from bandit.core.estimate import Estimate, about
from bandit.core.posterior import ArmPosterior
from bandit.core.residual import Baseline
from bandit.eligibility import out_of_use
from bandit.models import Arm, Assignment, Bandit, BanditKind, PolicyVersion
from bandit.reading import arms_of, posterior_of, version_of
from grading.models import Session, SessionLesson
from grading.models.sessions import yours
from grading.reward import lessons
from grading.reward.lessons import LessonFigures, Overview
from grading.screens.calibration import card as calibration
from grading.screens.charts import bars
from grading.screens.charts.bars import RewardDifference
from grading.screens.http import StaffRequest, staff_view
from grading.screens.policy.form import form_values
from grading.templatetags.gradingsite_tags import plain

LATEST = 25
# Made-up lessons for the page of a site without any: name, sessions with it and without it, effect on the reward.
EXAMPLES = (
    ("read-the-diff", 64, 41, RewardDifference(mean=0.08, low=0.03, high=0.13, is_causal=True)),
    ("ask-first", 58, 37, RewardDifference(mean=-0.01, low=-0.05, high=0.03, is_causal=True)),
    ("plan-in-detail", 22, 30, RewardDifference(mean=0.05, low=-0.06, high=0.16, is_causal=False)),
)
EXAMPLES_REACH = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectWindow:
    """A window of one kind of figure."""

    kind: StudyDesign
    window: Window

    @property
    def first(self) -> date:
        return date.fromordinal(self.window.first)

    @property
    def last(self) -> date:
        return date.fromordinal(self.window.last)

    @property
    def is_striking(self) -> bool:
        return abs(self.window.difference) > STRIKING_DIFFERENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonRow:
    """One lesson in the table: its arm, its figures and their picture."""

    arm: Arm
    lesson: LessonFigures
    posterior: ArmPosterior
    picture: SafeString

    @property
    def cautions(self) -> list[str]:
        return cautions(self.arm, self.lesson)

    @property
    def striking_windows(self) -> list[EffectWindow]:
        return [each for each in windows_of(self.lesson) if each.is_striking]

    @property
    def half_width(self) -> float:
        """Half the central 90 % of its mean."""
        return (self.posterior.high - self.posterior.low) / 2


@staff_view("bandit.view_bandit")
def index(request: StaffRequest) -> TemplateResponse:
    return show(request, Bandit.objects.select_related("baseline").get(name="lesson"))


def show(request: HttpRequest, bandit: Bandit) -> TemplateResponse:
    """Every lesson of a bandit that may choose several arms, the most urgent first."""
    now = timezone.now()
    overview, outlook = lessons.load_overview(bandit, now), posterior_of(bandit.name, now)
    arms = {arm: overview.for_lesson(arm) for arm in arms_of(bandit) if arm.merged_into_id is None}
    used = sorted((arm for arm in arms if not out_of_use(arm)), key=lambda arm: _urgency(arm, arms[arm]))
    differences = [_difference(arms[arm].effect) for arm in used]
    reach = bars.reach(difference for difference in differences if difference is not None)
    rows = [
        LessonRow(
            arm=arm,
            lesson=arms[arm],
            posterior=outlook.arms[arm.name],
            picture=bars.difference(_difference(arms[arm].effect), reach),
        )
        for arm in used
    ]
    left_out = [(arm, out_of_use(arm), arms[arm]) for arm in arms if out_of_use(arm)]
    context = {
        "title": f"{bandit} bandit",
        "offer": offer(version_of(bandit), overview.bar),
        "rows": rows,
        "scale": bars.effects_scale(reach),
        "left_out": left_out,
        "examples": [] if arms else [(*row, bars.difference(row[-1], EXAMPLES_REACH)) for row in EXAMPLES],
        "examples_scale": bars.effects_scale(EXAMPLES_REACH),
        "head": headline([row.lesson for row in rows]),
        "site": request.build_absolute_uri("/").rstrip("/"),
        "card": calibration.load_card(bandit, now, may_operate=request.user.has_perm("grading.change_quota")),
        **_basis(bandit, overview),
    }
    return TemplateResponse(request, "lessons/lessons.html", context)


@staff_view("bandit.view_bandit")
def show_one(request: StaffRequest, pk: int) -> TemplateResponse:
    """One lesson: every kind of figure, windows, categories, its sessions, its draws."""
    arm = Arm.objects.select_related("bandit__baseline", "merged_into").filter(pk=pk).first()
    if arm is None or arm.bandit.kind != BanditKind.MANY:
        raise Http404(f"there is no lesson {pk}")
    arm, now = arm.current, timezone.now()
    overview = lessons.load_overview(arm.bandit, now, closely=arm)
    lesson = overview.for_lesson(arm)
    beside = lesson.per_protocol if lesson.unheeded else None
    differences = [_difference(lesson.causal), _drawn(beside, is_causal=False), _difference(lesson.observational)]
    reach = bars.reach(each for each in differences if each)
    drawn, heeded, came = (bars.difference(each, reach) for each in differences)
    context = {
        "title": str(arm),
        "arm": arm,
        "lesson": lesson,
        "left_out": out_of_use(arm),
        "cautions": cautions(arm, lesson),
        "bar": overview.bar,
        "drawn": drawn,
        "per_protocol": beside,
        "heeded": heeded,
        "came": came,
        "worth": RELEVANT_EFFECT,
        "scale": bars.effects_scale(reach),
        "windows": windows_of(lesson),
        "sessions": sessions_of(arm, overview.baseline, now),
        "draws": draws_of(arm),
        **_basis(arm.bandit, overview),
    }
    return TemplateResponse(request, "lessons/lesson.html", context)


def headline(used: Sequence[LessonFigures]) -> dict[str, Any]:
    """The figures over the lessons in use. The mean is of causal differences alone, since kinds can't be mixed."""
    effects = [each.effect for each in used]
    causal = [each.difference.mean for each in effects if each.kind is StudyDesign.CAUSAL and each.difference]
    verdicts = Counter(each.verdict for each in effects if each.kind is StudyDesign.CAUSAL)
    return {
        "lessons": len(used),
        "kinds": Counter(each.kind.name.lower() for each in effects),
        "mean": float(np.mean(causal)) if causal else None,
        "helping": verdicts[EffectVerdict.HELPS],
        "harmful": verdicts[EffectVerdict.HARMFUL],
        "negligible": verdicts[EffectVerdict.NEGLIGIBLE],
        "striking": sum(each.striking for each in used),
    }


def offer(version: PolicyVersion, least: float) -> dict[str, Any] | None:
    """What a bandit would gain by a separate holdout for decided lessons; None if it has one.

    `now` and `then` are how many sessions a new lesson needs for a verdict, without and with it.
    """
    usual = PolicyVersion()
    if version.holdout_decided is not None:
        return None
    holdout = max(usual.holdout, version.holdout)
    now, then = (sessions_to_decide(chance=1 - each, least=least) for each in (version.holdout, holdout))
    numbers = form_values(version) | {"holdout": holdout, "holdout_decided": usual.holdout_decided}
    params = {name: plain(value) for name, value in numbers.items() if value is not None}
    note = "Holdout of lessons: large until a lesson has a verdict, small afterwards."
    return {
        "now": now and about(now),
        "then": then and about(then),
        "holdout": holdout,
        "decided": usual.holdout_decided,
        "preview": f"{reverse('admin:policy', args=[version.bandit.name])}?"
        + urlencode({**params, "note": note, "preview": "yes"}),
    }


def cautions(arm: Arm, lesson: LessonFigures) -> list[str]:
    return lesson.cautions(f"{arm.name} {arm.title}")


def windows_of(lesson: LessonFigures) -> list[EffectWindow]:
    """The lesson's windows of 50 sessions and more, of both kinds."""
    return [
        EffectWindow(kind=each.kind, window=window)
        for each in (lesson.causal, lesson.observational)
        for window in each.windows
    ]


def sessions_of(arm: Arm, baseline: Baseline | None, now: dt.datetime) -> list[dict[str, Any]]:
    """The latest sessions that the lesson matched, each with its reward and the residual of that. Three queries."""
    rows = SessionLesson.objects.filter(yours(), _is(arm)).select_related("assignment").order_by("-session__ended_at")
    latest = list(rows[:LATEST])
    sessions = Session.objects.select_related("category").in_bulk([row.session_id for row in latest])
    residuals = lessons.residuals(sessions.values(), baseline, now)
    return [
        {"row": row, "session": sessions[row.session_id], "residual": residuals.get(row.session_id)}
        for row in latest
        if row.session_id in sessions
    ]


def draws_of(arm: Arm) -> list[dict[str, Any]]:
    """The latest draws of a lesson, each with the session that used it. Two queries."""
    rows = list(Assignment.objects.filter(_is(arm))[:LATEST])
    sessions = Session.objects.by_observation(row.observation for row in rows)
    return [{"row": row, "session": sessions.get(row.observation)} for row in rows]


def _is(arm: Arm) -> Q:
    """The rows of an arm, and of arms that were merged into it."""
    return Q(arm=arm) | Q(arm__merged_into=arm)


def _basis(bandit: Bandit, overview: Overview) -> dict[str, Any]:
    """The context about the basis of all figures."""
    version = version_of(bandit)
    return {
        "bandit": bandit,
        "bandits": Bandit.objects.that_learn(),
        "policy": version,
        "baseline": overview.baseline,
        "read_at": overview.read_at,
        "days": lessons.DAYS,
    }


def _difference(effect: TreatmentEffect) -> RewardDifference | None:
    return _drawn(effect.difference, is_causal=effect.kind is StudyDesign.CAUSAL)


def _drawn(estimate: Estimate | None, *, is_causal: bool) -> RewardDifference | None:
    if estimate is None:
        return None
    return RewardDifference(mean=estimate.mean, low=estimate.low, high=estimate.high, is_causal=is_causal)


def _urgency(arm: Arm, lesson: LessonFigures) -> tuple[bool, int, float, str]:
    """A key for sorting: striking ones first; then causal, observational, unknown; the best first in each."""
    kinds = list(StudyDesign)
    mean = 0.0 if lesson.effect.difference is None else lesson.effect.difference.mean
    return not lesson.striking, kinds.index(lesson.effect.kind), -mean, arm.name
