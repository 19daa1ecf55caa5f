"""A bandit's arms and one arm: names, states and events, and the forms of the acts on them."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.text import capfirst

from bandit import arms
from bandit.eligibility import is_on_probation
from bandit.models import Arm, ArmEvent, Bandit, BanditKind, Bucket, PolicyVersion
from bandit.reading import posterior_of, version_of
from grading.insight.loading import POPULATION
from grading.intake import naming
from grading.models import Repository, Session, SessionLesson
from grading.models.sessions import SessionQuerySet
from grading.outcomes.landed_work import LandedWork, load_landed_work
from grading.screens.arms import acts
from grading.screens.charts import posteriors
from grading.screens.charts.posteriors import Beta
from grading.screens.http import StaffRequest, staff_view

# The most events, and the most sessions of an arm, that a page lists.
LISTED, LATEST_SESSIONS = 100, 10
# The column of sessions that refers to the arms of a bandit.
COLUMNS = {"category": "category", "harness": "harness", naming.BANDIT: "model_arm"}
CHANGE = "bandit.change_arm"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmListRow:
    """An arm in the list: its number of rewarded `sessions`, and its state as text."""

    arm: Arm
    aliases: tuple[str, ...]
    sessions: int
    state: str


class ArmForm(forms.Form):
    """A new arm. A name that resembles another one has to be confirmed with `anyway`."""

    name = forms.CharField(max_length=arms.MAX_NAME)
    title = forms.CharField(max_length=arms.MAX_NAME, required=False)
    why = forms.CharField(max_length=arms.MAX_WHY, required=False)
    probation = forms.BooleanField(required=False, initial=True, label="on probation first")
    is_low_stakes = forms.BooleanField(required=False, label="low stakes")
    anyway = forms.BooleanField(required=False, widget=forms.HiddenInput)

    def add_to(self, bandit: Bandit, *, by: str) -> Arm | None:
        """Add the arm. None, with an error in the form, if its name is taken or resembles another one."""
        chosen: dict[str, Any] = self.cleaned_data
        is_confirmed = chosen.pop("anyway")
        resembled = arms.near(bandit.name, chosen["name"])
        if resembled and not is_confirmed:
            existing = f"{chosen['name']} looks like {resembled}, which already exists."
            advice = "If both are the same, add an alias to the existing arm instead."
            self.add_error("name", forms.ValidationError(f"{existing} {advice}", code="resembles"))
            return None
        try:
            return arms.add(bandit.name, by=by, **chosen)
        except ValueError as error:
            self.add_error("name", str(error))
            return None


@staff_view("bandit.view_arm")
def show(request: StaffRequest, name: str) -> HttpResponse:
    """The list of arms; a POST adds an arm."""
    bandit = bandit_or_404(name)
    form = ArmForm(request.POST or None)
    if request.method == "POST":
        require_operator(request)
        if form.is_valid() and (added := form.add_to(bandit, by=request.user.get_username())):
            messages.success(request, f"{added} is now an arm of {bandit}.")
            return redirect("admin:arms", name=name)
    context = {
        "title": capfirst(f"{bandit} arms"),
        "bandit": bandit,
        "bandits": Bandit.objects.order_by("pk"),
        "rows": rows(bandit),
        "events": ArmEvent.objects.filter(arm__bandit=bandit).select_related("arm", "other")[:LISTED],
        "form": form,
        "may_confirm": form.has_error("name", "resembles"),
        "names": bandit.kind == BanditKind.NAMES,
        "unnamed": len(naming.unnamed_texts()) if name == naming.BANDIT else 0,
        "may": request.user.has_perm(CHANGE),
    }
    return TemplateResponse(request, "arms/arms.html", context)


def rows(bandit: Bandit) -> list[ArmListRow]:
    """Every arm: the choosable ones first, merged ones last. Four queries."""
    bandit_arms = list(bandit.arms.select_related("merged_into").prefetch_related("aliases"))
    sessions, version = _session_counts(bandit), version_of(bandit)
    lines = [
        ArmListRow(
            arm=arm,
            aliases=tuple(sorted(alias.alias for alias in arm.aliases.all())),
            sessions=sessions.get(arm.pk, 0),
            state=state(arm, sessions.get(arm.pk, 0), version),
        )
        for arm in bandit_arms
    ]
    return sorted(lines, key=lambda row: (row.arm.merged_into_id is not None, not row.arm.is_choosable, row.arm.name))


def state(arm: Arm, sessions: int, version: PolicyVersion) -> str:
    """The state of an arm as text; empty if it is simply in use."""
    if arm.merged_into is not None:
        return f"merged into {arm.merged_into}"
    if arm.retired_at is not None:
        return "retired"
    if arm.paused:
        return "paused"
    if is_on_probation(arm, sessions, version):
        return f"on probation, {sessions} of {version.probation_sessions} sessions"
    return "probation passed" if arm.probation else ""


def _session_counts(bandit: Bandit) -> dict[int, int]:
    """The number of sessions by the arm's primary key: with a reward, or all of them in a bandit of kind NAMES."""
    if bandit.kind == BanditKind.NAMES:
        by_model = Session.objects.yours().exclude(model_arm=None).order_by().values_list("model_arm")
        return dict(by_model.annotate(n=Count("pk")))
    counted = Bucket.objects.rewards().filter(bandit=bandit).order_by().values_list("arm")
    return {arm: int(n) for arm, n in counted.annotate(total=Sum("n"))}


