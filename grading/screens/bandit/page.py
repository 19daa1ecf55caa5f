"""Bandits: what the next hundred sessions will be about, and how much of that rests on a real grade."""

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
from grading.screens import charts
from grading.screens.bandit import comparing, decisions, drawing, record, travel, what_if
from grading.screens.bandit.arms import Beside, arm_rows
from grading.screens.bandit.asked import QueryRefused
from grading.screens.bandit.drawing import TrialDraw
from grading.screens.bandit.samples import sample_arms
from grading.screens.bandit.travel import Belief, Moments
from grading.screens.bandit.what_if import OutageChoice, WhatIf
from grading.screens.calibration import card as calibration
from grading.screens.categories.view import uncategorised
from grading.screens.http import StaffRequest, staff_view
from grading.screens.moves import in_words


@staff_view("bandit.view_bandit")
def first(request: StaffRequest) -> HttpResponse:  # noqa: ARG001 - a view
    bandit = Bandit.objects.that_learn().first()
    if bandit is None:
        raise Http404("there is no bandit yet; add one under Settings")
    return redirect("admin:bandit", name=bandit.name)


@staff_view("bandit.view_bandit")
def show(request: StaffRequest, name: str) -> TemplateResponse:
    """What the bandit believes now; by the address, what it believed then, or would believe if."""
    bandits = list(Bandit.objects.that_learn().select_related("baseline"))
    bandit = next((each for each in bandits if each.name == name), None)
    if bandit is None:
        raise Http404(f"there is no bandit {name}")
    now, asked, problems = timezone.now(), request.GET, list[str]()
    at = Moments(now=now, day=timezone.localdate(now))
    try:
        at = travel.moments(asked, now)
    except QueryRefused as refused:
        problems.append(str(refused))
    belief = travel.read(bandit, at)
    arms = {arm.name: arm for arm in belief.held.arms}
    page = BanditPage(bandit=bandit, at=at, belief=belief, arms=arms, asked=asked, problems=problems)
    judge = standings().get(JudgeRole.FIRST)
    sliders = travel.sliders(bandit, judge, now)
    if at.is_past:
        context = page.then()
    else:
        may_operate = request.user.has_perm("grading.change_quota")
        context = page.now(what_if.known_outages(judge, sliders.start, now), may_operate=may_operate)
        context["sample"] = sample_arms(bandit, now) if request.frame.samples.alone else ()
    context |= {
        "title": f"{bandit} bandit" if "bandit" not in str(bandit).lower() else str(bandit),
        "bandit": bandit,
        "bandits": bandits,
        "uncategorised": uncategorised() if bandit.name == "category" and not at.is_past else {},
        "sources": charts.STACK[:-1],
        "problems": problems,
        "moments": at,
        "sliders": sliders,
        "belief": page.belief,
        "policy": page.belief.policy,
        "scale": page.belief.outlook.posterior.evidence_scale,
    }
    return TemplateResponse(request, "bandit/bandit.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditPage:
    """One showing of the page: what is read, and what the address asks of it. `problems` grows by what is refused."""

    bandit: Bandit
    at: Moments
    belief: Belief
    arms: Mapping[str, Arm]
    asked: QueryDict
    problems: list[str]

    def then(self) -> dict[str, Any]:
        """The past, beside what is believed now."""
        if what_if.asks(self.asked) or self.asked.get("draw"):
            self.problems.append("What if, and the draw, are of what holds now: go back to now, then ask again.")
        present = travel.read(self.bandit, Moments(now=self.at.now, day=timezone.localdate(self.at.now)))
        moved = moves(self.bandit.name, self.belief.outlook, present.outlook)
        words = f"Since then: {in_words(moved, titles=self.titles)}.{dashed(moved, 'what is believed now')}"
        beside = Beside(outlook=present.outlook, moves=by_arm(moved), css="was", heading="now", words=words)
        return self.body(beside, {})

    def now(self, outages: Sequence[OutageChoice], *, may_operate: bool) -> dict[str, Any]:
        """What holds now, beside what would if the question were answered yes."""
        card = calibration.card(self.bandit, self.at.now, may_operate=may_operate, current=self.belief.held)
        question = self.answered(outages)
        beside = None
        if question is not None:
            drawn = dashed(question.moves, "what would be believed")
            words = f"{question.words}, {question.what}. Nothing is saved.{drawn}"
            moved = by_arm(question.moves)
            beside = Beside(outlook=question.after, moves=moved, css="if", heading=question.short, words=words)
        return {
            **self.body(beside, record.pending(self.bandit, self.arms)),
            "card": card,
            "question": question,
            "draw": self.drawn(),
            "left_outs": what_if.choices(self.belief),
            "outages": outages,
        }

    def body(self, beside: Beside | None, pending: Mapping[str, int]) -> dict[str, Any]:
        """What the page shows of any moment."""
        records = record.records(self.belief, self.arms, self.at)
        rows = arm_rows(self.belief, self.arms, records, pending, beside)
        names = [row.arm.name for row in rows]
        return {
            "rows": rows,
            "beside": beside,
            "log": decisions.log(self.bandit, self.at.until, self.titles),
            "comparison": comparing.comparison(self.belief.rewards, names, self.titles),
        }

    def answered(self, outages: Sequence[OutageChoice]) -> WhatIf | None:
        try:
            return what_if.answer(self.belief, self.asked, outages, self.titles, self.at.now)
        except QueryRefused as refused:
            self.problems.append(str(refused))
            return None

    def drawn(self) -> TrialDraw | None:
        if self.bandit.kind != BanditKind.CHOICE:
            return None
        try:
            return drawing.tried(self.bandit.name, self.asked.get("draw", ""), self.titles, self.at.now)
        except QueryRefused as refused:
            self.problems.append(str(refused))
            return None

    @property
    def titles(self) -> dict[str, str]:
        return {name: str(arm) for name, arm in self.arms.items()}


def by_arm(found: Sequence[ArmMove]) -> dict[str, ArmMove]:
    return {move.arm: move for move in found}


def dashed(found: Sequence[ArmMove], what: str) -> str:
    """What the dashed lines are; nothing where there are none."""
    return f" Dashed below: {what}." if any(move.mean_moves for move in found) else ""
