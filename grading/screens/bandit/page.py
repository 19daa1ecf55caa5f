"""The page of a bandit: its arms, how often each will be chosen, and the grades behind that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.http.request import QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from bandit.core.moves import ArmMove, moves
from bandit.models import Arm, Bandit, BanditKind
from grading.judging.outlook.standing import standings
from grading.models.judging import JudgeRole
from grading.screens.bandit import comparing, decisions, drawing, record, travel, what_if
from grading.screens.bandit.arms import AlternativeOutlook, arm_rows
from grading.screens.bandit.drawing import TrialDraw
from grading.screens.bandit.query import QueryRefused
from grading.screens.bandit.samples import sample_arms
from grading.screens.bandit.travel import BanditSnapshot, Moments
from grading.screens.bandit.what_if import OutageChoice, WhatIf
from grading.screens.calibration import card as calibration
from grading.screens.categories.view import uncategorised
from grading.screens.charts.bars import STACK
from grading.screens.http import StaffRequest, staff_view
from grading.screens.moves import describe_moves


@staff_view("bandit.view_bandit")
def first(request: StaffRequest) -> HttpResponse:  # noqa: ARG001 - a view
    bandit = Bandit.objects.that_learn().first()
    if bandit is None:
        raise Http404("there is no bandit yet; add one under Settings")
    return redirect("admin:bandit", name=bandit.name)


@staff_view("bandit.view_bandit")
def show(request: StaffRequest, name: str) -> TemplateResponse:
    """The bandit now, in the past or under a what-if, as the query says."""
    bandits = list(Bandit.objects.that_learn().select_related("baseline"))
    bandit = next((each for each in bandits if each.name == name), None)
    if bandit is None:
        raise Http404(f"there is no bandit {name}")
    now, problems = timezone.now(), list[str]()
    at = Moments(now=now, day=timezone.localdate(now))
    try:
        at = travel.moments(request.GET, now)
    except QueryRefused as refused:
        problems.append(str(refused))
    snapshot = travel.read(bandit, at)
    arms = {arm.name: arm for arm in snapshot.current.arms}
    page = BanditPage(at=at, snapshot=snapshot, arms=arms, params=request.GET, problems=problems)
    judge = standings().get(JudgeRole.FIRST)
    sliders = travel.sliders(bandit, judge, now)
    if at.is_past:
        context = page.past_context()
    else:
        may_operate = request.user.has_perm("grading.change_quota")
        outages = what_if.known_outages(judge, sliders.start, now)
        context = page.present_context(outages, may_operate=may_operate)
        context["sample"] = sample_arms(bandit, now) if request.frame.samples.alone else ()
    context |= {
        "title": f"{bandit} bandit" if "bandit" not in str(bandit).lower() else str(bandit),
        "bandit": bandit,
        "bandits": bandits,
        "uncategorised": uncategorised() if bandit.name == "category" and not at.is_past else {},
        "sources": STACK[:-1],
        "problems": problems,
        "moments": at,
        "sliders": sliders,
        "snapshot": snapshot,
        "policy": snapshot.policy,
        "scale": snapshot.outlook.posterior.evidence_scale,
    }
    return TemplateResponse(request, "bandit/bandit.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditPage:
    """The page of a bandit at some moment, with its query `params`. Refused parameters are added to `problems`."""

    at: Moments
    snapshot: BanditSnapshot
    arms: Mapping[str, Arm]
    params: QueryDict
    problems: list[str]

    @property
    def bandit(self) -> Bandit:
        return self.snapshot.bandit

    @property
    def titles(self) -> dict[str, str]:
        return {name: str(arm) for name, arm in self.arms.items()}

    def past_context(self) -> dict[str, Any]:
        """The context for a past moment, compared with the present."""
        if what_if.is_requested(self.params) or self.params.get("draw"):
            self.problems.append("What-if and draw work only with current figures. Go back to now, then try again.")
        present = travel.read(self.bandit, Moments(now=self.at.now, day=timezone.localdate(self.at.now)))
        arm_moves = moves(self.bandit.name, self.snapshot.outlook, present.outlook)
        sentence = (
            f"Since then: {describe_moves(arm_moves, titles=self.titles)}.{dashed(arm_moves, 'the estimate now')}"
        )
        alternative = AlternativeOutlook(
            outlook=present.outlook, moves=by_arm(arm_moves), css="was", heading="now", sentence=sentence
        )
        return self.common_context(alternative, {})

    def present_context(self, outages: Sequence[OutageChoice], *, may_operate: bool) -> dict[str, Any]:
        """The context for the present, compared with the what-if, if the query names one."""
        card = calibration.load_card(self.bandit, self.at.now, may_operate=may_operate, current=self.snapshot.current)
        requested = self.requested_what_if(outages)
        alternative = None
        if requested is not None:
            curves = dashed(requested.moves, "the estimate with this change")
            alternative = AlternativeOutlook(
                outlook=requested.after,
                moves=by_arm(requested.moves),
                css="if",
                heading=requested.short,
                sentence=f"{requested.effect}, {requested.what}. Nothing is saved.{curves}",
            )
        return {
            **self.common_context(alternative, record.pending(self.bandit, self.arms)),
            "card": card,
            "what_if": requested,
            "draw": self.trial_draw(),
            "excludable_sources": what_if.choices(self.snapshot),
            "outages": outages,
        }

    def common_context(self, alternative: AlternativeOutlook | None, pending: Mapping[str, int]) -> dict[str, Any]:
        """The context for past and present: the arms, the log of decisions, and the comparison by context."""
        records = record.records(self.snapshot, self.arms, self.at)
        rows = arm_rows(self.snapshot, self.arms, records, pending, alternative)
        names = [row.arm.name for row in rows]
        return {
            "rows": rows,
            "alternative": alternative,
            "log": decisions.log(self.bandit, self.at.until, self.titles),
            "comparison": comparing.comparison(self.snapshot.rewards, names, self.titles),
        }

    def requested_what_if(self, outages: Sequence[OutageChoice]) -> WhatIf | None:
        try:
            return what_if.answer(self.snapshot, self.params, outages, self.titles, self.at.now)
        except QueryRefused as refused:
            self.problems.append(str(refused))
            return None

    def trial_draw(self) -> TrialDraw | None:
        if self.bandit.kind != BanditKind.CHOICE:
            return None
        try:
            return drawing.try_draw(self.bandit.name, self.params.get("draw", ""), self.titles, self.at.now)
        except QueryRefused as refused:
            self.problems.append(str(refused))
            return None


def by_arm(arm_moves: Sequence[ArmMove]) -> dict[str, ArmMove]:
    return {move.arm: move for move in arm_moves}


def dashed(arm_moves: Sequence[ArmMove], what: str) -> str:
    """A sentence on what the dashed curves show; "" if there are none."""
    return f" Dashed below: {what}." if any(move.mean_moves for move in arm_moves) else ""