# --- one arm ---------------------------------------------------------------------------------------------------------


@staff_view("bandit.view_arm")
def detail(request: StaffRequest, name: str, pk: int) -> HttpResponse:
    """One arm with its acts; a POST performs one. With `do` in the query, the confirmation page of that act."""
    arm = get_object_or_404(Arm.objects.select_related("bandit", "merged_into"), bandit__name=name, pk=pk)
    if request.method == "POST":
        require_operator(request)
        by, why = request.user.get_username(), request.POST.get("why", "").strip()
        try:
            messages.success(request, acts.perform(request.POST.get("do", ""), arm, request.POST, by=by, why=why))
        except ValueError as error:
            messages.error(request, str(error))
        if request.POST.get("do") in acts.BREAKS:
            return redirect("admin:bandit", name=name)
        return redirect("admin:arm", name=name, pk=pk)
    act = request.GET.get("do", "")
    if act in acts.CONFIRMED:
        try:
            context = acts.preview_act(act, arm, request.GET)
        except ValueError as error:
            messages.error(request, str(error))
            return redirect("admin:arm", name=name, pk=pk)
        context |= {"title": context["heading"], "arm": arm, "bandit": arm.bandit, "may": request.user.has_perm(CHANGE)}
        return TemplateResponse(request, "arms/arm_act.html", context)
    sessions, outlook = _session_counts(arm.bandit).get(arm.pk, 0), posterior_of(name, timezone.now())
    posterior = outlook.arms.get(arm.name) if arm.is_choosable else None
    own_sessions = sessions_of(arm)
    betas = {} if posterior is None else {arm.name: Beta(alpha=posterior.alpha, beta=posterior.beta)}
    context = {
        "title": str(arm),
        "arm": arm,
        "bandit": arm.bandit,
        "sessions": sessions,
        "posterior": posterior,
        "ridge": posteriors.ridges(betas).get(arm.name, ""),
        "half_width": None if posterior is None else (posterior.high - posterior.low) / 2,
        "share": outlook.next_100(arm.name),
        "state": state(arm, sessions, version_of(arm.bandit)),
        "aliases": arm.aliases.order_by("alias"),
        "merged": arm.merged.order_by("name"),
        "others": arm.bandit.arms.filter(merged_into=None).exclude(pk=arm.pk),
        "events": arm.events.select_related("other")[:LISTED],
        "may": request.user.has_perm(CHANGE),
        "learns": arm.bandit.kind != BanditKind.NAMES,
        "longest": arms.MAX_NAME,
        "latest": own_sessions.with_people().order_by("-ended_at", "-pk")[:LATEST_SESSIONS],
        "work": landed_work(own_sessions) if arm.bandit.name in COLUMNS else None,
    }
    return TemplateResponse(request, "arms/arm.html", context)


def sessions_of(arm: Arm) -> SessionQuerySet:
    """The finished sessions that ran this arm or an arm that was merged into it; for a lesson, those that got it."""
    column = COLUMNS.get(arm.bandit.name)
    if column is None:
        taken = SessionLesson.objects.filter(Q(arm=arm) | Q(arm__merged_into=arm), taken=True)
        return Session.objects.yours().filter(pk__in=taken.order_by().values("session"))
    return Session.objects.yours().filter(Q(**{column: arm}) | Q(**{f"{column}__merged_into": arm}))


def landed_work(sessions: SessionQuerySet) -> LandedWork | None:
    """The outcomes of the work of these sessions. None if no repository is followed."""
    if not Repository.objects.exists():
        return None
    return load_landed_work(sessions.filter(POPULATION), timezone.now())


def require_operator(request: HttpRequest) -> None:
    if not request.user.has_perm(CHANGE):
        raise PermissionDenied


def bandit_or_404(name: str) -> Bandit:
    bandit = Bandit.objects.filter(name=name).first()
    if bandit is None:
        raise Http404(f"there is no bandit {name}")
    return bandit
